"""The drift of a replay: the first difference from its record, and how to continue live from there.

`loop` continues from these values without importing the player of `replay`.

Rule: a result is compared in the form in which it would be recorded today, or in which an older
version recorded its pictures (`result_pictures`). A value that the size limit removed is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..events import Call, Event, EventLog, Execute, Result, State, is_tool_event, result_fields
from ..record import SideBySide, normalize_value
from ..tools import Outcome, Tool, Toolset, Update, find_used_variables, remove_chart_notes
from ..wire import encode_canonical
from . import result_pictures
from .attachments import recorded_pictures
from .clean_json import clean_value
from .context import replace_context
from .dependencies import is_built_in
from .recorded_turns import RecordedTurns
from .replay_check import Checked, ReplayCheck, compares_pictures


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """The first difference of a replay: a call that ran again with another result.

    `seq`: the number of the recorded result. `name`: of the tool. `recorded`, `fresh`: the results
    as text. `reads`: the notebook variables that made an undeclared function run again. `how`: the
    difference in words, if the texts do not show it.
    """

    seq: int
    call_id: str
    name: str
    recorded: str
    fresh: str
    reads: list[str] = []
    how: str = ""

    def __str__(self) -> str:
        """Return the difference as lines, recorded and fresh side by side."""
        head = f"{self.name} returned something else than in the record (event {self.seq}, call {self.call_id})"
        if self.how:
            return f"{head}: {self.how}"
        return f"{head}\n{SideBySide(self.recorded, self.fresh).columns()}"


class DriftFinder:
    """Compares the results of calls that ran again with the recorded ones.

    `redact` returns a JSON value without secrets. `strict` adds the stricter comparison of tests.
    `unrecorded` collects pictures and displays that the record lacks (`Played`).
    """

    def __init__(
        self, turns: RecordedTurns, redact: Callable[[Any], Any], strict: ReplayCheck | None
    ) -> None:
        self.unrecorded: list[Mapping[str, Any]] = []
        self._turns, self._redact, self._strict = turns, redact, strict

    def find(
        self, batch: Execute, outcomes: Mapping[str, Outcome], toolset: Toolset
    ) -> Drift | None:
        """Return the first difference between a batch's fresh outcomes and recorded results.

        `outcomes`: of the calls that ran again, by call id. `toolset`: the tools of the run.
        """
        for call_id in batch.calls:
            outcome, result = outcomes.get(call_id), self._turns.results.get(call_id)
            if outcome is None or result is None:
                continue
            call = self._turns.calls.get(call_id)
            tool = None if call is None else self._turns.tool_of(call, toolset)
            if (drift := self._compare(result, outcome, tool)) is not None:
                return drift
        return None

    def _compare(self, result: Result, outcome: Outcome, tool: Tool | None) -> Drift | None:
        """Return how an outcome differs from a recorded result, None if it does not."""
        content = self._redact(clean_value(outcome.content))
        difference: str | None = ""  # "": the statuses or texts differ; None: nothing differs
        if outcome.status == result.status:
            difference = self._describe_difference(result, content, outcome, tool)
        if difference is None:
            return None
        recorded = _result_text(result.status, result.content)
        fresh = _result_text(outcome.status, content)
        if recorded == fresh:
            difference = difference or _describe_types(result.content, content)
        reads: list[str] = []  # variables that made an undeclared function run again
        if tool is not None and tool.effect == "none":
            reads = sorted(find_used_variables(tool.invoke))
        return Drift(
            seq=result.seq,
            call_id=result.call_id,
            name=result.name,
            how=difference,
            recorded=recorded,
            fresh=fresh,
            reads=reads,
        )

    def _describe_difference(
        self, result: Result, content: Any, outcome: Outcome, tool: Tool | None
    ) -> str | None:
        """Return how a result differs in words ("": in its text), None if it does not.

        `content`: the outcome's, in the form that would be recorded.
        """
        if (result.seq, "content") in self._turns.cut:
            return None
        contents = [result.content]
        if is_tool_event(result.content):  # the content inside it counts too
            contents.append(result_fields(result.content)["content"])
        outcome = self._unify_pictures(result, outcome, tool)
        for normalize in self._choose_normalizers(result, outcome):
            content, contents = normalize(content), [normalize(c) for c in contents]
        if self._strict is not None and tool is not None:
            return self._strict.describe_difference(tool, contents, result, content, outcome)
        if normalize_value(content) not in map(normalize_value, contents):
            return ""
        is_cut = (result.seq, "attachments") in self._turns.cut
        if is_cut or (tool is not None and not compares_pictures(tool.compare)):
            return None
        pictures = result_pictures.compare_result_pictures(result, outcome, _same_text)
        return pictures.difference or None

    def _unify_pictures(self, result: Result, outcome: Outcome, tool: Tool | None) -> Outcome:
        """Return the outcome with pictures and display as the version of the record had them."""
        outcome = msgspec.structs.replace(
            outcome,
            display=self._redact(clean_value(outcome.display)),
            attachments=tuple(recorded_pictures(outcome.attachments, self._redact)),
        )
        names_pictures = tool is not None and is_built_in(tool)
        outcome, cell_displays = result_pictures.split_cell_displays(
            result, outcome, names_pictures=names_pictures
        )
        self.unrecorded += cell_displays
        if result_pictures.is_before_pictures(result, outcome):
            self.unrecorded += result_pictures.find_cell_pictures(result, outcome)
        return outcome

    @staticmethod
    def _choose_normalizers(result: Result, outcome: Outcome) -> list[Callable[[Any], Any]]:
        """Return what to apply to both texts, which may name pictures and charts differently."""
        normalizers: list[Callable[[Any], Any]] = [remove_chart_notes]
        if result_pictures.is_before_pictures(result, outcome):
            normalizers.insert(0, result_pictures.unify_names)
        if outcome.attachments:
            normalizers.append(result_pictures.without_sizes)
        return normalizers


class Resume(msgspec.Struct, frozen=True, kw_only=True):
    """What the loop needs to continue live: the events so far, the open batch, and the drift.

    `calls`: the calls of the batch. `outcomes`, `updates`: their results and progress, by call id.
    """

    events: Sequence[Event]
    calls: Sequence[Call]
    outcomes: Mapping[str, Outcome]
    updates: Mapping[str, Sequence[Update]]
    drift: Drift

    def rebase_events(self, run: str, now: float, context: State | None = None) -> list[Event]:
        """Return the events as the start of run `run`, moved in time so that the last is at `now`.

        `now`: epoch seconds. `context`: the event with the context of run `run`, which replaces the
        recorded one; None removes the recorded one.
        """
        events = replace_context(self.events, context)
        shift = round((now - events[-1].ts) * 1000) if events else 0
        times = [round(e.ts * 1000) + shift for e in events]
        return [
            msgspec.structs.replace(e, run=run, ts=ms / 1000, seq=seq)
            for seq, (e, ms) in enumerate(zip(events, times, strict=True), 1)
        ]


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a replay: its log, the first difference, and how to continue live.

    `checked`: the result of the stricter check of a test. `unrecorded`: pictures and displays of
    calls that ran again, which the record lacks because older versions left them in the cell.
    """

    log: EventLog
    drift: Drift | None = None
    resume: Resume | None = None
    checked: Checked | None = None
    unrecorded: tuple[Mapping[str, Any], ...] = ()


def _same_text(recorded: str, fresh: str) -> bool:
    return normalize_value(recorded) == normalize_value(fresh)


def _describe_types(recorded: Any, fresh: Any) -> str:
    """Describe two results that are written alike but differ in type, such as "1" and 1."""
    old, new = (type(clean_value(value)).__name__ for value in (recorded, fresh))
    return f"it is recorded as {old} and now {new}: {_result_text('ok', fresh)}"


def _result_text(status: str, content: Any) -> str:
    text = content if isinstance(content, str) else encode_canonical(clean_value(content))
    return text if status == "ok" else f"{status}: {text}"
