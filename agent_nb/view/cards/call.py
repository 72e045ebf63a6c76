"""A tool call: its arguments, its progress, its result.

An open call shows its progress and the end of its output, and opens to its code. A finished call is
one line that opens; its pictures stand below the line.
"""

from __future__ import annotations

import math
from typing import Any

from ...wire import without_captions
from .. import values
from ..format import (
    chip,
    clip_text,
    count_noun,
    format_arguments,
    format_duration,
    icon,
    join_parts,
    short,
)
from ..nodes import Bar, Code, Diff, Fold, Json, Lane, Node, Pre, Row, Stack, T, Tone
from ..progress_words import progress_words
from ..state.cards import CallCard
from ..values import bounded
from .approval import card as question
from .approval import change, decided
from .base import Context, custom
from .node import nested

TAIL = 1600  # characters of output shown while the call runs
LINES = 10
ONE_LINE = 84  # characters that a summary line has room for
FEW = 5  # lines of output that are not folded away
TRACEBACK = "Traceback (most recent call last):"
FAILED = ("error", "denied", "timeout")
LANGUAGES = {"python": "python", "shell": "bash", "bash": "bash", "sql": "sql"}
CODE_ARGUMENTS = ("code", "command", "query", "sql", "script")


def card(state: CallCard, context: Context) -> Node:
    """Return the call as rows while it is open, then as a fold, or as its own card draws it."""
    if state.open:
        return _open(state, context)
    mine = custom("call", state, context)
    return _closed(state, context) if mine is None else mine


def _head(state: CallCard) -> tuple[T, ...]:
    said = format_arguments(state.readable_args)
    name = (
        T(f"{icon(state.name)} ", tone="muted", mono=True, label="Tool"),
        T(state.name or "tool", bold=True, mono=True),
        *((T(f" · {clip_text(state.server, 40)}", tone="muted"),) if state.server else ()),
    )
    return (*name, *((T("  "), T(said, tone="muted", mono=True)) if said else ()))


def _open(state: CallCard, context: Context) -> Node:
    parts: list[Node] = [Row(_head(state), _state(state, context))]
    if state.status == "writing" and len(state.raw):
        parts.append(Pre(streaming_arguments(state.raw.tail(800))))
    if state.status == "waiting":
        asked = question(state, context)
        parts.extend((asked,) if asked else ())
    elif state.status != "writing":
        parts.extend(_given(state))
    mine = custom("progress", state, context)
    parts.extend(_progress(state, context) if mine is None else (mine,))
    parts.extend(values.pictures(state.attachments, state.name))
    return Stack((*parts, *nested(state.children, context)))


def _given(state: CallCard) -> tuple[Node, ...]:
    """Return the arguments of a running call, as a line that opens."""
    given = called_with(state)
    long = [n for n in given if isinstance(n, Code | Diff)]
    diff, code = (
        any(isinstance(n, Diff) for n in long),
        any(isinstance(n, Code) and n.language for n in long),
    )
    lines = sum(n.text.rstrip().count("\n") + 1 for n in long)
    title = ("Changes" if diff else "Code" if code else "Arguments") + (
        f" — {count_noun(lines, 'line')}" if lines else ""
    )
    return (
        (Fold((Row((T(title, tone="muted"),)),), given, accordion=True, title=title),)
        if given
        else ()
    )


def _progress(state: CallCard, context: Context) -> tuple[Node, ...]:
    """Return the progress of a call and the end of its output."""
    bar = (
        Bar(state.fraction, progress_words(state), name=state.name)
        if state.fraction is not None
        else None
    )
    message = Row((T(state.message, tone="muted"),)) if state.message else None
    written = last_lines(_words(state, state.output.last(TAIL)))
    output = Pre(written) if written.strip() else None
    return tuple(node for node in (bar or message, output) if node is not None)


def _state(state: CallCard, context: Context) -> tuple[T, ...]:
    if state.status == "finished":
        return chip(
            state.early_status or "ok",
            format_duration(max(0.0, state.ended - state.started)) if state.started else "",
        )
    ran = (
        context.now - state.started
        if context.now is not None and state.started and state.status == "running"
        else 0
    )
    return chip(state.status, format_duration(math.floor(ran)) if ran >= 1 else "")


def _closed(state: CallCard, context: Context) -> Node:
    drawn = values.pictures(state.attachments, state.name)
    about = (
        values.gist(state.content, state.display, pictures=len(state.attachments))
        if state.status == "ok"
        else ""
    )
    took = format_duration(state.duration) if state.duration else ""
    right = (*((T(about, tone="muted"), T("   ")) if about else ()), *chip(state.status, took))
    result = _result(state, context)
    shown = () if about and said(result) == about else result
    output = () if beyond_output(state, context) is not None else _output(state)
    body = (
        *called_with(state, about),
        *_decision(state),
        *nested(state.children, context),
        *output,
        *shown,
    )
    fold = Fold(
        (Row(_head(state), right), *_lane(state)),
        body,
        open=state.status in FAILED,
        title=_title(state, about),
    )
    return Stack((fold, *drawn)) if drawn else fold


def said(result: tuple[Node, ...]) -> str:
    """Return a result that is only a few words or a number, else ""."""
    only = result[0] if len(result) == 1 else None
    if isinstance(only, Pre):
        return only.text.strip()
    return (
        short(only.value, 60)
        if isinstance(only, Json) and not isinstance(only.value, dict | list | str)
        else ""
    )


def _title(state: CallCard, about: str) -> str:
    return join_parts(f"{state.name}({format_arguments(state.args, 80)})", state.status, about)


def _lane(state: CallCard) -> tuple[Node, ...]:
    batch = state.batch
    if batch is None or not batch.parallel or not state.started or batch.ended <= batch.started:
        return ()
    whole = batch.ended - batch.started
    start, end = state.started - batch.started, max(state.started, state.ended) - batch.started
    label = f"ran from {format_duration(max(0.0, start))} to {format_duration(max(0.0, end))} of {format_duration(whole)}"
    tone: Tone = "bad" if state.status in FAILED else "run"
    return (Lane(max(0.0, start / whole), min(1.0, (end - start) / whole), tone, label),)


def called_with(state: CallCard, about: str = "") -> tuple[Node, ...]:
    """Return the approved change, or the arguments as code, text or a tree.

    Returns () if the summary line, which ends with `about`, already shows all arguments.
    """
    if changed := change(state):
        return changed
    if not state.args:
        raw = values.bounded(str(state.raw), 4000).strip()
        return (Pre(raw),) if raw not in {"", "{}"} and state.status in FAILED else ()
    whole = all(len(short(v, 60)) <= 36 and "…" not in short(v, 60) for v in state.args.values())
    if whole and len(format_arguments(state.args)) + len(about) <= ONE_LINE:
        return ()
    return written_arguments(state.name, state.args)


def written_arguments(name: str, args: dict[str, Any]) -> tuple[Node, ...]:
    """Return arguments for reading: long texts as code or text, the rest as a tree."""
    long = {
        k: v
        for k, v in args.items()
        if isinstance(v, str) and ("\n" in v or len(v) > 80 or k in CODE_ARGUMENTS)
    }
    rest = {k: v for k, v in args.items() if k not in long}
    made: list[Node] = [Json(rest)] if rest else []
    for key, text in long.items():
        if len(args) > 1:
            made.append(Row((T(key, tone="muted", mono=True),)))
        language = (
            LANGUAGES.get(name, "python" if key == "code" else "") if key in CODE_ARGUMENTS else ""
        )
        made.append(Code(values.bounded(text), language))
    return tuple(made)


def _decision(state: CallCard) -> tuple[Node, ...]:
    line = decided(state)
    return (line,) if line else ()


def _output(state: CallCard) -> tuple[Node, ...]:
    text = _words(state, str(state.output))
    if not text.strip():
        return ()
    lines = text.count("\n") + (not text.endswith("\n"))
    if lines <= FEW:
        return (Pre(text),)
    fold = Fold(
        (Row((T("Output", tone="muted"), T(f" — {count_noun(lines, 'line')}", tone="muted"))),),
        (Pre(text),),
        title="Output",
    )
    return (fold,)


def beyond_output(state: CallCard, context: Context) -> str | None:
    """Return the rest of a result that begins with the output of its call.

    Returns None if the result does not begin with it, or is drawn by an installed card.
    """
    said = str(state.output).rstrip("\n")
    if (
        not said
        or state.status != "ok"
        or state.display
        or not isinstance(state.content, str)
        or not state.content.startswith(said)
    ):
        return None
    return (
        state.content[len(said) :].lstrip("\n") if custom("tool", state, context) is None else None
    )


def outcome(state: CallCard, context: Context) -> tuple[Node, ...]:
    """Return the end of a finished call whose output was already shown.

    It holds the decision about the call, the runs inside it and its result.
    """
    rest = beyond_output(state, context)
    result = _result(state, context) if rest is None else values.text_nodes(rest)
    said = str(state.output)
    named = rest is not None and without_captions(said) != said
    pictures = () if named else values.pictures(state.attachments, state.name)
    return (*_decision(state), *nested(state.children, context), *result, *pictures)


def _result(state: CallCard, context: Context) -> tuple[Node, ...]:
    mine = custom("tool", state, context)
    if mine is not None:
        return (mine,)
    if state.status == "ok":
        content = _words(state, state.content) if isinstance(state.content, str) else state.content
        return values.value_nodes(content, state.display)
    return _failure(state)


def _words(state: CallCard, text: str) -> str:
    """Return the words of a text: lines that name a picture say nothing beside the picture."""
    return without_captions(text) if state.attachments else text


def _failure(state: CallCard) -> tuple[Node, ...]:
    said = state.content if isinstance(state.content, str) else ""
    found = (state.display or {}).get("text/plain")
    trace = found.strip() if isinstance(found, str) else ""
    if not trace and TRACEBACK in said:
        before, trace = said[: said.index(TRACEBACK)].strip(), said[said.index(TRACEBACK) :].strip()
        said = "" if state.output else before  # the output already shows what was printed before it
    message = said or state.error or trace.rpartition("\n")[2]
    first, _, rest = bounded(message.strip(), 2000).partition("\n")
    tone: Tone = "bad" if state.status in FAILED else "muted"
    shown: list[Node] = [Row((T(clip_text(first, 2000), tone=tone),), wrap=True)] if first else []
    shown += [Pre(rest)] if rest.strip() else []
    more: tuple[Node, ...] = values.traceback(trace)[1:] if "\n" in trace else ()
    extra = (Json(state.content),) if not isinstance(state.content, str) and state.content else ()
    return (*shown, *extra, *more)


def last_lines(text: str, lines: int = LINES) -> str:
    """Return the last lines of an output."""
    kept = text.rstrip("\n").split("\n")
    return "\n".join(kept[-lines:])


def streaming_arguments(raw: str) -> str:
    """Return the end of half-written JSON arguments, with lines and quotes unescaped."""
    text = raw.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "    ")
    return last_lines(text, 8)
