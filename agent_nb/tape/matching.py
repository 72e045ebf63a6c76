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
- A miss names the first field that differs from the nearest recorded request to the same place, or
  the places to which requests were recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

import msgspec

from ..agent import Rule
from ..record import Record, read_start_time
from ..wire import cut_end, encode_canonical
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
_LONGEST_VALUE = 100  # characters of a value in a description of a difference
_SHOWN_BEFORE = 20  # characters of the value that are shown before the difference
_COMPARED = 4_000  # characters at the end of requests, by which the nearest one is chosen

_Masks = list[tuple[re.Pattern[str], str]]


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded exchange, the record that holds it, and where and when it was made."""

    exchange: Exchange
    key: str  # of the request (`TapeMasks.make_key`)
    record: str  # the id of the record
    cell: str = ""
    execution: str = ""  # of the cell
    started: float = 0.0  # epoch seconds
    ordinal: int = 0  # the place among the exchanges of the execution

    @classmethod
    def read(cls, record: Record, masks: TapeMasks) -> Recording | None:
        """Return what a checked record holds, None if nothing replays it. Raises UsageError."""
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
        self._masks = _compile([*MASKS, *((rule.pattern, rule.replace) for rule in rules)])

    def choose(self, request: Request) -> _Masks:
        """Return the masks of a request; some programs have their own."""
        return [*_compile(list_masks(request.body.value)), *self._masks]

    def make_key(self, request: Request) -> str:
        """Return a request as masked canonical text."""
        text = encode_canonical([*_read_target(request), request.body.value])
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
        self._recordings = [r for r in recordings if r.exchange.is_replayable]
        self._by_key: dict[str, list[Recording]] = {}
        for recording in self._recordings:
            self._by_key.setdefault(recording.key, []).append(recording)

    def take(
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
            if in_order := [by_id[name] for name in ids if name in by_id]:
                return in_order
        of_cell = sorted((r for r in candidates if r.cell == cell), key=lambda r: r.ordinal)
        newest = max(of_cell, key=lambda r: r.started).execution if of_cell else ""
        return [r for r in of_cell if r.execution == newest]

    def _describe_nearest(self, request: Request, cell: str) -> str:
        if not self._recordings:
            return "no model call of this notebook is recorded"
        target = _read_target(request)
        by_target: dict[tuple[str, ...], list[Recording]] = {}
        for recording in self._recordings:
            by_target.setdefault(_read_target(recording.exchange.request), []).append(recording)
        if target not in by_target:
            known = sorted(" ".join(each).strip() for each in by_target)
            return f"{' '.join(target).strip()} is not recorded, only {', '.join(known[:5])}"
        nearest = self._choose_nearest(by_target[target], request, cell)
        return self._describe_difference(nearest, request)

    def _choose_nearest(
        self, recordings: Sequence[Recording], request: Request, cell: str
    ) -> Request:
        """Return the recorded request that is most like a request; of equals that of its cell."""
        matcher = SequenceMatcher(b=self._mask_body(request)[-_COMPARED:], autojunk=True)

        def measure_likeness(recording: Recording) -> tuple[float, bool]:
            matcher.set_seq1(self._mask_body(recording.exchange.request)[-_COMPARED:])
            return matcher.quick_ratio(), recording.cell == cell

        return max(recordings, key=measure_likeness).exchange.request

    def _mask_body(self, request: Request) -> str:
        return _mask(encode_canonical(request.body.value), self._masks.choose(request))

    def _describe_difference(self, recorded: Request, request: Request) -> str:
        before, now = recorded.body.value, request.body.value
        masks = self._masks.choose(recorded), self._masks.choose(request)
        difference = _find_difference(before, now, *masks)
        if difference is None:  # a mask fits a single field and not the whole text, or vice versa
            return "the recorded request differs in what `normalize` masks"
        shown_values = " → ".join(_show_both(difference.before, difference.now))
        text = f"{difference.path or 'the body'} differs from the recorded request: {shown_values}"
        version_before, version_now = read_version(before), read_version(now)
        if version_before == version_now:
            return text
        return f"{text} Claude Code was {version_before} and is {version_now}."


class _Difference(msgspec.Struct, frozen=True):
    """A value that differs, its `path`, what it was `before` (recorded) and is `now`."""

    path: str
    before: Any
    now: Any


def _find_difference(
    before: Any, now: Any, masks_before: _Masks, masks_now: _Masks
) -> _Difference | None:
    """Return the first of the innermost values that differ, each with its masks; None for none."""
    pending = [_Difference("", before, now)]
    while pending:
        each = pending.pop()
        path, before, now = each.path, each.before, each.now
        if _mask(encode_canonical(before), masks_before) == _mask(encode_canonical(now), masks_now):
            continue
        if isinstance(before, dict) and isinstance(now, dict):
            prefix = f"{path}." if path else ""
            inner = [
                _Difference(f"{prefix}{n}", before.get(n, _MISSING), now.get(n, _MISSING))
                for n in dict.fromkeys([*before, *now])
            ]
        elif isinstance(before, list) and isinstance(now, list):
            pairs = zip_longest(before, now, fillvalue=_MISSING)
            inner = [_Difference(f"{path}[{n}]", *pair) for n, pair in enumerate(pairs)]
        else:
            return each
        pending += reversed(inner)  # the first one is looked at next
    return None


def _compile(masks: Iterable[tuple[str, str]]) -> _Masks:
    return [(re.compile(pattern), text) for pattern, text in masks]


def _mask(text: str, masks: _Masks) -> str:
    for pattern, replacement in masks:
        text = pattern.sub(replacement.replace("\\", r"\\"), text)  # as it is, without groups
    return text


_MISSING = "(missing)"


def _read_target(request: Request) -> tuple[str, ...]:
    """Return where a request goes: provider, method, path and query."""
    provider = _LOOPBACK.sub(r"\1", request.provider)
    return provider, request.method, request.path, request.query


def _show_both(before: Any, now: Any) -> tuple[str, str]:
    """Return two values as short texts of one line, from a little before they differ."""
    texts = [v if v is _MISSING else encode_canonical(v) for v in (before, now)]
    pairs = enumerate(zip(*texts, strict=False))
    differ_at = next((n for n, (a, b) in pairs if a != b), min(map(len, texts)))
    start = max(differ_at - _SHOWN_BEFORE, 0)
    shown = (f"…{text[start:]}" if start else text for text in texts)
    text_before, text_now = (cut_end(text, _LONGEST_VALUE) for text in shown)
    return text_before, text_now
