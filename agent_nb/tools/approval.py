"""Decide whether a call may run: by the policy, by an earlier answer, or by asking the user.

Why: a model may ask for calls that change files or data, and the user is responsible for them.

Rules
- The policy's allow and deny precede remembered answers, which only replace questions.
- One question at a time, in call order; a call that waits for an earlier one (`runner`) is asked
  about when that has ended.
- A yes for the notebook holds until its kernel restarts, other answers until the run ends. Events
  record it with the scope `tool`: a record must not carry a permission.
- Edited arguments are judged again. Then only a denial counts: the user is not asked twice.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import msgspec

from ..errors import ToolError
from .base import ApprovalSource, Decision, Question, Report, Tool, ToolContext
from .kernel_permissions import KERNEL_PERMISSIONS, KernelPermissions
from .policy import Policy
from .threads import Worker
from .values import convert_to_json, message_of

_HOW_TO_ALLOW = "Allow it with --approve auto, or by a rule in a policy file (--approve POLICY.yaml); -t none offers no tools"
_WHOLE_RUN = ""  # the key of an answer for the whole run


class Approver:
    """Decides on the calls of one run; `ask` puts questions to the user (None: nobody is there).

    `permissions`: the tools that are allowed until the kernel restarts; None: neither used nor
    extended.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        ask: ApprovalSource | None = None,
        permissions: KernelPermissions | None = KERNEL_PERMISSIONS,
    ) -> None:
        self.policy = policy or Policy()
        self.ask = ask
        self._permissions = permissions
        self._asking = asyncio.Lock()  # one question at a time
        # mark of a tool, or of a tool with arguments -> the answer; "": for the whole run
        self._remembered: dict[str, Decision] = {}

    async def decide(
        self, tool: Tool, args: dict[str, Any], context: ToolContext, report: Report
    ) -> Decision:
        """Return the decision on calling `tool` with `args` (JSON values), asking if need be.

        `Decision.args`: edited arguments, not yet validated. Raises ToolError if the tool's preview
        finds that the call cannot work.
        """
        verdict, reason = self.policy.judge(tool, args)
        if verdict != "ask":
            decision = Decision(verdict == "allow", reason=reason)
            if reason:  # "": a tool without effects that no rule names; nothing to report
                self.report_decision(report, context.call_id, args, decision)
            return decision
        async with self._asking:
            for_run = self._remembered.get(_WHOLE_RUN)
            # a no to the run holds for every tool; a yes does not cover a tool with `each`
            run_covers_tool = for_run is not None and not (for_run.allow and tool.each)
            earlier = self._find_remembered(tool, args)
            remembered = earlier or (for_run if run_covers_tool else self._find_permission(tool))
            decision = remembered or self.check_edited(
                tool, await self._ask_user(tool, args, context, report, reason)
            )
        self.report_decision(report, context.call_id, args, decision)
        return decision

    @staticmethod
    def report_decision(
        report: Report, call_id: str, args: dict[str, Any], decision: Decision
    ) -> None:
        """Report the decision on a call that would run with `args`."""
        report.approval(
            call_id,
            stage="decided",
            args=args if decision.args is None else decision.args,
            decision="allow" if decision.allow else "deny",
            scope="tool" if decision.scope == "kernel" else decision.scope,
            by=decision.by,
            reason=decision.reason,
        )

    def _find_remembered(self, tool: Tool, args: dict[str, Any]) -> Decision | None:
        """Return the earlier answer for the tool, or for the tool with these arguments, or None."""
        if not self._remembered:  # spares the mark, which is a digest of the tool's code
            return None
        mark = KernelPermissions.mark(tool)
        return self._remembered.get(mark) or self._remembered.get(_mark_call(mark, args))

    def _find_permission(self, tool: Tool) -> Decision | None:
        """Return a yes that holds for this notebook, or None."""
        allowed = self._permissions is not None and self._permissions.allows(tool)
        return Decision(True, by="click", reason="allowed for this notebook") if allowed else None

    def check_edited(self, tool: Tool, decision: Decision) -> Decision:
        """Return the decision, or a denial if the policy denies its edited arguments."""
        if not decision.allow or decision.args is None:
            return decision
        try:
            args = convert_to_json(tool.validate(decision.args))
        except Exception:  # invalid: the runner validates them again and reports the error
            return decision
        verdict, reason = self.policy.judge(tool, args)
        if verdict != "deny":
            return decision
        denial = f"the policy denies it with the edited arguments ({reason})"
        return Decision(False, args=decision.args, reason=denial)

    async def _ask_user(
        self, tool: Tool, args: dict[str, Any], context: ToolContext, report: Report, why: str
    ) -> Decision:
        """Ask the user, or deny if nobody can be asked; `why`: the policy's reason to ask."""
        preview = await _make_preview(tool, args, context)
        question = Question(context.call_id, tool.name, args, tool.effect, preview, tool=tool)
        try:
            answer = await self.put_question(
                question, report, {"preview": preview} if preview else {}
            )
        except Exception as error:  # if asking fails, the call must not run
            return Decision(False, reason=f"the question could not be asked ({message_of(error)})")
        if answer is None:
            offer = self.policy.offer
            advice = why if offer is not None and why.endswith(offer.refusal) else _HOW_TO_ALLOW
            reason = f"{tool.name} needs approval and there is nobody to ask. {advice}"
            return Decision(False, reason=reason)
        if answer.scope == "kernel" and self._permissions is not None:
            if answer.allow:  # a no for the notebook counts once
                self._permissions.allow(tool)
        elif answer.scope != "once":
            # `kernel` too, if the run may not use permissions: then it counts as `tool`
            self._remember(tool, args, answer)
        return answer

    async def put_question(
        self, question: Question, report: Report, extra: dict[str, Any]
    ) -> Decision | None:
        """Report a question and return its answer, None if nobody can be asked.

        `extra`: that of the event. Raises what the approval source raises.
        """
        try:
            # before the event: a remote client may answer as soon as it receives that
            answer = self.ask(question) if self.ask is not None else None
        finally:
            fields = {"extra": extra} if extra else {}
            report.approval(question.call_id, stage="requested", args=question.args, **fields)
        return await answer if answer is not None else None

    def _remember(self, tool: Tool, args: dict[str, Any], answer: Decision) -> None:
        """Keep an answer for further calls.

        With the scope `args` the answer holds for the arguments that the user decided on: the
        edited ones, if the user edited them.
        """
        mark, about = KernelPermissions.mark(tool), "this tool"
        if answer.scope == "run":
            mark, about = _WHOLE_RUN, "this run"
        elif answer.scope == "args":
            used = args if answer.args is None else answer.args
            mark, about = _mark_call(mark, used), "these arguments"
        self._remembered[mark] = msgspec.structs.replace(
            answer, args=None, reason=f"decided earlier for {about}"
        )


def _mark_call(mark: str, args: dict[str, Any]) -> str:
    """Return the mark of a tool with these arguments."""
    # not the canonical text, in which large integers that are equal as floats are one
    return f"{mark} {json.dumps(args, sort_keys=True)}"


async def _make_preview(tool: Tool, args: dict[str, Any], context: ToolContext) -> str:
    """Return the tool's preview of a call, or a note if it fails: the user is asked anyway.

    Raises ToolError if the tool finds that the call cannot work.
    """
    if tool.preview is None:
        return ""
    caught = await Worker(partial(tool.preview, args, context), f"preview {tool.name}").future
    if isinstance(caught.error, ToolError):
        raise caught.error
    if caught.error is not None:
        return f"(no preview: {message_of(caught.error)})"
    return str(caught.value)
