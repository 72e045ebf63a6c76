"""Approve the calls of a replay: by the recorded approval, or anew for a foreign record.

Why: a recorded yes must not let a stranger's code run.

Rules
- A recorded approval counts only in a trusted record and only for the same arguments. The current
  policy can still deny the call.
- The user is asked about each call of a foreign record (`recorded_turns`).
"""

from __future__ import annotations

import uuid
from typing import Any

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
)
from ..wire import encode_canonical
from .clean_json import clean_value
from .recorded_turns import RecordedTurns


class ReplayApprover(Approver):
    """Approves the calls of the replay of `turns`."""

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
