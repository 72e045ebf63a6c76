"""A thought of the model: a line with its duration and first sentence, which opens to the text.

Outside other cards it is open at first, and then gives way to the cards after it (`folds`); if
thoughts are shown in full (`show`), it stays open everywhere.
"""

from __future__ import annotations

from ..format import clip_text, extract_gist, format_duration, join_parts, text_row
from ..nodes import Fold, Node, Row, T
from ..state.cards import ThinkCard
from .base import Context, prose


def card(state: ThinkCard, context: Context) -> Node | None:
    """Return the thought as a fold, or as a line if that shows all of it and the fold never closes.

    Inside other cards it is such a line, too. Returns None if thoughts are hidden, or if the
    thought ended without content.
    """
    if context.thoughts == "hide" or (state.done and not len(state.text) and not state.attributes):
        return None
    title = _title(state)
    first_sentence = extract_gist(str(state.text)) if state.done else ""
    text = str(state.text).strip() if state.done else ""
    # the gist leaves out nothing but the last period
    is_whole = first_sentence and not state.attributes and first_sentence == text.rstrip(":.")
    line = Row(_line(title, text), wrap=True) if is_whole else None
    if line and (context.nested or context.thoughts == "show"):
        return line
    body = (
        *_attributes(state),
        *prose(state.text, context, growing=not state.done, dim=True, key=state.key),
    )
    return Fold(
        (Row(_line(title, first_sentence)),),
        body,
        open=not context.nested or context.thoughts == "show",
        accordion=True,
        gives_way=context.thoughts != "show",
        line=line,
        title=f"{title} — {first_sentence}" if first_sentence else title,
    )


def _line(title: str, about: str) -> tuple[T, ...]:
    words = (T(" — ", tone="muted"), T(about, tone="muted", italic=True)) if about else ()
    return (T(title, tone="muted"), *words)


def _title(state: ThinkCard) -> str:
    if not state.done:
        return "Thinking…"
    seconds = state.seconds  # 0 in a log without times
    duration = format_duration(seconds) if seconds >= 1 else f"{max(0.1, seconds):.1f} s"
    title = f"Thought for {duration}" if seconds else "Thought"
    return f"{title} (cut off)" if state.incomplete else title


def _attributes(state: ThinkCard) -> tuple[Node, ...]:
    text = join_parts(*(f"{k}: {clip_text(str(v), 60)}" for k, v in state.attributes.items()))
    return (text_row(text),) if text else ()
