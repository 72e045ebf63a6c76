"""Finds the recorded exchange that answers a request.

Rules
- A request matches by provider, method, path, query and body. What differs by chance is masked on
  both sides: temporary folders, addresses of objects, files of cells, the date where a text names
  it as today's, Pydantic's version in the links of its errors, what Claude Code says of its
  surroundings (`claude_code`), and what the project's `normalize` says. The port of a server on
  this machine does not count, since it is another one each time the server is started.
- Several records may match. Those of the cell that asks come first, then those of each other cell.
  Of each cell only the newest execution that used such a record counts, in its order. If it is
  unknown what executions used, the newest one that made such a record counts. The order of the
  records breaks ties.
- An answer is used once in each execution of a cell: one call more than recorded is a miss. But an
  error after which libraries send the request again (`RETRIED`) answers the repetitions too.
- A miss names the first field that differs from the nearest recorded request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import msgspec

from ..agent import Rule
from ..record import Record, read_start_time
from ..wire import encode_canonical
from .claude_code import list_masks, read_version
from .exchange import RETRIED, Exchange, Request
from .packed import read_exchange

_DATE = (
    r"\d{4}-\d\d-\d\d|\d{1,2}/\d{1,2}/\d{2,4}|[A-Z][a-z]+ \d{1,2}, \d{4}|\d{1,2} [A-Z][a-z]+ \d{4}"
)
# the start of a word; in JSON the first word of a line follows the letter of an escape such as `\n`
_START = r"(?:\b|(?<=\\[nrt]))"
MASKS: tuple[tuple[str, str], ...] = (
    # the lookbehind: in a picture's base64 each character would begin another attempt
    (r"(?<![\w./\\:-])[\w./\\:-]*ipykernel_\d+[/\\]+\d+\.py|<ipython-input-\d+-\w+>", "…cell"),
    (r"(?:/private)?(?:/var/folders/\w+/\w+/T|/tmp)/[\w.-]+", "…tmp"),
    (r"\\AppData\\Local\\Temp\\[\w.-]+", "…tmp"),
    (rf"{_START}0x[0-9a-fA-F]{{6,}}\b", "0x…"),
    (
        rf"(?i:{_START}(?:today(?:'s date)?(?: is)?|current date(?: is)?))[\s:]{{1,4}}(?:{_DATE})",
        "today …",
    ),
    # Pydantic's version, in an error that a library sends back to the model
    (r"https://errors\.pydantic\.dev/[\d.]+/", "https://errors.pydantic.dev/…/"),
)
_LOOPBACK = re.compile(r"(?i)^(https?://(?:localhost|127\.[\d.]+|\[::1\])):\d+(?=/|$)")
_LONGEST = 100  # characters of a value in a description of a difference
_BEFORE = 20  # characters before the difference
_COMPARED = 4_000  # characters by which the nearest request is chosen


_Masks = list[tuple[re.Pattern[str], str]]


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded exchange, the `key` of its request (`TapeMasks.make_key`), and the `record` that
    holds it. `cell`, `execution`, `started` (epoch seconds) and `ordinal` (its place among the
    exchanges of that execution): where and when it was made.
    """

    exchange: Exchange
    key: str
    record: str  # its id
    cell: str = ""
    execution: str = ""
    started: float = 0.0
    ordinal: int = 0

    @classmethod
    def read(cls, record: Record, masks: TapeMasks) -> Recording | None:
        """Return the exchange of a record whose hash was checked, None if nothing can replay it.

        Raises UsageError if the record is damaged.
        """
        exchange = read_exchange(record)
        if exchange is None:
            return None
        ordinal = record.get("ordinal")
        return cls(
            exchange=exchange,
            key=masks.make_key(exchange.request),
            record=str(record["id"]),
            cell=str(record.get("cell", "")),
            execution=str(record.get("execution", "")),
            started=read_start_time(record),
            ordinal=ordinal if isinstance(ordinal, int) else 0,
        )


class Miss(msgspec.Struct, frozen=True):
    """No recorded exchange answers a request: `why`, in one line."""

    why: str


class TapeMasks:
    """What differs by chance in requests; `rules`: the masks of the notebook's project."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._masks = [
            *((re.compile(pattern), text) for pattern, text in MASKS),
            *((re.compile(rule.pattern), rule.replace) for rule in rules),
        ]

    def choose(self, request: Request) -> _Masks:
        """Return the masks of a request; some programs have their own."""
        own = [(re.compile(pattern), text) for pattern, text in list_masks(request.body.value)]
        return [*own, *self._masks]

    def make_key(self, request: Request) -> str:
        """Return a request as masked canonical text."""
        text = encode_canonical([*_head(request), request.body.value])
        return _mask(text, self.choose(request))


class TapeIndex:
    """The recorded exchanges of a notebook.

    `used`: `Recording.cell` -> for each of its executions, the newest first, the ids of the records
    that the execution used, in its order.
    """

    def __init__(
        self,
        recordings: Iterable[Recording],
        masks: TapeMasks,
        used: Mapping[str, Sequence[Sequence[str]]] = {},
    ) -> None:
        self._masks, self._used = masks, used
        self._recordings = [r for r in recordings if r.exchange.replayable]
        self._by_key: dict[str, list[Recording]] = {}
        for recording in self._recordings:
            self._by_key.setdefault(recording.key, []).append(recording)

    def find(
        self, request: Request, cell: str, used: set[str], *, errors: bool = True
    ) -> Recording | Miss:
        """Return the recording that answers a redacted request of a cell, and add it to `used`.

        `used`: the records that this execution of the cell has used. `errors`: whether a recorded
        error is an answer.
        """
        candidates = self._by_key.get(self._masks.make_key(request), [])
        for recording in self._in_order(candidates, cell):
            status = recording.exchange.response.status
            if status >= 400 and not errors:
                return Miss(f"the recorded answer is an error ({status})")
            if recording.record not in used:
                if status not in RETRIED:
                    used.add(recording.record)
                return recording
        if candidates:
            count = len({r.record for r in candidates} & used)
            return Miss(f"the request was recorded {count} times, and is sent once more")
        return Miss(self._describe_nearest(request, cell))

    def _in_order(self, candidates: Sequence[Recording], cell: str) -> list[Recording]:
        """Return the recordings to try, in order; see the rules of the file."""
        chosen: dict[str, Recording] = {}
        for name in dict.fromkeys([cell, *(r.cell for r in candidates)]):
            for recording in self._choose_execution(candidates, name):
                chosen.setdefault(recording.record, recording)
        return list(chosen.values())

    def _choose_execution(self, candidates: Sequence[Recording], cell: str) -> list[Recording]:
        """Return the recordings of the newest execution of a cell that used any, in its order."""
        by_id = {r.record: r for r in candidates}
        for ids in self._used.get(cell, ()):
            if listed := [by_id[name] for name in ids if name in by_id]:
                return listed
        own = sorted((r for r in candidates if r.cell == cell), key=lambda r: r.ordinal)
        newest = max(own, key=lambda r: r.started, default=_NONE)
        return [r for r in own if r.execution == newest.execution]

    def _describe_nearest(self, request: Request, cell: str) -> str:
        if not self._recordings:
            return "no model call of this notebook is recorded"
        same_place = [r for r in self._recordings if _head(r.exchange.request) == _head(request)]
        if not same_place:
            known = sorted({" ".join(_head(r.exchange.request)).strip() for r in self._recordings})
            return (
                f"{' '.join(_head(request)).strip()} is not recorded, only {', '.join(known[:5])}"
            )
        masks = self._masks.choose(request)
        wanted = _mask(encode_canonical(request.body.value), masks)[-_COMPARED:]
        matcher = SequenceMatcher(b=wanted, autojunk=True)

        def nearness(recording: Recording) -> tuple[float, bool]:
            recorded = recording.exchange.request
            text = _mask(encode_canonical(recorded.body.value), self._masks.choose(recorded))
            matcher.set_seq1(text[-_COMPARED:])
            return matcher.quick_ratio(), recording.cell == cell

        nearest = max(same_place, key=nearness).exchange.request
        pair = nearest.body.value, request.body.value
        difference = next(_find_differences(*pair, (self._masks.choose(nearest), masks)), None)
        if (
            difference is None
        ):  # a mask fits a single field and not the whole text, or the other way
            return "the recorded request differs in what `normalize` masks"
        path, old, new = difference
        one, other = map(read_version, pair)
        program = f" Claude Code was {one} and is {other}." if one != other else ""
        return f"{path or 'the body'} differs from the recorded request: {old} → {new}{program}"


def _find_differences(
    old: Any, new: Any, masks: tuple[_Masks, _Masks]
) -> Iterator[tuple[str, str, str]]:
    """Yield (path, recorded value, new value) of the fields that differ, each with its masks."""
    pending = [(old, new, "")]
    while pending:
        old, new, path = pending.pop()
        if _mask(encode_canonical(old), masks[0]) == _mask(encode_canonical(new), masks[1]):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            names = [*old, *(n for n in new if n not in old)]
            pending += [
                (old.get(n, _MISSING), new.get(n, _MISSING), f"{path}.{n}" if path else n)
                for n in reversed(names)
            ]
        elif isinstance(old, list) and isinstance(new, list):
            longest = max(len(old), len(new))
            pending += [
                (
                    old[n] if n < len(old) else _MISSING,
                    new[n] if n < len(new) else _MISSING,
                    f"{path}[{n}]",
                )
                for n in reversed(range(longest))
            ]
        else:
            yield path, *_show_both(old, new)


def _mask(text: str, masks: _Masks) -> str:
    for pattern, replacement in masks:
        text = pattern.sub(lambda _, new=replacement: new, text)  # type: ignore[misc]
    return text


_MISSING = "(missing)"
_NONE = Recording(exchange=None, key="", record="", started=-1.0)  # type: ignore[arg-type]  # holds no exchange


def _head(request: Request) -> tuple[str, ...]:
    provider = _LOOPBACK.sub(r"\1", request.provider)
    return provider, request.method, request.path, request.query


def _show_both(old: Any, new: Any) -> tuple[str, str]:
    """Return two values as short texts of one line, from a little before they differ."""
    texts = [value if value is _MISSING else encode_canonical(value) for value in (old, new)]
    pairs = enumerate(zip(*texts, strict=False))
    start = next((n for n, (a, b) in pairs if a != b), min(map(len, texts))) - _BEFORE
    cut = [f"…{text[start:]}" if start > 0 else text for text in texts]
    one, other = (f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text for text in cut)
    return one, other
