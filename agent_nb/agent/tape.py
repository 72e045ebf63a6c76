"""The tape: a recorded run found again by what the user put in, and what of it may run again.

Why apart from `replay`: finding a record and trusting its code are decisions; playing it is
mechanics.

Rules
- A run is found by the digests of its inputs (`inputs`); a record whose content does not have the
  hash it names does not count.
- What lives in the kernel runs again: tools that say so, and functions of the notebook that say
  nothing and use its variables (`tools.reads`). Calls that were denied, cancelled or timed out
  never do.
- A call of a record that this user has not signed is foreign, unless the user says to trust it:
  whatever its tool does, it runs again only after somebody allowed exactly its arguments, for the
  code is the notebook's and the arguments are a stranger's. Nor does such a record go on live: what
  it says is no beginning of a run of this user.
- A recorded approval counts in a record that is not foreign, for exactly its arguments; what the
  policy denies now is denied.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec

from ..errors import UsageError
from ..events import Approval, Call, Event, Result, Started
from ..record.fingerprint import INPUTS, changed, recorded_inputs
from ..record.payloads import attach
from ..record.record import events_of
from ..record.signing import intact, names_signer
from ..tools.approval import Approver, settled
from ..tools.base import Asker, Decision, Question, Report, Tool, ToolContext
from ..tools.policy import Policy
from ..tools.reads import reads
from ..tools.toolset import Toolset
from ..wire.json_text import canonical
from .turn import clean_value

Status = Literal["recorded", "stale", "tampered", "unrecorded"]
TAMPERED = "the record was changed after it was made: its hash does not fit"
RERUN = ("ok", "error")  # a call that ended so may run again
FOREIGN = "This code comes from a record that you have not signed"
WARNING = f"{FOREIGN}."
NOBODY = "and there is nobody to ask. If you trust the notebook: --trust-record, or AGENT_NB_TRUST_RECORD=1"
TRUST = f"{FOREIGN}, {NOBODY}"


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a run is on record. `changed`: the inputs that differ from the newest record,
    `problem`: why a record was passed over.
    """

    status: Status
    record: Mapping[str, Any] | None = None
    changed: tuple[str, ...] = ()
    problem: str = ""

    def __str__(self) -> str:
        why = f" ({', '.join(self.changed)} changed)" if self.changed else ""
        return f"{self.status}{why}{f': {self.problem}' if self.problem else ''}"


def match(
    records: Iterable[Mapping[str, Any]],
    inputs: Mapping[str, str],
    *,
    statuses: Sequence[str] | None = ("ok",),
) -> Match:
    """Find the run with these `inputs` (see `inputs.inputs_of`) among `records`, whole and newest
    first.

    `statuses`: how the run may have ended (None: any way). A record whose content does not have the
    hash it names does not count; where that leaves none, or the newest is such a one, the run is
    `tampered`.
    """
    newest: tuple[str, ...] | None = None
    problem = ""
    tampered = False
    for record in records:
        known = recorded_inputs(
            events_of({**record, "events": list(record.get("events") or [])[:1]})
        )
        differs = changed(known, inputs) if known is not None else INPUTS
        whole = bool(differs and newest is not None) or intact(record)
        tampered = tampered or not whole
        newest = differs if newest is None else newest
        if differs or not whole:
            continue
        if statuses is not None and record.get("status") not in statuses:
            problem = problem or f"the recorded run ended with status {record.get('status')}"
        else:
            return Match(status="recorded", record=record)
    if tampered:
        return Match(status="tampered", problem=TAMPERED)
    if newest is None:
        return Match(status="unrecorded")
    return Match(status="stale", changed=newest, problem=problem)


def candidates(
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    cell: str = "",
    source: str = "",
    occurrence: int = 1,
    order: Sequence[str] = (),
) -> list[Mapping[str, Any]]:
    """Return the records of one cell, newest first: by its id, else by the hash of its text, the
    `occurrence`-th cell of that text.

    `runs` are whole records by cell id, `order` the cell ids in the order of the notebook.
    """
    if runs.get(cell):
        return list(runs[cell])
    place = {name: n for n, name in enumerate(order)}
    ordered = sorted(runs, key=lambda name: place.get(name, len(place)))
    same = [
        listed
        for listed in (
            [r for r in runs[name] if source and r.get("source") == source] for name in ordered
        )
        if listed
    ]
    return same[occurrence - 1] if 0 < occurrence <= len(same) else []


class Tape(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A recorded run, ready to be played. `own`: this user signed it; `cut`: (seq, field) of what
    the size limit took; `live`: stop at a drift and go on live.
    """

    events: Sequence[Event]
    own: bool = False
    trusted: bool = False
    live: bool = False
    cut: frozenset[tuple[int, str]] = frozenset()

    @classmethod
    def of(
        cls,
        record: Mapping[str, Any],
        payloads: Mapping[str, Any] | None = None,
        *,
        key: bytes = b"",
        trust: bool | Collection[str] = False,
        live: bool = False,
        home: str | None = None,
        checked: bool = False,
    ) -> Tape:
        """Return the tape of a record; it is trusted when `key` signed it, or with `trust`: any, or
        that of these hashes. `live` counts only then. `checked`: `match` has found that its hash
        fits.

        Raises UsageError when the record's hash does not fit.
        """
        whole = attach(record, payloads) if payloads else record
        if not checked and not intact(whole):
            raise UsageError(
                f"{TAMPERED[0].upper()}{TAMPERED[1:]}. Run the cell live to record it again."
            )
        cuts = whole.get("cut")
        places = (
            {(c.get("seq", 0), c.get("field", "")) for c in cuts if isinstance(c, dict)}
            if isinstance(cuts, list)
            else set()
        )
        own = names_signer(whole, key)
        trusted = own or (trust if isinstance(trust, bool) else whole.get("hash") in trust)
        return cls(
            events=events_of(whole, home=home),
            own=own,
            trusted=trusted,
            live=live and trusted,
            cut=frozenset(places),
        )

    @property
    def run(self) -> str:
        """The id of the recorded run."""
        return self.events[0].run if self.events else ""

    def again(self, toolset: Toolset) -> list[Call]:
        """Return the calls that a replay with these tools runs again, as things are now, in the
        order in which they began.
        """
        return [
            c for c in self.ran() if (tool := self.tool_of(c, toolset)) is not None and lives(tool)
        ]

    def tool_of(self, call: Call, toolset: Toolset) -> Tool | None:
        """Return the tool that a call means: one of `toolset`, or below a call of an agent that is
        a tool, one of that agent's.
        """
        agent = self.agent_of(call.span, toolset)
        tools = toolset if agent is None else agent.tools
        return tools.get(call.name)

    def agent_of(self, span: str, toolset: Toolset) -> Any:
        """Return the agent whose call a span is, None for what is no call of an agent."""
        call = self._calls.get(span) if span else None
        tool = self.tool_of(call, toolset) if call is not None else None
        return tool.agent if tool is not None else None

    def below(self, span: str) -> str:
        """Return the names of the agents whose call a span is, from the outermost on, as `a/b`."""
        call = self._calls.get(span) if span else None
        return (
            f"{self.below(call.span)}/{call.name}".strip("/")
            if call is not None and call.span != span
            else ""
        )

    @cached_property
    def _calls(self) -> dict[str, Call]:
        return {e.call_id: e for e in self.events if isinstance(e, Call) and e.span != e.call_id}

    def ran(self) -> list[Call]:
        """Return the calls that ran to an end of their own, in the order in which they began."""
        results = {e.call_id: e.status for e in self.events if isinstance(e, Result)}
        calls = {
            e.call_id: e
            for e in self.events
            if isinstance(e, Call) and results.get(e.call_id) in RERUN
        }
        began = dict.fromkeys(e.call_id for e in self.events if isinstance(e, Started))
        return [calls[call_id] for call_id in began if call_id in calls]

    def foreign(self, toolset: Toolset) -> list[Call]:
        """Return the calls that would run again and must not unless somebody allows it: nobody
        trusts this record.
        """
        return [] if self.trusted else self.again(toolset)

    def arguments(self, call: Call) -> dict[str, Any]:
        """Return the arguments a call ran with: as the model gave them, or as they were
        approved.
        """
        decided = self.approval(call.call_id)
        return decided.args if decided is not None and decided.args is not None else call.args

    def approval(self, call_id: str) -> Approval | None:
        """Return the recorded decision about a call, if there was one."""
        found = [
            e
            for e in self.events
            if isinstance(e, Approval) and e.call_id == call_id and e.stage == "decided"
        ]
        return found[-1] if found else None


def lives(tool: Tool) -> bool:
    """Return whether what a tool does belongs to the kernel's variables, so that a replay has to do
    it again.
    """
    return tool.effect == "kernel" or (not tool.declared and bool(reads(tool.invoke)))


class TapeApprover(Approver):
    """The gate for calls of a tape: recorded approvals count if the tape is trusted, foreign calls
    need a fresh yes.
    """

    def __init__(self, tape: Tape, policy: Policy | None = None, ask: Asker | None = None) -> None:
        super().__init__(policy, ask)
        self._tape = tape
        self._allowed: set[tuple[str, str]] = set()  # foreign calls, by name and arguments

    async def decide(
        self, tool: Tool, args: dict[str, Any], context: ToolContext, report: Report
    ) -> Decision:
        """Return the decision on calling `tool` with `args` again."""
        verdict, reason = self.policy.judge(tool, args)
        if verdict == "deny":
            return Decision(False, reason=reason or "the policy denies it now")
        if not self._tape.trusted:
            return await self._foreign(tool, args, context, report)
        if verdict == "allow" and tool.effect == "none":
            return Decision(True, reason=reason)
        recorded = self._tape.approval(context.call_id)
        if recorded is not None and recorded.decision == "allow" and _same(recorded.args, args):
            return Decision(True, by="recording")
        return await super().decide(tool, args, context, report)

    async def _foreign(
        self, tool: Tool, args: dict[str, Any], context: ToolContext, report: Report
    ) -> Decision:
        """Ask about a call of somebody else's. A yes for all of a tool or of the run is one for
        these arguments, as often as they come.
        """
        call = (tool.name, _text(args))
        if call in self._allowed:
            return Decision(True, by="recording", reason="allowed for this replay")
        question = Question(
            context.call_id, tool.name, args, tool.effect, WARNING, exact=uuid.uuid4().hex
        )
        report.approval(
            context.call_id,
            stage="requested",
            args=args,
            extra={"warning": WARNING, "question": question.exact},
        )
        answer = await self.ask(question) if self.ask is not None else None
        decision = Decision(False, reason=TRUST) if answer is None else self.again(tool, answer)
        if decision.allow and decision.scope != "once" and decision.args is None and call[1]:
            self._allowed.add(call)
        settled(report, context.call_id, args, decision)
        return decision


def _same(recorded: dict[str, Any] | None, args: dict[str, Any]) -> bool:
    return recorded is not None and _text(recorded) == _text(args) != ""


def _text(args: dict[str, Any]) -> str:
    """Return arguments as canonical text, "" for what is no JSON."""
    try:
        return canonical(clean_value(args))
    except ValueError:
        return ""
