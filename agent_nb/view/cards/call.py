"""A tool call: its arguments, its progress, its result.

Open or ended, a call is a line that opens: to its question or its arguments, its progress and its
output, at the end to its result. What is shown first stays first, so that nothing jumps when the
call ends; its pictures are below the fold then. The line is the same from the first letter on
(`call_line`).
"""

from __future__ import annotations

import math
from typing import Any

from ...wire import Shown, without_captions
from .. import values
from ..call_line import CODE, describe_call, find_language
from ..format import (
    chip,
    clip_text,
    format_duration,
    gist,
    icon,
    join_parts,
    short,
)
from ..nodes import Bar, Code, Fold, Json, Node, Pre, Row, Stack, T, Tone
from ..parts import take_out
from ..progress_words import progress_words
from ..state.cards import CallCard, RespondCard
from ..values import bounded
from . import approval
from .base import Context, custom
from .node import nested

TAIL, LINES = 1600, 10  # characters and lines of output that are shown while the call runs
WRITTEN, WRITTEN_LINES = 4000, 8  # the same of a text that is being written
ONE_LINE = 84  # characters that a summary line has room for
TRACEBACK = "Traceback (most recent call last):"
# statuses of calls that are drawn open, in the tone of failure
FAILED = ("error", "denied", "timeout")
CELLS = ("python",)  # tools whose code runs as a cell
IN_CELL = "[shown in the cell]\n"  # stands for a display without text


def card(state: CallCard, context: Context) -> Node:
    """Return the call as a fold, or what a card `call-NAME` draws."""
    if state.open:
        return _open(state, context)
    mine = custom("call", state, context)
    return _closed(state, context) if mine is None else mine


def _head(state: CallCard) -> tuple[T, ...]:
    """Return the left side of the line: glyph, name, server, what matters of the arguments."""
    said = describe_call(state.name, state.known)
    name = (
        T(f"{icon(state.name)} ", tone="muted", mono=True, label="Tool"),
        T(state.name or "tool", bold=True, mono=True),
        *((T(f" · {clip_text(state.server, 40)}", tone="muted"),) if state.server else ()),
    )
    words = T(said.text, tone="muted", mono=not said.prose, language=said.language)
    return (*name, *((T("  "), words) if said.text else ()))


def _open(state: CallCard, context: Context) -> Node:
    """Return a call without a result."""
    line = Row(_head(state), _state(state, context))
    if context.nested and state.status != "waiting":
        return line
    parts: list[Node] = []
    if state.status == "writing":
        parts.extend(_writing(state))
    if state.status == "waiting":
        question = approval.card(state, context)
        parts.extend((question,) if question else ())
    elif state.status != "writing":
        parts.extend(called_with(state))
    # a call that waits for its place in call order has ended: it keeps no bar
    mine = custom("progress", state, context) if state.status != "finished" else None
    parts.extend(_progress(state) if mine is None else (mine,))
    parts.extend(values.pictures(state.attachments, state.name))
    body = (*parts, *nested(state, context))
    asked = state.status == "waiting"
    return Fold((line,), body, open=True, title=_title(state, ""), gives_way=not asked)


def _writing(state: CallCard) -> tuple[Node, ...]:
    """Return the end of the text that is being written, unless the call's line shows all of it."""
    known = state.known
    if not known:  # not an object, or not yet one
        raw = state.raw.tail(WRITTEN).strip()
        return (Pre(last_lines(raw, WRITTEN_LINES)),) if raw and raw[0] not in '{"' else ()
    key, value = list(known.items())[-1]
    text = values.newest_text(value)
    if not _is_long(key, text) or describe_call(state.name, {key: text}).whole:
        return ()
    return (Code(text[-WRITTEN:], find_language(state.name, key, known), last=WRITTEN_LINES),)


def _is_long(key: str, text: str) -> bool:
    return "\n" in text or len(text) > 80 or key in CODE


def _progress(state: CallCard) -> tuple[Node, ...]:
    """Return the bar of a call, or its message, and the end of its output."""
    parts: list[Node] = []
    if state.status != "finished" and state.fraction is not None:
        parts.append(Bar(state.fraction, progress_words(state), name=state.name))
    elif state.status != "finished" and state.message:
        parts.append(Row((T(state.message, tone="muted"),)))
    printed = last_lines(_without_captions(state, state.output.last(TAIL)))
    return (*parts, *((Pre(printed),) if printed.strip() else ()))


def _state(state: CallCard, context: Context) -> tuple[T, ...]:
    """Return the right side of an open call's line: status and time.

    A call that waits for the user has its question below, and the header says so.
    """
    if state.status == "waiting":
        return ()
    if state.status == "finished":
        return chip(
            state.early or "ok",
            format_duration(max(0.0, state.ended - state.started)) if state.started else "",
        )
    ran = (
        context.now - state.started
        if context.now is not None and state.started and state.status == "running"
        else 0
    )
    return chip(state.status, format_duration(math.floor(ran)) if ran >= 1 else "")


def _closed(state: CallCard, context: Context) -> Node:
    """Return an ended call. What its line says, or its output, is not repeated in its body."""
    pictures = values.pictures(state.attachments, state.name)
    answered = _answered_inside(state)
    figures = sum(Shown(one).is_figure for one in state.attachments)
    about = (
        gist(str(state.content), 60)
        if answered
        else values.gist(state.content, state.display, pictures=figures)
        if state.status == "ok"
        else ""
    )
    took = format_duration(state.duration) if state.duration else ""
    right = (*((T(about, tone="muted"), T("   ")) if about else ()), *chip(state.status, took))
    result = _result(state, context)
    repeated = answered or (about and short_text(result) == about)
    new_result = () if repeated else result
    output = () if beyond_output(state, context) is not None else _output(state)
    inside, charts = take_out(nested(state, context))
    if shows_last_value(state):
        new_result, pictures = (), (*pictures, *new_result)
    body = (
        *called_with(state, about),
        *_decision(state),
        *inside,
        *output,
        *new_result,
    )
    fold = Fold(
        (Row(_head(state), right),),
        body,
        open=not context.nested or state.status in FAILED,
        title=_title(state, about),
        gives_way=state.status not in FAILED,
    )
    return Stack((fold, *pictures, *charts)) if pictures or charts else fold


def shows_last_value(state: CallCard) -> bool:
    """Return whether the result of code is a display, which stands in the open as in any cell."""
    return (
        state.name in CELLS
        and state.status == "ok"
        and bool(state.display)
        and any(kind in values.DISPLAY_TYPES for kind in state.display or ())
    )


def _answered_inside(state: CallCard) -> bool:
    """Return whether the result is the answer of a run inside the call, which is shown as text."""
    answers = [c for view in state.children for c in view.cards if isinstance(c, RespondCard)]
    return bool(answers) and not answers[-1].typed and str(answers[-1].text) == state.content


def short_text(result: tuple[Node, ...]) -> str:
    """Return the text of a result that is one text, number or null, else ""."""
    only = result[0] if len(result) == 1 else None
    if isinstance(only, Pre):
        return only.text.strip()
    return (
        short(only.value, 60)
        if isinstance(only, Json) and not isinstance(only.value, dict | list | str)
        else ""
    )


def _title(state: CallCard, about: str) -> str:
    words = clip_text(describe_call(state.name, state.args).text, 80)
    return join_parts(f"{state.name} {words}".rstrip(), state.status, about)


def called_with(state: CallCard, about: str = "") -> tuple[Node, ...]:
    """Return the decided change, or the arguments as code, text or a tree.

    Returns () if the line of the call, which ends with the gist `about`, shows all arguments.
    """
    if change := approval.decided_change(state):
        return change
    if not state.args:  # what could not be parsed is shown as the model wrote it
        raw = values.bounded(str(state.raw), 4000).strip()
        return (Pre(raw),) if raw not in {"", "{}"} and state.status in FAILED else ()
    line = describe_call(state.name, state.args)
    if line.whole and len(line.text) + len(about) <= ONE_LINE:
        return ()
    return written_arguments(state.name, state.args)


def written_arguments(name: str, args: dict[str, Any]) -> tuple[Node, ...]:
    """Return arguments for reading: long texts as code or text, the rest as a tree."""
    long = {k: v for k, v in args.items() if isinstance(v, str) and _is_long(k, v)}
    rest = {k: v for k, v in args.items() if k not in long}
    parts: list[Node] = [Json(rest)] if rest else []
    for key, text in long.items():
        if len(args) > 1:
            parts.append(Row((T(key, tone="muted", mono=True),)))
        language = find_language(name, key, args)
        parts.append(
            Code(values.bounded(text), language) if language else Pre(values.bounded(text))
        )
    return tuple(parts)


def _decision(state: CallCard) -> tuple[Node, ...]:
    line = approval.decision_line(state)
    return (line,) if line else ()


def _output(state: CallCard) -> tuple[Node, ...]:
    """Return what an ended call printed; it scrolls if it is long."""
    text = _without_captions(state, str(state.output))
    if not text.strip():
        return ()
    return (Pre(text),)


def beyond_output(state: CallCard, context: Context) -> str | None:
    """Return what a result adds to the output of its call, if it repeats that at its beginning.

    Returns None if it does not, or if an installed card draws the result. With a text, the output
    need not be shown beside the result, nor the result again after the output.
    """
    output = str(state.output).rstrip("\n")
    if (
        not output
        or state.status != "ok"
        or state.display
        or not isinstance(state.content, str)
        or not state.content.startswith(output)
    ):
        return None
    return (
        state.content[len(output) :].lstrip("\n")
        if custom("tool", state, context) is None
        else None
    )


def outcome(state: CallCard, context: Context) -> tuple[Node, ...]:
    """Return the end of a call whose output was already printed (in a terminal).

    It has the decision about the call, the runs inside it, its result and its pictures.
    """
    rest = beyond_output(state, context)
    result = _result(state, context) if rest is None else values.text_nodes(rest)
    output = str(state.output)
    captions_printed = rest is not None and without_captions(output) != output
    pictures = () if captions_printed else values.pictures(state.attachments, state.name)
    return (*_decision(state), *nested(state, context), *result, *pictures)


def _result(state: CallCard, context: Context) -> tuple[Node, ...]:
    """Return the result of a call, as a card `tool-NAME` draws it, if there is one."""
    mine = custom("tool", state, context)
    if mine is not None:
        return (mine,)
    if state.status == "ok":
        content = (
            _without_captions(state, state.content)
            if isinstance(state.content, str)
            else state.content
        )
        return values.value_nodes(content, state.display)
    return _failure(state)


def _without_captions(state: CallCard, text: str) -> str:
    """Return a text without the lines that stand for pictures, if the pictures are shown."""
    return without_captions(text).replace(IN_CELL, "") if state.attachments else text


def _failure(state: CallCard) -> tuple[Node, ...]:
    """Return the result of a call without success: message, data, and the traceback in a fold."""
    text = state.content if isinstance(state.content, str) else ""
    plain = (state.display or {}).get("text/plain")
    trace = plain.strip() if isinstance(plain, str) else ""
    if not trace and TRACEBACK in text:
        before, trace = text[: text.index(TRACEBACK)].strip(), text[text.index(TRACEBACK) :].strip()
        text = "" if state.output else before  # the output already shows what was printed before it
    message = text or state.error or trace.rpartition("\n")[2]
    first, _, rest = bounded(message.strip(), 2000).partition("\n")
    tone: Tone = "bad" if state.status in FAILED else "muted"
    shown: list[Node] = [Row((T(clip_text(first, 2000), tone=tone),), wrap=True)] if first else []
    shown += [Pre(rest)] if rest.strip() else []
    more: tuple[Node, ...] = values.traceback(trace)[1:] if "\n" in trace else ()
    extra = (Json(state.content),) if not isinstance(state.content, str) and state.content else ()
    return (*shown, *extra, *more)


def last_lines(text: str, lines: int = LINES) -> str:
    """Return the last lines of an output."""
    return "\n".join(text.rstrip("\n").split("\n")[-lines:])
