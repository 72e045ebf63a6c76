"""The question before a call: what the call would do and change, and the buttons that answer it.

Rule: nothing that the question is about may be cut out of sight, so it is drawn in full.
"""

from __future__ import annotations

import json
from typing import Any

from .. import values
from ..format import clip_text
from ..nodes import Button, Buttons, Code, Diff, Editor, Json, Node, Pre, Row, Stack, T
from ..state.cards import CallCard
from .base import Context

# scope of a decision, who decided: in words
SCOPE = {
    "once": "this call",
    "tool": "all calls of this tool for this run",
    "run": "all calls of this run",
}
BY = {"click": "You", "stdin": "You", "policy": "The policy", "recording": "The record"}
NO = "the user said no"  # the reason of a denial for which the user wrote none


def card(state: CallCard, context: Context) -> Node | None:
    """Return the open question of a call, None if there is none."""
    if state.status != "waiting" or state.asked is None:
        return None
    args = state.asked.args if state.asked.args is not None else state.args
    if state.call_id in context.editing:
        return Stack(
            (
                Editor(state.call_id, pretty(args), context.notes.get(state.call_id, "")),
                _edit_buttons(state, context),
            )
        )
    return Stack((*_warning(state), *_change(state, args), _answer(state, context)))


def _warning(state: CallCard) -> tuple[Node, ...]:
    """Return the warning of the question, or the reason that another system gave for asking."""
    warning = _extra(state).get("warning") or (state.asked.reason if state.asked else "")
    return (
        (Row((T(clip_text(warning, 200), tone="wait", bold=True),), wrap=True),)
        if isinstance(warning, str) and warning
        else ()
    )


def _call(state: CallCard) -> dict[str, Any]:
    """Return what an answer repeats of its question: the call, and the id of the question."""
    question = _extra(state).get("question")
    return {
        "call_id": state.call_id,
        **({"question": question} if isinstance(question, str) and question else {}),
    }


def _extra(state: CallCard) -> dict[str, Any]:
    return (state.asked.extra or {}) if state.asked is not None else {}


def _change(state: CallCard, args: dict[str, Any]) -> tuple[Node, ...]:
    """Return what the call would do: its arguments, of which a preview replaces the long texts."""
    preview = _extra(state).get("preview")
    if isinstance(preview, str) and preview.strip():
        shown: Node = (
            Diff(values.bounded(preview))
            if looks_like_diff(preview)
            else Pre(values.bounded(preview))
        )
        return (*_arguments(args, long_texts=False), shown)
    return _arguments(args)


def decided_change(state: CallCard) -> tuple[Node, ...]:
    """Return what a decided call was to change, as the question showed it.

    Returns () if the question had no preview, or if other arguments were approved.
    """
    asked, decision = state.asked, state.approval
    if (
        asked is None
        or decision is None
        or not (asked.extra or {}).get("preview")
        or decision.args not in (None, asked.args)
    ):
        return ()
    return _change(state, asked.args if asked.args is not None else state.args)


def _arguments(args: dict[str, Any], *, long_texts: bool = True) -> tuple[Node, ...]:
    """Return the arguments: short ones as a tree, then `long_texts` as code."""
    long = {k: v for k, v in args.items() if isinstance(v, str) and (len(v) > 80 or "\n" in v)}
    rest = {k: v for k, v in args.items() if k not in long}
    texts = (
        tuple(Code(values.bounded(v), "python" if k == "code" else "") for k, v in long.items())
        if long_texts
        else ()
    )
    return (*((Json(rest),) if rest else ()), *texts)


def _answer(state: CallCard, context: Context) -> Node:
    """Return the buttons, or what to do where there are none."""
    if not context.live:
        return Row((T("Nobody has answered.", tone="wait"),))
    if not context.can_click:
        return Row(
            (
                T(
                    "Answer in the prompt below this cell; to allow it without asking: --approve auto.",
                    tone="wait",
                ),
            ),
            wrap=True,
        )
    call = _call(state)
    all_of_tool = Button(
        "approve_all",
        f"Approve all {state.name} calls for this run",
        {**call, "scope": "tool"},
        busy="Approved",
    )
    hint = f"No call of {state.name} is asked about in this notebook until its kernel restarts; %agent revoke {state.name} takes it back."
    lasting = Button(
        "approve_lasting",
        f"Approve {state.name} for this notebook",
        {**call, "scope": "kernel"},
        busy="Approved",
        hint=hint,
    )
    buttons = (
        Button("approve", "Approve", call, tone="ok", busy="Approved"),
        Button("deny", "Deny", call, tone="bad", busy="Denied"),
        # a call with a warning is decided alone
        *(() if _warning(state) else (all_of_tool, *((lasting,) if context.lasting else ()))),
        Button("edit", "Edit…", call),
    )
    return Buttons(_pressed(buttons, context))


def _edit_buttons(state: CallCard, context: Context) -> Node:
    call = _call(state)
    buttons = (
        Button("submit", "Approve as edited", call, tone="ok", busy="Approved"),
        Button("deny", "Deny", call, tone="bad", busy="Denied"),
        Button("unedit", "Back", call),
    )
    return Buttons(_pressed(buttons, context))


def _pressed(buttons: tuple[Button, ...], context: Context) -> tuple[Button, ...]:
    """Return the buttons; after a press of one, none can be pressed."""
    if not any(b.key in context.pressed for b in buttons):
        return buttons
    return tuple(
        Button(
            b.action,
            b.busy or b.label if b.key in context.pressed else b.label,
            b.payload,
            b.tone,
            enabled=False,
        )
        for b in buttons
    )


def decision_line(state: CallCard) -> Node | None:
    """Return how a call was decided; None if it was allowed without a question."""
    decision = state.approval
    if decision is None or (state.asked is None and decision.decision == "allow"):
        return None
    verb = "approved" if decision.decision == "allow" else "denied"
    what = SCOPE.get(decision.scope, SCOPE["once"])
    who = BY.get(decision.by, decision.by)
    sentence = f"{who} {verb} {what}" if who else f"{verb.capitalize()}: {what}"
    reason = f": {decision.reason}" if decision.reason not in ("", NO) else ""
    return Row((T(f"{sentence}{reason}", tone="muted"),), wrap=True)


def looks_like_diff(text: str) -> bool:
    """Return whether a preview is a diff: it has headers, hunks, or only +, - and @ lines."""
    lines = [line for line in text.splitlines() if line.strip()]
    return text.startswith(("--- ", "+++ ", "diff ", "@@")) or (
        bool(lines) and all(line[0] in "+-@ " for line in lines)
    )


def pretty(args: dict[str, Any]) -> str:
    """Return arguments as JSON for editing."""
    return json.dumps(args, ensure_ascii=False, indent=2)
