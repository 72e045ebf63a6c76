"""A recorded run ready for replay, and which of its calls may run again.

Why separate from `replay`: this file decides which recorded calls may run, `replay` runs them.

Rules
- Calls that touch the kernel run again: their tool declares it, or is an undeclared function that
  uses variables of the kernel. Calls that were denied, cancelled or timed out never do.
- A record that this user neither signed nor trusts is foreign: the arguments of its calls are a
  stranger's. A call runs again only after the user allows exactly these arguments.
- A run of a foreign record never continues live.
- A recorded approval counts only in a trusted record and only for the same arguments. The current
  policy can still deny the call.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from ..errors import UsageError
from ..events import Approval, Call, Event, RunStart
from ..record import (
    LogCalls,
    Match,
    Payloads,
    Record,
    covers_record,
    events_of,
    is_intact,
    names_signer,
)
from ..tools import (
    KERNEL_PERMISSIONS,
    ApprovalSource,
    Approver,
    Decision,
    Policy,
    Question,
    Report,
    Tool,
    ToolContext,
    Toolset,
    find_used_variables,
)
from ..wire import as_dict, as_list, encode_canonical
from .clean_json import clean_value
from .dependencies import follows_earlier_rules


class RecordedTurns(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A recorded run, ready for replay.

    `own`: this user signed it. `trusted`: `own`, or the user trusts it. `live`: a replay stops at a
    drift and continues live. `cut`: (seq, field) of values that the size limit removed.
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
        key: bytes = b"",
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
        is_own = names_signer(complete, key)
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

    def calls_to_rerun(self, toolset: Toolset) -> list[Call]:
        """Return the calls that a replay with these tools runs again, in start order."""
        tools = ((call, self.tool_of(call, toolset)) for call in self.finished_calls())
        return [call for call, tool in tools if tool is not None and self.reruns(tool)]

    @staticmethod
    def must_rerun(tool: Tool, *, earlier: bool = False) -> bool:
        """Return whether a replay must call the tool again: it touches variables of the kernel.

        `earlier`: decide as the versions did that wrote old records.
        """
        return tool.uses_kernel or (
            not tool.declared and bool(find_used_variables(tool.invoke, earlier=earlier))
        )

    @classmethod
    def shares_variables(cls, tool: Tool, *, hosted: bool = True) -> bool:
        """Return whether a tool uses the user's variables, or a sub-agent has such a tool.

        `hosted`: the tools of the run work in the user's namespace, not in a separate one.
        """
        if tool.agent is not None:
            return any(cls.shares_variables(each, hosted=hosted) for each in tool.agent.tools)
        if hosted:
            return cls.must_rerun(tool)
        return tool.effect == "reads" or bool(find_used_variables(tool.invoke))

    def reruns(self, tool: Tool) -> bool:
        """Return whether a replay must call the tool again, by the rules of this record's time."""
        return self.must_rerun(tool, earlier=follows_earlier_rules(self.events))

    def tool_of(self, call: Call, toolset: Toolset) -> Tool | None:
        """Return the tool of a call: from `toolset`, or from the sub-agent that made the call."""
        agent = self.agent_of(call.span, toolset)
        tools = toolset if agent is None else agent.tools
        return tools.get(call.name)

    def agent_of(self, span: str, toolset: Toolset) -> Any:
        """Return the sub-agent whose call opened `span`, or None."""
        agent: Any = None
        for call in self._calls.around(span):
            tool = (toolset if agent is None else agent.tools).get(call.name)
            agent = tool.agent if tool is not None else None
        return agent

    def agents_around(self, span: str) -> str:
        """Return the names of the sub-agents around `span`, outermost first, as `a/b`."""
        return "/".join(call.name for call in self._calls.around(span))

    @cached_property
    def _calls(self) -> LogCalls:
        return LogCalls(self.events)

    def finished_calls(self) -> list[Call]:
        """Return the calls of the log that ran to completion, in start order."""
        return list(self._finished)

    @cached_property
    def _finished(self) -> tuple[Call, ...]:
        return tuple(call.call for call in self._calls.list_repeatable())

    def all_calls_to_rerun(self, toolset: Toolset) -> list[Call]:
        """Return the calls that a replay with these tools runs again, in the rows of a map too.

        Raises UsageError if the record holds too many inner records.
        """
        if not any(tool.agent is not None or self.must_rerun(tool) for tool in toolset):
            return []
        logs = (RecordedTurns(events=run.log) for run in LogCalls.read_all(self.events))
        return [call for turns in logs for call in turns.calls_to_rerun(toolset)]

    def foreign_calls(self, toolset: Toolset) -> list[Call]:
        """Return the calls of a foreign record that run again only with the user's consent.

        Raises UsageError as `all_calls_to_rerun` does.
        """
        return [] if self.trusted else self.all_calls_to_rerun(toolset)

    def arguments(self, call: Call) -> dict[str, Any]:
        """Return the arguments a call ran with: the approved ones, else the model's."""
        return self._calls.args(call)

    def approval(self, call_id: str) -> Approval | None:
        """Return the recorded decision about a call, or None."""
        return self._calls.decisions.get(call_id)


class ReplayApprover(Approver):
    """Approves the calls of a replay: by the recorded approval, or anew for a foreign record."""

    def __init__(
        self, turns: RecordedTurns, policy: Policy | None = None, ask: ApprovalSource | None = None
    ) -> None:
        super().__init__(policy, ask)
        self._turns = turns
        self._allowed: set[tuple[str, str]] = set()  # foreign calls, by tool and arguments

    async def decide(
        self, tool: Tool, args: dict[str, Any], context: ToolContext, report: Report
    ) -> Decision:
        """Decide whether `tool` runs again with `args`."""
        verdict, reason = self.policy.judge(tool, args)
        if verdict == "deny":
            return Decision(False, reason=reason or "the policy denies it now")
        if not self._turns.trusted:
            return await self._decide_foreign(tool, args, context, report)
        if verdict == "allow" and tool.harmless:
            return Decision(True, reason=reason)
        recorded = self._turns.approval(context.call_id)
        if recorded is not None and recorded.decision == "allow" and recorded.args is not None:
            text = _canonical_text(recorded.args)
            if text and text == _canonical_text(args):
                return Decision(True, by="recording")
        return await super().decide(tool, args, context, report)

    async def _decide_foreign(
        self, tool: Tool, args: dict[str, Any], context: ToolContext, report: Report
    ) -> Decision:
        """Ask about a call of a foreign record.

        A yes for the whole tool or run covers only further calls with the same arguments.
        """
        call = (KERNEL_PERMISSIONS.mark(tool), _canonical_text(args))
        if call in self._allowed:
            return Decision(True, by="recording", reason="allowed for this replay")
        warning = f"{RecordedTurns.FOREIGN}."
        exact = uuid.uuid4().hex  # an answer that carries it counts for these arguments only
        question = Question(
            context.call_id, tool.name, args, tool.effect, warning, exact=exact, tool=tool
        )
        extra = {"warning": warning, "question": exact}
        report.approval(context.call_id, stage="requested", args=args, extra=extra)
        answer = await self.ask(question) if self.ask is not None else None
        decision = Decision(False, reason=RecordedTurns.NOT_TRUSTED)
        if answer is not None:
            decision = self.check_edited(tool, answer)
        if decision.allow and decision.scope != "once" and decision.args is None and call[1]:
            self._allowed.add(call)
        self.report_decision(report, context.call_id, args, decision)
        return decision


def _canonical_text(args: dict[str, Any]) -> str:
    """Return arguments as canonical JSON, "" if they are not JSON."""
    try:
        return encode_canonical(clean_value(args))
    except ValueError:
        return ""


def _read_cuts(cuts: Any) -> Iterator[tuple[int, str]]:
    """Yield (seq, field) of each value that the size limit removed; skip malformed entries."""
    for cut in as_list(cuts):
        seq, name = as_dict(cut).get("seq"), as_dict(cut).get("field")
        if isinstance(seq, int) and isinstance(name, str):
            yield seq, name
