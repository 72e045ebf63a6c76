"""What a cell with `--map` asks: its prompt for each row of its data.

Rules
- The data is a variable, or an expression of the user that is evaluated once, in a copy of the
  names: nothing in the kernel changes.
- A record of the same rows is played, unless it is the user's own and rows of it failed. Else rows
  that trusted records of the cell, or the store, answer are taken from there, and the others are
  asked; with `--live` all are asked anew.
- Where nothing runs live, a row without a record is an error that names it.
- The map is left in `_map` and its frame in the variable of `-o`, whatever ended it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from ...agent import Context, ReplayStrictness, Resume, Stream, Tape
from ...errors import NotReplayed, UsageError, did_you_mean
from ...events import State
from ...record import (
    Match,
    Record,
    RunInputs,
    covers_record,
    events_of,
    is_intact,
    names_signer,
    user_key,
)
from ...rows import Agent
from ...view import clip_text
from ..options import LATEST, Options
from .failed_cell import Question
from .rerun import Choice, recording_advice

if TYPE_CHECKING:
    from ...rows import MapStream, Row

ACTS_FOR_USER = True  # reads their data: ■ interrupts it (notebook/cell/interrupts.py)
MAP = "_map"  # the variable of the latest map
NAMED, LONGEST = 10, 80  # rows that an error names, characters of a prompt in it
NOTHING = "Nothing to replay:"
OTHERWISE = "every row has a record, but the map of them has none (the data was sorted or cut): it asks nothing when it runs again."


class Mapped:
    """The map of one cell; `question` is its prompt as written, `namespace` the user's names."""

    foreign = 0

    def __init__(self, question: Question, options: Options, namespace: dict[str, Any]) -> None:
        self.question = question
        self._options, self._namespace = options, namespace
        self._stream: MapStream | None = None

    def given(self, agent: Agent) -> RunInputs:
        """Return the inputs of the map. Raises UsageError for data or a prompt of no use."""
        from ...rows import start_map

        options = self._options
        self._stream = start_map(
            agent,
            data_of(options.map, self._namespace),
            self.question.prompt,
            options.mapping,
            attachments=_attached(options.attach, self._namespace),
            store=options.store or None,
            check=False,
            record=False,
            late=True,
        )
        return self._stream.given

    def settle(
        self,
        make: Callable[[], Choice],
        records: Sequence[Record],
        *,
        wanted: str,
        trust: bool | frozenset[str],
    ) -> Choice:
        """Return the choice that `make` makes, if the rows it needs are there.

        Raises NotReplayed for rows without a record in the mode `replay`.
        """
        assert self._stream is not None
        try:
            choice = make()
        except NotReplayed as fault:
            raise unreplayed_error(self._stream, records, fault, recording_advice()) from None
        if choice.tape is not None:
            reason = explain_unplayable(self._stream, choice.tape)
            if reason and wanted == "replay":
                raise NotReplayed(f"{reason} {recording_advice()}")
            if not reason and not (wanted == "auto" and to_finish(choice.tape)):
                return choice
            choice = Choice(Match(status="stale", changed=("rows",)))
        take_up(self._stream, records, live=wanted == "live", trust=trust)
        return choice

    def ask(
        self,
        agent: Agent,
        *,
        notes: Sequence[str | State],
        resume: Resume | None,
        context: Context,
    ) -> Stream:
        """Return the stream of a live map. Raises UsageError if it cannot be asked."""
        assert self._stream is not None
        return self._stream.ready()

    def replay(self, agent: Agent, tape: Tape, wish: ReplayStrictness | None) -> Stream:
        """Return the stream of a recorded map."""
        assert self._stream is not None
        self._stream.play(tape, wish)
        return self._stream

    def leave(self, namespace: dict[str, Any], options: Options) -> None:
        """Leave the map and its frame."""
        assert self._stream is not None
        publish_map(self._stream, namespace)
        if options.output != LATEST:
            namespace[options.output] = self._stream.frame


def is_map_stream(stream: Stream) -> TypeGuard[MapStream]:
    """Return whether a stream is a map, without loading what maps need."""
    return stream.is_map


def take_up(
    stream: Stream, records: Iterable[Record], *, live: bool, trust: bool | frozenset[str]
) -> None:
    """Let a map take the rows that trusted records answer; `live`: all are asked anew."""
    if not is_map_stream(stream):
        return
    if live:
        stream.forget()
        return
    key = user_key()
    ours = (
        r for r in records if (names_signer(r, key) or covers_record(trust, r)) and is_intact(r)
    )
    stream.know((events_of(r) for r in ours), trust)


def unreplayed_error(
    stream: Stream, records: Sequence[Record], fault: NotReplayed, advice: str
) -> NotReplayed:
    """Return the error for a map without a record of the same rows: which ones have none."""
    if not is_map_stream(stream) or not records:
        return fault
    lost = stream.unknown(events_of(r) for r in records if is_intact(r))
    reason = lacking(lost, stream) if lost else OTHERWISE
    return NotReplayed(f"{NOTHING} {reason} {advice}", fault.differences)


def explain_unplayable(stream: Stream, tape: Tape) -> str:
    """Return why the record of a map cannot be played, "" if its rows are there."""
    if not is_map_stream(stream) or not (lost := stream.missing(tape.events)):
        return ""
    return f"{NOTHING} {lacking(lost, stream)}"


def to_finish(tape: Tape) -> bool:
    """Return whether a map of the user's own has rows that failed, which are asked again."""
    from ...rows import count_failed_rows

    return tape.own and count_failed_rows(tape.events) > 0


def lacking(lost: Sequence[Row], stream: MapStream) -> str:
    """Return words for the rows that no record answers."""
    first, total = lost[0], len(stream.results)
    file = f" The store of this map, {stream.absent}, is missing." if stream.absent else ""
    places = [str(row.position) for row in lost[:NAMED]]
    more = [f"{len(lost) - NAMED} more"] if len(lost) > NAMED else []
    *head, last = [*places, *more]
    listed = f"{', '.join(head)} and {last}" if head else last
    has = "row has" if len(lost) == 1 else "rows have"
    named = f"row {listed}" if len(lost) == 1 else f"rows {listed}"
    example = f"row {first.position} asks “{clip_text(first.prompt, LONGEST)}”"
    return f"{len(lost):,} of {total:,} {has} no record: {named} ({example}).{file}"


def publish_map(stream: Stream, namespace: dict[str, Any]) -> None:
    """Leave a stream that is a map in the user's names."""
    if is_map_stream(stream):
        namespace[MAP] = stream


def data_of(expression: str, namespace: Mapping[str, Any]) -> Any:
    """Return the data of `--map`. Raises UsageError if there is none."""
    if expression.isidentifier() and expression not in namespace:
        hint = did_you_mean(expression, [n for n in namespace if not n.startswith("_")])
        raise UsageError(f"--map {expression}: there is no variable of this name.{hint}")
    try:
        return eval(compile(expression, "<--map>", "eval"), dict(namespace))  # noqa: S307  (the user's own code)
    except Exception as fault:
        cause = f"{type(fault).__name__}: {fault}"[:500]
        raise UsageError(f"--map {expression!r} failed: {cause}. Nothing was sent.") from fault


def _attached(names: Sequence[str], namespace: Mapping[str, Any]) -> Any:
    """Return the attachments of every row: a column's name, or the pictures themselves."""
    if len(names) == 1 and names[0] not in namespace and not Path(names[0]).exists():
        return names[0]
    return [namespace.get(name, name) for name in names] or None
