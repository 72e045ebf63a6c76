"""The question before a call: what the call would do and change, and the controls that answer it.

Why with care: the user allows code to run on this machine, so nothing that it does may be hidden,
neither by a cut nor by a carriage return or an escape sequence, which a terminal obeys. Arguments
and preview are drawn in full, within the bounds of `values.bound_text` and `draw.data` (JSON).

Rule: a preview that is a diff stands in place of the long texts among the arguments. Any other may
leave out some of a text, so it stands below them.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from .. import fields, values
from ..format import clip_text, text_row
from ..nodes import Button, Buttons, Diff, Editor, Form, Json, Node, Pre, Row, Stack, T
from ..state.cards import CallCard
from ..visible import show_hidden
from .base import Context

# scope of a decision -> the words for it
SCOPES = {
    "once": "this call",
    "args": "all calls with these arguments for this run",
    "tool": "all calls of this tool for this run",
    "run": "all calls of this run",
}
# who decided -> the words for them
DECIDERS = {"click": "You", "stdin": "You", "policy": "The policy", "recording": "The record"}
SILENT_DENIAL = "the user said no"  # the reason of a denial for which the user wrote none


def card(state: CallCard, context: Context) -> Node | None:
    """Return the open question of a call, None if there is none."""
    if state.status != "waiting" or state.asked is None:
        return None
    args = state.asked.args if state.asked.args is not None else state.args
    # the editor is inside the Form: a Form keeps its place on the page while the user works in it
    if context.opened.get(_about(state)) == "edit":
        form = Form(_edit(state, args, context))
    else:
        form = Form((*_change(state, args), *_controls(state, context)))
    return Stack((*_warning(state), form))


def _warning(state: CallCard) -> tuple[Node, ...]:
    """Return the warning of the question, or the reason that another system gave for asking."""
    warning = _extra(state).get("warning") or (state.asked.reason if state.asked else "")
    if not isinstance(warning, str) or not warning:
        return ()
    return (Row((T(clip_text(warning, 200), tone="wait", bold=True),), wrap=True),)


def _ids(state: CallCard) -> dict[str, Any]:
    """Return the ids that an answer repeats: of the call, and of the question if it has one."""
    question = _extra(state).get("question")
    has_id = isinstance(question, str) and question
    return {"call_id": state.call_id, **({"question": question} if has_id else {})}


def _about(state: CallCard) -> str:
    """Return the id of the question, as `Button.about` has it."""
    return ":".join(_ids(state).values())


def _extra(state: CallCard) -> dict[str, Any]:
    return (state.asked.extra or {}) if state.asked is not None else {}


def _change(state: CallCard, args: dict[str, Any]) -> tuple[Node, ...]:
    """Return what the call would do: its arguments and its preview."""
    preview = _extra(state).get("preview")
    if not isinstance(preview, str) or not preview.strip():
        return values.argument_nodes(state.name, args)
    text = show_hidden(values.bound_text(preview))
    if not values.is_diff(preview):
        return (*values.argument_nodes(state.name, args), Pre(text))
    short = {k: v for k, v in args.items() if not (isinstance(v, str) and values.is_long(v))}
    return (*((Json(short),) if short else ()), Diff(text))


def decided_change(state: CallCard) -> tuple[Node, ...]:
    """Return what a decided call was to change, as the question showed it.

    () if the question had no preview, or if other arguments were approved.
    """
    question, decision = state.asked, state.approval
    if question is None or decision is None or not _extra(state).get("preview"):
        return ()
    if decision.args not in (None, question.args):
        return ()
    return _change(state, question.args if question.args is not None else state.args)


def _controls(state: CallCard, context: Context) -> tuple[Node, ...]:
    """Return the controls; where there are none, a sentence that says what to do."""
    if not context.live:
        return (text_row("Nobody has answered.", "wait"),)
    if not context.can_click:
        advice = "Answer in the prompt below this cell; to allow it without asking: --approve auto."
        return (text_row(advice, "wait", wrap=True),)
    opened = context.opened.get(_about(state))
    if opened == "always":
        return _always(state, context)
    if opened == "refuse":
        return _refuse(state, context)
    return (_first_controls(state, context),)


def _first_controls(state: CallCard, context: Context) -> Node:
    ids = _ids(state)
    # a call with a warning is asked about each time
    always = () if _warning(state) else (Button("always", "Always…", ids),)
    buttons = (
        Button("approve", "Approve", ids, tone="ok", busy="Approved", hint="Key: A"),
        Button("refuse", "Deny", ids, tone="bad", hint="Key: D"),
        Button("edit", "Edit", ids, hint="Key: E"),
        *always,
    )
    return _button_row(buttons, context)


def _always(state: CallCard, context: Context) -> tuple[Node, ...]:
    """Return the buttons that approve this and later calls, each with its scope."""
    ids, name = _ids(state), state.name
    lasting = Button(
        "approve_lasting",
        f"{name} in this notebook",
        {**ids, "scope": "kernel"},
        busy="Approved",
        hint=f"No call of {name} is asked about in this notebook until its kernel restarts; %agent revoke {name} takes it back.",
    )
    buttons = (
        Button(
            "approve_same",
            "These arguments in this run",
            {**ids, "scope": "args"},
            busy="Approved",
            hint=f"{name} runs with exactly these arguments without a question until this run ends.",
        ),
        Button(
            "approve_all",
            f"{name} in this run",
            {**ids, "scope": "tool"},
            busy="Approved",
            hint=f"No call of {name} is asked about until this run ends.",
        ),
        *((lasting,) if context.lasting else ()),
        Button("back", "Back", ids, hint="Key: Escape"),
    )
    heading = text_row("Approve, and from now on always:", "", wrap=True)
    return (heading, _button_row(buttons, context))


def _refuse(state: CallCard, context: Context) -> tuple[Node, ...]:
    """Return the field for the reason of a denial, and its buttons."""
    ids = _ids(state)
    buttons = (
        Button("deny", "Deny", ids, tone="bad", busy="Denied", hint="Key: Enter"),
        Button("back", "Back", ids, hint="Key: Escape"),
    )
    return (Editor(_about(state), (fields.REASON_FIELD,)), _button_row(buttons, context))


def _edit(state: CallCard, args: dict[str, Any], context: Context) -> tuple[Node, ...]:
    """Return the fields that edit the arguments, and their buttons."""
    ids = _ids(state)
    about = _about(state)
    faults = context.faults.get(about, {})
    editable = tuple(
        structs.replace(field, fault=faults.get(field.name, ""))
        for field in fields.make_fields(args, context.schemas.get(about, {}))
    )
    key = "Key: Shift+Enter"
    buttons = (
        Button("submit", "Approve as edited", ids, tone="ok", busy="Approved", hint=key),
        Button("back", "Back", ids, hint="Key: Escape"),
    )
    editor = Editor(about, editable, faults.get(fields.CALL, ""))
    return (editor, _button_row(buttons, context))


def _button_row(buttons: tuple[Button, ...], context: Context) -> Buttons:
    """Return the buttons as a row; after a press of one, none can be pressed."""
    if not any(b.key in context.pressed for b in buttons):
        return Buttons(buttons)
    labels = ((b.key in context.pressed and b.busy) or b.label for b in buttons)
    return Buttons(
        tuple(
            structs.replace(button, label=label, enabled=False, hint="")
            for button, label in zip(buttons, labels, strict=True)
        )
    )


def decision_line(state: CallCard) -> tuple[Node, ...]:
    """Return a line with how a call was decided; () if it was allowed without a question."""
    decision = state.approval
    if decision is None or (state.asked is None and decision.decision == "allow"):
        return ()
    verb = "approved" if decision.decision == "allow" else "denied"
    scope = SCOPES.get(decision.scope, SCOPES["once"])
    who = DECIDERS.get(decision.by, decision.by)
    edited = state.asked is not None and decision.args not in (None, state.asked.args)
    if edited and decision.decision == "allow":
        scope += " with edited arguments"
    sentence = f"{who} {verb} {scope}" if who else f"{verb.capitalize()}: {scope}"
    # the result of a denied call gives its reason
    repeated = isinstance(state.content, str) and decision.reason in state.content
    if decision.reason not in ("", SILENT_DENIAL) and not repeated:
        sentence += f": {decision.reason}"
    return (text_row(sentence, wrap=True),)
