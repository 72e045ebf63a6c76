"""The stricter check of a replay in a test: its results, and the code, files and rules behind them.

Rules
- Results of calls that run again are compared as strictly as tool and cell demand (`Compare`). A
  record without its place (time zone and folders) is compared as in any replay (`normalize`).
- A changed tool is a warning, and so is a sub-agent of which only parameters or description
  changed; other changes are faults. A change of a tool's code counts only if one of its results
  came from the record: where all its calls ran again, their results were compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ..events import End, Result
from ..record import DisplayPair, normalize_value
from ..tools import Compare, Outcome, Policy, Tool, ToolRunner, Toolset
from ..wire import as_dict
from . import result_pictures
from .dependencies import (
    CodeReader,
    Digests,
    digest_dependencies,
    find_changed,
    follows_earlier_rules,
    is_built_in,
)
from .masking.durations import EXACT, LINES, Measures
from .masking.surroundings import Side, describe_place
from .recorded_turns import RecordedTurns

if TYPE_CHECKING:
    from .masking.masks import Difference, Rule

# name of a part of an agent or a tool (`find_changed`) -> words for the report
AGENT_WORDS = {"model": "its model", "settings": "its settings", "tools": "its tools"}
CODE = ("code", "source")
TOOL_WORDS = {"schema": "its parameters or its description", **dict.fromkeys(CODE, "its code")}
# the rule, in `Checked.masked`, by which a record without its place is compared
WITHOUT_PLACE = "recorded without its place"
# from the value that compares most to the one that compares least
LEAST_LAST: tuple[Compare, ...] = ("exact", "full", "text", "none")


def combine_compare(tool: Compare, cell: Compare) -> Compare:
    """Return how results are compared: as the one of `tool` and `cell` that compares fewer parts.

    "exact" and "full" compare the same parts; together they give "exact".
    """
    least = max(tool, cell, key=LEAST_LAST.index)
    return "exact" if least == "full" and "exact" in (tool, cell) else least


def compares_pictures(compare: Compare) -> bool:
    """Return whether `compare` covers pictures and displays, besides text."""
    return LEAST_LAST.index(compare) <= LEAST_LAST.index("full")


class ReplayStrictness(msgspec.Struct, frozen=True, kw_only=True):
    """How strictly a test compares results: the cell's option and the project's mask rules."""

    compare: Compare = "full"
    rules: tuple[Rule, ...] = ()


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change since the recording. `warning`: the result may still be the same."""

    text: str
    warning: bool = False


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a check.

    `masked`: the differences that did not count. `unseen`: the things that could not be checked, in
    words. `ran`: how many calls ran again.
    """

    changes: tuple[Change, ...] = ()
    masked: tuple[Difference, ...] = ()
    unseen: tuple[str, ...] = ()
    ran: int = 0


class ReplayCheck:
    """Checks the replay of one recorded run.

    Make it before the replay begins: it notes the time, and reads the code of all tools. `tools`,
    `policy`, `folder`: the run's, as they are now.
    """

    def __init__(
        self,
        turns: RecordedTurns,
        strictness: ReplayStrictness,
        tools: Toolset,
        policy: Policy,
        folder: str,
    ) -> None:
        self._turns, self._strictness, self._folder = turns, strictness, folder
        self._toolset, self._policy = tools, policy
        self._recorded_digests: Mapping[str, Any] = turns.setting("behind") or {}
        self._recorded_place = turns.setting("place")
        self._began = time.time()
        self._unread: set[str] = set()  # names of functions whose code cannot be read
        earlier = follows_earlier_rules(turns.events)
        reader = CodeReader(folder=folder, earlier=earlier, unread=self._unread)
        self._current_digests: Digests = digest_dependencies(tools, reader)
        self._masked: list[Difference] = []
        self._unseen: set[str] = set()

    def describe_difference(
        self, tool: Tool, forms: Sequence[Any], result: Result, content: Any, outcome: Outcome
    ) -> str | None:
        """Return in words how a result differs ("": in its text), None if it does not.

        `result`: the recorded result. `content`, `outcome`: of the call that ran again. One of
        `forms`, which the recorded content may have, must equal `content`.
        """
        compare = combine_compare(tool.compare, self._strictness.compare)
        if compare == "none":
            return None
        measures = EXACT if compare == "exact" else None
        same = partial(self._same_content, tool=tool, result=result, measures=measures)
        if not any(same(form, content) for form in forms):
            return ""
        cut = {(result.seq, "display"), (result.seq, "attachments")} & self._turns.cut
        if not compares_pictures(compare) or cut:
            return None
        pictures = result_pictures.compare_result_pictures(result, outcome, same)
        self._unseen |= {pictures.unseen, pictures.note} - {""}
        if pictures.difference:
            return pictures.difference
        displays = DisplayPair(result.display or {}, outcome.display or {})
        self._unseen |= {f"what {tool.name} shows as {k}" for k in displays.uncompared_kinds()}
        return displays.difference(same) or None

    def make_outcome(self, rerun: Mapping[str, bool]) -> Checked:
        """Return the outcome after a replay.

        `rerun`: id of each call that was to run again -> whether it was allowed to.
        """
        changes = tuple(self._list_changes(set(rerun)))  # which adds to `_unseen`
        code = (f"the code of {name}" for name in sorted(self._unread))
        masked, unseen = tuple(dict.fromkeys(self._masked)), (*sorted(self._unseen), *code)
        return Checked(changes=changes, masked=masked, unseen=unseen, ran=sum(rerun.values()))

    def _same_content(
        self, recorded: Any, content: Any, tool: Tool, result: Result, measures: Measures | None
    ) -> bool:
        """Return whether two contents of a result are the same; collect masked differences.

        `measures`: the durations that may differ (None: those that the call's code measures).
        """
        # only here: a run without a record to compare compiles none of the patterns of the masks
        from .masking.masks import Difference, compare_results

        sides = self._find_sides()
        if sides is None:
            same = normalize_value(recorded) == normalize_value(content)
            if same and recorded != content:
                difference = Difference(WITHOUT_PLACE, str(recorded), str(content))
                self._masked.append(difference.shorten())
            return same
        compare = partial(compare_results, recorded, content, *sides, rules=self._strictness.rules)
        verdict = compare(measures=measures or LINES)
        if not verdict.same and measures is None:
            code_measures = self._read_measures(tool, result)
            if code_measures != LINES:
                verdict = compare(measures=code_measures)
        self._masked += verdict.masked
        return verdict.same

    def _read_measures(self, tool: Tool, result: Result) -> Measures:
        """Return which durations the code of a call measures."""
        from .masking.clock_reads import read_code_measures, read_function_measures

        if not is_built_in(tool):
            return read_function_measures(tool.invoke, self._folder)
        code = self._turns.arguments(self._turns.calls[result.call_id]).get("code")
        return read_code_measures(code, self._folder) if isinstance(code, str) else LINES

    def _find_sides(self) -> tuple[Side, Side] | None:
        """Return the places of the recorded run and of this one; None if the record has none."""
        if not isinstance(self._recorded_place, Mapping) or not self._turns.events:
            return None
        first, last = self._turns.events[0].ts, self._turns.events[-1].ts
        fresh_place = describe_place(self._folder)
        return (
            Side.read(self._recorded_place, first, last),
            Side.read(fresh_place, self._began, time.time()),
        )

    def _list_changes(self, ran: set[str]) -> Iterator[Change]:
        yield from self._tool_changes(ran)
        for event in self._turns.events:
            if isinstance(event, End):
                yield from self._file_changes(as_dict((event.extra or {}).get("files")))
        yield from self._denied_calls(ran)

    def _tool_changes(self, ran: set[str]) -> Iterator[Change]:
        """Yield the changes of tools and sub-agents; `ran`: the calls that ran again."""
        # (agents around it, name) of each tool with a result that came from the record
        played = {
            (self._turns.agents_around(call.span), call.name)
            for call in self._turns.finished_calls
            if call.call_id not in ran
        }
        changed_parts: dict[tuple[str, str], list[str]] = {}  # of a tool or agent, by the same key
        for changed in find_changed(self._recorded_digests, self._current_digests):
            key = (changed.agents, changed.name)
            if changed.part not in CODE or key in played:  # else its results were compared
                changed_parts.setdefault(key, []).append(changed.part)
        for (agents, name), parts in changed_parts.items():
            yield _make_change(agents, name, parts)

    def _file_changes(self, files: Mapping[str, Any]) -> Iterator[Change]:
        for name, digest in files.items():
            now = ToolRunner.digest_file(self._folder, str(name))
            if not now:
                self._unseen.add(f"the file {name}, which is not here")
            elif now != digest:
                yield Change(text=f"the file {name} changed since the run read it")

    def _denied_calls(self, ran: set[str]) -> Iterator[Change]:
        """Yield the calls that came from the record and that the policy denies now."""
        for call in self._turns.finished_calls:
            tool = self._turns.tool_of(call, self._toolset)
            if call.call_id in ran or tool is None:
                continue
            agent = self._turns.agent_of(call.span, self._toolset)
            policy = self._policy if agent is None else agent.policy()
            verdict, reason = policy.judge(tool, self._turns.arguments(call))
            if verdict == "deny":
                explanation = f": {reason}" if reason else ""
                yield Change(
                    text=f"the policy denies `{call.name}` (call {call.call_id}), which ran when it was recorded{explanation}"
                )


def _make_change(agents: str, name: str, parts: Sequence[str]) -> Change:
    """Return the change of `parts` of a tool or agent; `agents`: the sub-agents around it."""
    kind = "" if parts[0] in TOOL_WORDS else "the agent "
    owner = f" of the agent `{agents}`" if agents else ""
    words = " and ".join((TOOL_WORDS | AGENT_WORDS)[part] for part in parts)
    return Change(
        text=f"{kind}`{name}`{owner} changed since the recording: {words}",
        warning=all(part in TOOL_WORDS for part in parts),
    )
