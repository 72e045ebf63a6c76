"""Approves the calls of a replay: by the recorded approval, or anew for a foreign record.

A recorded yes must not let a stranger's code run: it counts only in a trusted record, and only for
the same arguments. The current policy can still deny the call.
"""

from __future__ import annotations

import json
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
        # foreign calls that the user allowed: mark of the tool, and arguments as JSON
        self._allowed: set[tuple[str, str]] = set()

    async def decide(
        self, tool: Tool, args: dict[str, Any], context: ToolContext, report: Report
    ) -> Decision:
        """Decide whether `tool` runs again with `args`, by the first of these that applies.

        1. The policy denies the call: no.
        2. The record is foreign: as `_decide_foreign`.
        3. The policy allows the call, and the tool is harmless: yes.
        4. The record has an approval for the same arguments: yes.
        5. Otherwise as in a live run.
        """
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
            if text and text == _canonical_text(args):  # "": not comparable
                return Decision(True, by="recording")
        return await super().decide(tool, args, context, report)

    async def _decide_foreign(
        self, tool: Tool, args: dict[str, Any], context: ToolContext, report: Report
    ) -> Decision:
        """Ask the user about a call of a foreign record; deny it if no one can be asked.

        A yes for more than this call covers only further calls of the tool with the same arguments,
        and only if these were not edited.
        """
        # not canonical JSON, which writes large integers that are equal as floats alike
        mark, text = KERNEL_PERMISSIONS.mark(tool), json.dumps(args, sort_keys=True)
        if (mark, text) in self._allowed:  # not reported again: the user's yes was reported
            return Decision(True, by="recording", reason="allowed for this replay")
        warning = f"{RecordedTurns.FOREIGN}."
        question_id = uuid.uuid4().hex  # an answer with this id counts for these arguments only
        question = Question(
            context.call_id, tool.name, args, tool.effect, warning, exact=question_id, tool=tool
        )
        extra = {"warning": warning, "question": question_id}
        answer = await self.put_question(question, report, extra)
        if answer is None:
            decision = Decision(False, reason=RecordedTurns.NOT_TRUSTED)
        else:
            decision = self.check_edited(tool, answer)
        unedited_yes = decision.allow and decision.args is None
        if unedited_yes and decision.scope != "once":
            self._allowed.add((mark, text))
        self.report_decision(report, context.call_id, args, decision)
        return decision


def _canonical_text(args: dict[str, Any]) -> str:
    """Return arguments as canonical JSON, "" if they are not JSON."""
    try:
        return encode_canonical(clean_value(args))
    except ValueError:
        return ""
