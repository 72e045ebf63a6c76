"""An error: what went wrong, and what happens or can be done next.

An error after which the run continues (`soft`) is a row of a panel, any other error a box. The box
of a failed run is not red: the header says so in red, and the front end draws the cell's exception
in red.
"""

from __future__ import annotations

import re

from ..format import clip_text, text_row
from ..nodes import Box, Fold, Node, Pre, Row, Stack, T, Tone
from ..state.cards import ErrorCard
from ..values import bound_text
from .base import Context

ANSWERS_AGAIN = "The model was given this text and answers again."
# code -> (title, tone, what happens next); the title of any other code is the code, as words
TITLES: dict[str, tuple[str, Tone, str]] = {
    **dict.fromkeys(("usage", "tools", "model"), ("Cannot start", "bad", "")),
    "provider": ("The provider failed", "bad", ""),
    "connect": ("No connection", "bad", ""),
    "cut": ("The connection broke off", "bad", ""),
    "timeout": ("No answer in time", "bad", ""),
    "garbage": ("The reply cannot be read", "bad", ""),
    "context": ("Too long for the model", "bad", ""),
    "no_tools": ("The model takes no tools", "wait", ""),
    "no_images": ("The model sees no pictures", "wait", ""),
    "no_picture": ("A picture was not sent", "wait", ""),
    "store": ("Rows are not stored", "wait", ""),
    "unplayable": ("Cannot be replayed elsewhere", "wait", ""),
    "no_schema": ("The server takes no schema", "wait", ""),
    "invalid_output": ("The answer has the wrong type", "wait", ANSWERS_AGAIN),
    "answer_not_alone": ("The answer came beside calls", "wait", ANSWERS_AGAIN),
    "shortened": ("Too long for the model", "wait", ""),
    "malformed_execute": ("Malformed tool call", "wait", "The model was told and can try again."),
    "forged_results": (
        "The model wrote its own results",
        "wait",
        "They were not taken for results.",
    ),
    "incomplete": ("Stopped inside a call", "wait", ""),
    "policy": ("Policy", "wait", ""),
    "unknown_tool": ("Unknown tool", "wait", "The model was told which tools there are."),
}
# the look of an error of the type of an answer that ends the run
NO_VALID_ANSWER: tuple[str, Tone, str] = (
    "No valid answer",
    "bad",
    "Say in the prompt what the answer needs, have the type allow None, or use a larger model.",
)
# instead of `provider`, if the message names a 4xx or 3xx status, as `models.http.errors` does
REFUSED: tuple[str, Tone, str] = ("The provider refused", "bad", "")
_REFUSAL = re.compile(r"[^()]{1,200}\([34]\d\d\)").match
# codes whose raw text comes from the model; for all others it comes from the server
OF_MODEL = ("malformed_execute", "forged_results", "incomplete", "unknown_tool")


def card(state: ErrorCard, context: Context) -> Node:
    """Return the message, what happens next, and the raw text behind the error in a fold."""
    title, tone, next_step = _choose_title(state)
    failed = tone == "bad"
    first, _, details = bound_text(state.message.strip(), 4000).partition("\n")
    marks: tuple[T, ...] = (T(f"! {title}", tone=tone, bold=True),)
    if failed:
        marks = (T("✕", tone=tone, bold=True), T(f" {title}", bold=True))
    head = Row((*marks, T(f"  {clip_text(first, 2000)}")), wrap=True)
    detail_lines = (Pre(details),) if details.strip() else ()
    next_line = (text_row(next_step),) if next_step else ()
    whose = "Model's text" if state.code in OF_MODEL else "Server's reply"
    raw = Fold((text_row(whose),), (Pre(bound_text(state.raw, 4000)),), title=whose)
    parts = (head, *detail_lines, *next_line, *([raw] if state.raw else []))
    return Stack(parts) if state.soft else Box(parts, tone="" if failed else tone)


def _choose_title(state: ErrorCard) -> tuple[str, Tone, str]:
    """Return title, tone and what happens next."""
    if state.code == "provider" and _REFUSAL(state.message):
        return REFUSED
    if state.code == "invalid_output" and not state.soft:
        return NO_VALID_ANSWER
    spelled = state.code.replace("_", " ").strip().capitalize() or "Error"
    return TITLES.get(state.code, (spelled, "bad", ""))
