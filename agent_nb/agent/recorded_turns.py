"""A recorded run ready for replay, and which of its calls may run again.

Calls that touch the kernel run again: their tool declares it, or is an undeclared function that
uses variables of the kernel. Calls that were denied, cancelled or timed out do not.

Rule: a record that this user neither signed nor trusts is foreign, and the arguments of its calls
are a stranger's. A call runs again only after the user allows exactly these arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from ..errors import UsageError
from ..events import Approval, Call, Event, Result, RunStart
from ..record import (
    LogCalls,
    Match,
    Payloads,
    Record,
    UserKey,
    covers_record,
    events_of,
    is_intact,
)
from ..tools import Tool, Toolset, find_used_variables
from ..wire import as_dict, as_list
from .dependencies import follows_earlier_rules


class RecordedTurns(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A recorded run, ready for replay.

    `own`: this user signed it. `trusted`: `own`, or the user trusts it; else it is foreign. `live`:
    a replay stops at a drift and continues live, only for a trusted record. `cut`: (seq, field) of
    values that the size limit removed.
    """

    FOREIGN: ClassVar[str] = "This code comes from a record that you have not signed"
    NOBODY_TO_ASK: ClassVar[str] = (
        "and there is nobody to ask. If you trust the notebook: --trust-record (pytest: --agent-nb-trust-record), or AGENT_NB_TRUST_RECORD=1"
    )
    NOT_TRUSTED: ClassVar[str] = f"{FOREIGN}, {NOBODY_TO_ASK}"

    events: Sequence[Event]
    own: bool = False
    trusted: bool = False
    live: bool = False
    cut: frozenset[tuple[int, str]] = frozenset()

    @classmethod
    def of(
        cls,
        record: Record,
        payloads: Mapping[str, Any] | None = None,
        *,
        key: UserKey | None = None,
        trust: bool | Collection[str] = False,
        live: bool = False,
        home: str | None = None,
        checked: bool = False,
    ) -> RecordedTurns:
        """Return the turns of a record.

        It is trusted if `key` signed the record or `trust` covers it (True: any record; else those
        with these hashes). `live` counts only if it is trusted. `checked`: `Match.find` has
        verified the hash. `home`: see `record.events_of`. Raises UsageError if the record does not
        match its hash.
        """
        complete = Payloads.attach(record, payloads) if payloads else record
        if not checked and not is_intact(complete):
            raise UsageError(
                f"{Match.TAMPERED[0].upper()}{Match.TAMPERED[1:]}. Run the cell live to record it again."
            )
        is_own = key is not None and key.signed_hash(complete)
        trusted = is_own or covers_record(trust, complete)
        return cls(
            events=events_of(complete, home=home),
            own=is_own,
            trusted=trusted,
            live=live and trusted,
            cut=frozenset(_read_cuts(complete.get("cut"))),
        )

    @property
    def run(self) -> str:
        """The id of the recorded run."""
        return self.events[0].run if self.events else ""

    def setting(self, name: str) -> Any:
        """Return a setting in the `run_start` of the recorded run, None if it is missing."""
        return self._start.settings.get(name)

    @cached_property
    def _start(self) -> RunStart:
        return RunStart.first_in(self.events)

    def choose_tools(self, toolset: Toolset) -> Toolset:
        """Return the tools for a replay; `toolset` has those that a live run would use.

        If the prompt chose no tools, neither now nor at the recording, the record's tools are used.
        """
        inputs = self.setting("inputs")
        if toolset.by_prompt or not isinstance(inputs, Mapping) or inputs.get("tools"):
            return toolset
        return Toolset.unchosen(self._start.tools)

    @staticmethod
    def touches_kernel(tool: Tool, *, earlier: bool = False) -> bool:
        """Return whether a tool touches variables of the kernel, so that a replay must call it.

        `earlier`: decide as the versions did that wrote old records.
        """
        if tool.declared:
            return tool.uses_kernel
        return tool.uses_kernel or bool(find_used_variables(tool.invoke, earlier=earlier))

    @classmethod
    def shares_variables(cls, tool: Tool, *, hosted: bool = True) -> bool:
        """Return whether a tool uses the user's variables, or a sub-agent has such a tool.

        `hosted`: the tools of the run work in the user's namespace, not in a separate one.
        """
        if tool.agent is not None:
            return any(cls.shares_variables(each, hosted=hosted) for each in tool.agent.tools)
        if hosted:
            return cls.touches_kernel(tool)
        return tool.effect == "reads" or bool(find_used_variables(tool.invoke))

    def must_rerun(self, tool: Tool) -> bool:
        """Return whether a replay must call the tool again, by the rules of this record's time."""
        return self.touches_kernel(tool, earlier=follows_earlier_rules(self.events))

    def calls_to_rerun(self, toolset: Toolset) -> list[Call]:
        """Return the calls that a replay with these tools runs again, in start order.

        The rows of a map are runs of their own: their calls are not among them.
        """
        tools = ((call, self.tool_of(call, toolset)) for call in self.finished_calls)
        return [call for call, tool in tools if tool is not None and self.must_rerun(tool)]

    def calls_to_rerun_with_rows(self, toolset: Toolset) -> list[Call]:
        """Return the calls that a replay with these tools runs again, in the rows of a map too.

        Raises UsageError if the record holds too many inner records.
        """
        if not any(tool.agent is not None or self.touches_kernel(tool) for tool in toolset):
            return []
        logs = (RecordedTurns(events=run.log) for run in LogCalls.read_all(self.events))
        return [call for turns in logs for call in turns.calls_to_rerun(toolset)]

    def foreign_calls(self, toolset: Toolset) -> list[Call]:
        """Return the calls of a foreign record that run again only with the user's consent.

        Raises UsageError as `calls_to_rerun_with_rows` does.
        """
        return [] if self.trusted else self.calls_to_rerun_with_rows(toolset)

    def tool_of(self, call: Call, toolset: Toolset) -> Tool | None:
        """Return the tool of a call: from `toolset`, or from the sub-agent that made the call."""
        agent = self.agent_of(call.span, toolset)
        tools = toolset if agent is None else agent.tools
        return tools.get(call.name)

    def agent_of(self, span: str, toolset: Toolset) -> Any:
        """Return the sub-agent whose call opened `span`, or None."""
        agent: Any = None
        for call in self._log_calls.list_agents(span):
            tool = (toolset if agent is None else agent.tools).get(call.name)
            agent = tool.agent if tool is not None else None
        return agent

    def agents_around(self, span: str) -> str:
        """Return the names of the sub-agents around `span`, outermost first, as `a/b`."""
        return "/".join(call.name for call in self._log_calls.list_agents(span))

    @cached_property
    def _log_calls(self) -> LogCalls:
        return LogCalls(self.events)

    @cached_property
    def calls(self) -> Mapping[str, Call]:
        """The calls of the log by id."""
        return {e.call_id: e for e in self.events if isinstance(e, Call)}

    @cached_property
    def results(self) -> Mapping[str, Result]:
        """The results of the log by the ids of their calls."""
        return {e.call_id: e for e in self.events if isinstance(e, Result)}

    @cached_property
    def finished_calls(self) -> tuple[Call, ...]:
        """The calls of the log that ran to completion, in start order."""
        return tuple(call.call for call in self._log_calls.list_repeatable())

    def arguments(self, call: Call) -> dict[str, Any]:
        """Return the arguments a call ran with: the approved ones, else the model's."""
        return self._log_calls.find_args(call)

    def approval(self, call_id: str) -> Approval | None:
        """Return the recorded decision about a call, or None."""
        return self._log_calls.decisions.get(call_id)


def _read_cuts(cuts: Any) -> Iterator[tuple[int, str]]:
    """Yield (seq, field) of each value that the size limit removed; skip malformed entries."""
    for cut in as_list(cuts):
        seq, name = as_dict(cut).get("seq"), as_dict(cut).get("field")
        if isinstance(seq, int) and isinstance(name, str):
            yield seq, name
