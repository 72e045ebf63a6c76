"""The inputs of a cell with `--map`: its prompt, for each row of its data.

Why apart from `prepare`: maps are a tenth of all that a cell imports, and few cells need them.

Rule: a record of the same rows is played, unless (in the mode `auto`) it is the user's own and rows
of it failed. Else rows that trusted records or the store answer are reused; `--live` asks all anew.
Where nothing runs live, a row without a record is an error that names it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeGuard

from ...agent import Context, RecordedTurns, ReplayStrictness, Resume, Stream
from ...errors import NotReplayed, UsageError, did_you_mean
from ...events import State
from ...record import Match, Record, RunInputs, UserKey, covers_record, events_of, is_intact
from ...rows import Agent
from ...view import clip_text
from ..options import LATEST, Options
from .cell_prompt import CellPrompt
from .rerun import ReplayChoice, ReplayRules, recording_advice

if TYPE_CHECKING:
    from ...rows import MapStream, Row

ACTS_FOR_USER = True  # it reads the user's data: stop (■) interrupts it (`interrupts.STAND_IN`)
MAP = "_map"  # the variable of the latest map
_MOST_NAMED = 10  # rows that an error names
_LONGEST_PROMPT = 80  # characters of a prompt in an error
_NOT_REPLAYED = "Nothing to replay:"
# the error where each row is on record but the map itself has no record
_OTHER_ROWS = "every row has a record, but the map of them has none (the data was sorted or cut): it asks nothing when it runs again."


class MapInputs:
    """The map of one cell; `prompt` still has its `{{ }}`, which each row fills with its values.

    It has the methods of `PromptInputs`. Call `run_inputs` first: it makes the map for the others.
    """

    foreign_count = 0  # rows are asked alone: no turn of a conversation is sent

    def __init__(self, prompt: CellPrompt, options: Options, namespace: dict[str, Any]) -> None:
        self.prompt = prompt
        self._options, self._namespace = options, namespace
        self._stream: MapStream | None = None

    @property
    def _map(self) -> MapStream:
        assert self._stream is not None, "`run_inputs` makes the map"
        return self._stream

    def run_inputs(self, agent: Agent) -> RunInputs:
        """Make the map and return its inputs. Raises UsageError for unusable data or prompts."""
        from ...rows import start_map

        options = self._options
        self._stream = start_map(
            agent,
            evaluate_data(options.map, self._namespace),
            self.prompt.text,
            options.mapping,
            attachments=_row_attachments(options.attach, self._namespace),
            store=options.store or None,
            check=False,  # the cell itself fails, and makes the record
            record=False,
            late=True,  # `start` calls `ready`
        )
        return self._stream.given

    def choose_replay(
        self, decide: Callable[[], ReplayChoice], records: Sequence[Record], rules: ReplayRules
    ) -> ReplayChoice:
        """Return the decision of `decide`, unless its record lacks rows or has some to ask again.

        Then the map runs live, and reuses the rows that trusted `records` answer. Raises
        NotReplayed in the mode `replay` for rows without a record.
        """
        try:
            choice = decide()
        except NotReplayed as fault:
            raise unreplayed_error(self._map, records, fault, recording_advice()) from None
        if choice.turns is not None:
            if self._has_all_rows(choice.turns, rules.mode):
                return choice
            choice = ReplayChoice(Match(status="stale", changed=("rows",)))
        use_known_rows(self._map, records, live=rules.mode == "live", trust=rules.trust)
        return choice

    def _has_all_rows(self, turns: RecordedTurns, mode: str) -> bool:
        """Return whether a record has the rows that a mode needs. Raises NotReplayed."""
        from ...rows import count_failed_rows

        if reason := explain_unplayable(self._map, turns):
            if mode == "replay":
                raise NotReplayed(f"{reason} {recording_advice()}")
            return False
        # in the mode `auto` the user's own failed rows are asked again
        return not (mode == "auto" and turns.own and count_failed_rows(turns.events))

    def start(
        self, agent: Agent, *, notes: Sequence[str | State], resume: Resume | None, context: Context
    ) -> Stream:
        """Return the stream of a live map; it has its agent, and needs none of the arguments."""
        return self._map.ready()

    def replay(
        self, agent: Agent, turns: RecordedTurns, strictness: ReplayStrictness | None
    ) -> Stream:
        """Return the stream of a recorded map; `strictness`: see `rerun.replay_strictness`."""
        self._map.play(turns, strictness)
        return self._map

    def publish_result(self, namespace: dict[str, Any], options: Options) -> None:
        """Leave the map and its frame in the user's namespace."""
        publish_map(self._map, namespace)
        if options.output != LATEST:
            namespace[options.output] = self._map.frame


def is_map_stream(stream: Stream) -> TypeGuard[MapStream]:
    """Return whether a stream is a map, without importing the class for it."""
    return stream.is_map


def use_known_rows(
    stream: MapStream, records: Iterable[Record], *, live: bool, trust: bool | frozenset[str]
) -> None:
    """Let a map use the rows that the user's own or trusted records answer.

    `live`: all rows are asked anew, even those in the map's store.
    """
    if live:
        stream.forget()
        return
    key = UserKey.read()
    trusted = (
        r for r in records if (key.signed_hash(r) or covers_record(trust, r)) and is_intact(r)
    )
    stream.take_earlier_rows((events_of(r) for r in trusted), trust)


def unreplayed_error(
    stream: Stream, records: Sequence[Record], fault: NotReplayed, advice: str
) -> NotReplayed:
    """Return the error that names the rows of a map without a record; `fault` for other streams."""
    if not is_map_stream(stream) or not records:
        return fault
    missing = stream.find_unrecorded_rows(events_of(r) for r in records if is_intact(r))
    reason = describe_missing_rows(missing, stream) if missing else _OTHER_ROWS
    return NotReplayed(f"{_NOT_REPLAYED} {reason} {advice}", fault.differences)


def explain_unplayable(stream: Stream, turns: RecordedTurns) -> str:
    """Return why the record of a map cannot be played, "" if it can, or for other streams."""
    if not is_map_stream(stream) or not (missing := stream.find_lost_rows(turns.events)):
        return ""
    return f"{_NOT_REPLAYED} {describe_missing_rows(missing, stream)}"


def describe_missing_rows(missing: Sequence[Row], stream: MapStream) -> str:
    """Return a sentence on the rows that no record answers."""
    first, total = missing[0], len(stream.results)
    # an evaluation asks each row several times
    positions = list(dict.fromkeys(str(row.position) for row in missing))
    listed = positions[:_MOST_NAMED]
    if len(positions) > _MOST_NAMED:
        listed.append(f"{len(positions) - _MOST_NAMED} more")
    have = f"row{'' if total == 1 else 's'} {'has' if len(missing) == 1 else 'have'}"
    *others, last = listed
    numbers = f"rows {', '.join(others)} and {last}" if others else f"row {last}"
    example = f"row {first.position} asks “{clip_text(first.prompt, _LONGEST_PROMPT)}”"
    store = f" The store of this map, {stream.absent}, is missing." if stream.absent else ""
    return f"{len(missing):,} of {total:,} {have} no record: {numbers} ({example}).{store}"


def publish_map(stream: Stream, namespace: dict[str, Any]) -> None:
    """Leave a stream in the user's namespace, if it is a map."""
    if is_map_stream(stream):
        namespace[MAP] = stream


def evaluate_data(expression: str, namespace: Mapping[str, Any]) -> Any:
    """Return the value of the expression of `--map`. Raises UsageError if it has none."""
    if expression.isidentifier() and expression not in namespace:
        hint = did_you_mean(expression, [n for n in namespace if not n.startswith("_")])
        raise UsageError(f"--map {expression}: there is no variable of this name.{hint}")
    try:
        return eval(compile(expression, "<--map>", "eval"), dict(namespace))  # noqa: S307  (the user's own code)
    except Exception as fault:
        cause = type(fault).__name__
        with suppress(Exception):  # the text of the user's own error may raise, too
            cause = f"{cause}: {fault}"[:500]
        raise UsageError(f"--map {expression!r} failed: {cause}. Nothing was sent.") from fault


def _row_attachments(names: Sequence[str], namespace: Mapping[str, Any]) -> Any:
    """Return the attachments of each row: the name of a column, or the same pictures for all.

    A single name that is neither a variable nor a file means a column.
    """
    if len(names) == 1 and names[0] not in namespace and not os.path.exists(names[0]):
        return names[0]
    return [namespace.get(name, name) for name in names] or None
