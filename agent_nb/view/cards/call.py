"""A tool call, from its first letter to its result, as a fold.

Its line says what the call does (`call_line`) and its status. It opens to the question or the
arguments, the progress and the output, and, once the call has ended, to the result.

Rules
- Each thing is shown once: on the line, in the output, or in the result.
- The pictures of an ended call stand below the fold, where they stay visible when it closes.
"""

from __future__ import annotations

import math
import re

from msgspec.structs import replace

from ...wire import Attachment, without_captions
from .. import values
from ..call_line import describe_call, find_language
from ..format import (
    MOVING,
    clip_text,
    draw_status,
    extract_gist,
    find_icon,
    format_duration,
    format_json,
    join_parts,
    text_row,
)
from ..nodes import Bar, Code, Fold, Html, Json, Node, Pre, Row, Stack, T, Tone
from ..parts import separate_charts
from ..progress_words import progress_words
from ..state.cards import CallCard, RespondCard
from ..values import bound_text
from ..visible import show_hidden
from . import approval
from .base import Context, custom
from .node import nested

# the end of the output of a running call that is shown, and of an argument that is being written
OUTPUT_CHARACTERS, OUTPUT_LINES = 1600, 10
ARGUMENT_CHARACTERS, ARGUMENT_LINES = 4000, 8
LINE_CHARACTERS = 84  # that fit on the line of a call
NARROW_CHARACTERS = 16  # of a gist that a narrow line has room for
# statuses of failed calls: drawn open even inside another call, with the message in red
FAILED = ("error", "denied", "timeout")
CELLS = ("python",)  # tools whose code runs as a cell
# the text that Plotly and Altair print in place of a chart
_CHART = re.compile(r"\A[\w.]*(?:Chart|Figure\w*)\(.*\)(?:\n|\Z)", re.DOTALL)
# the text of a display that says nothing, or is missing (`tools.figures.IN_CELL`)
_DISPLAY = re.compile(r"(?m)^(?:\[shown in the cell\]|<IPython\.core\.display\.\w+ object>)\n")
# the beginning of a traceback; that of a syntax error has no heading
_TRACE = re.compile(r'(?m)Traceback \(most recent call last\):|^ *File "<cell>", line')


def card(state: CallCard, context: Context) -> Node:
    """Return the call as a fold; an installed card `call-NAME` draws it once it has ended."""
    if state.open:
        return _draw_open(state, context)
    installed = custom("call", state, context)
    return _draw_ended(state, context) if installed is None else installed


def _draw_left_side(state: CallCard) -> tuple[T, ...]:
    """Return the left side of the line: glyph, name, server, the arguments in short."""
    line = describe_call(state.name, state.known)
    name = (
        T(f"{find_icon(state.name)} ", tone="muted", mono=True, label="Tool"),
        T(state.name or "tool", bold=True, mono=True),
        *((T(f" · {clip_text(state.server, 40)}", tone="muted"),) if state.server else ()),
    )
    arguments = T(line.text, tone="muted", mono=not line.prose, language=line.language)
    return (*name, *((T("  "), arguments) if line.text else ()))


def _draw_open(state: CallCard, context: Context) -> Node:
    """Return a call that has no result yet; a nested one without a question is only its line."""
    line = Row(_draw_left_side(state), _describe_status(state, context))
    if context.nested and state.status != "waiting":
        return line
    # `finished`: the call has ended, and its result waits for the results of earlier calls
    installed = custom("progress", state, context) if state.status != "finished" else None
    body = (
        *_draw_arguments(state, context),
        *(_draw_progress(state) if installed is None else (installed,)),
        *values.draw_attachments(state.attachments, state.name),
        *nested(state, context),
    )
    waiting = state.status == "waiting"
    return Fold((line,), body, open=True, title=_describe_as_text(state, ""), gives_way=not waiting)


def _draw_arguments(state: CallCard, context: Context) -> tuple[Node, ...]:
    """Return the arguments of an open call: as they are written, in a question, or whole."""
    if state.status == "writing":
        return _draw_written(state)
    if state.status == "waiting":
        question = approval.card(state, context)
        return (question,) if question else ()
    return called_with(state)


def _draw_written(state: CallCard) -> tuple[Node, ...]:
    """Return the end of the argument that is being written, unless the line shows all of it."""
    arguments = state.known
    if not arguments:  # not an object, or not yet one
        raw = state.raw.tail(ARGUMENT_CHARACTERS).strip()
        end = show_hidden(last_lines(raw, ARGUMENT_LINES))
        return (Pre(end),) if raw and raw[0] not in '{"' else ()
    key, value = list(arguments.items())[-1]
    text = values.newest_text(value)
    if not values.is_code_or_long(key, text) or describe_call(state.name, {key: text}).whole:
        return ()
    language = find_language(state.name, key, arguments)
    end = show_hidden(text[-ARGUMENT_CHARACTERS:])
    return (Code(end, language, last=ARGUMENT_LINES),)


def _draw_progress(state: CallCard) -> tuple[Node, ...]:
    """Return the bar of a call, or its message, and the end of its output."""
    parts: list[Node] = []
    if state.status != "finished" and state.fraction is not None:
        parts.append(Bar(state.fraction, progress_words(state), name=state.name))
    elif state.status != "finished" and state.message:
        parts.append(text_row(state.message))
    printed = last_lines(_without_captions(state, state.output.last(OUTPUT_CHARACTERS)))
    return (*parts, *((Pre(printed),) if printed.strip() else ()))


def _describe_status(state: CallCard, context: Context) -> tuple[T, ...]:
    """Return the right side of an open call's line: status and time.

    It is empty while the call waits for the user: the question and the header say so.
    """
    if state.status == "waiting":
        return ()
    if state.status == "finished":
        ran = max(0.0, state.ended - state.started)
        return draw_status(state.early or "ok", format_duration(ran) if state.started else "")
    is_timed = state.started and state.status == "running"
    ran = context.now - state.started if context.now is not None and is_timed else 0
    return draw_status(state.status, format_duration(math.floor(ran)) if ran >= 1 else "")


def _draw_ended(state: CallCard, context: Context) -> Node:
    short_result, installed = _shorten_result(state), custom("tool", state, context)
    result = _draw_result(state, installed)
    if _is_answered_inside(state) or (short_result and short_text(result) == short_result):
        result = ()  # it is shown already
    below = values.draw_attachments(state.attachments, state.name)
    if shows_last_value(state):
        below = (*below, *(replace(n, below=True) if isinstance(n, Html) else n for n in result))
        result = ()
    nested_runs, charts = separate_charts(nested(state, context))
    below = (*below, *charts)
    fold = Fold(
        (Row(_draw_left_side(state), _describe_end(state, short_result)),),
        (
            *called_with(state, short_result),
            *approval.decision_line(state),
            *nested_runs,
            *_draw_output(state, installed),
            *result,
        ),
        open=not context.nested or state.status in FAILED,
        title=_describe_as_text(state, short_result),
        gives_way=state.status not in FAILED,
    )
    return Stack((fold, *below)) if below else fold


def _shorten_result(state: CallCard) -> str:
    """Return the result as the line of an ended call has it; "" for a failure."""
    if _is_answered_inside(state):
        return extract_gist(str(state.content), 60)
    if state.status != "ok":
        return ""
    figures = sum(Attachment(attachment).is_figure for attachment in state.attachments)
    return values.describe_result(state.content, state.display, pictures=figures)


def _describe_end(state: CallCard, short_result: str) -> tuple[T, ...]:
    """Return the right side of an ended call's line: its result in short, status and time."""
    about = T(short_result, tone="muted", cut=len(short_result) > NARROW_CHARACTERS)
    duration = format_duration(state.duration) if state.duration else ""
    return (*((about, T("   ")) if short_result else ()), *draw_status(state.status, duration))


def shows_last_value(state: CallCard) -> bool:
    """Return whether code ended with a displayed value, which is drawn below the fold."""
    return (
        state.name in CELLS
        and state.status == "ok"
        and any(kind in values.DISPLAY_TYPES for kind in state.display or ())
    )


def _is_answered_inside(state: CallCard) -> bool:
    """Return whether the result is the answer of a sub-agent, whose run already shows it."""
    answers = [c for view in state.children for c in view.cards if isinstance(c, RespondCard)]
    return bool(answers) and not answers[-1].typed and str(answers[-1].text) == state.content


def short_text(result: tuple[Node, ...]) -> str:
    """Return the text of a result that is one text, number, boolean or null, else ""."""
    only = result[0] if len(result) == 1 else None
    if isinstance(only, Pre):
        return only.text.strip()
    if isinstance(only, Json) and not isinstance(only.value, dict | list | str):
        return format_json(only.value, 60)
    return ""


def _describe_as_text(state: CallCard, about: str) -> str:
    """Return the line as plain text, without "running", which would outlive a killed kernel."""
    arguments = clip_text(describe_call(state.name, state.args).text, 80)
    status = "" if state.status in MOVING else state.status
    return join_parts(f"{state.name} {arguments}".rstrip(), status, about)


def called_with(state: CallCard, about: str = "") -> tuple[Node, ...]:
    """Return the change that the user decided on, or the arguments as code, text or a tree.

    () if the line of the call, which ends with the gist `about`, shows all arguments.
    """
    if change := approval.decided_change(state):
        return change
    if not state.args:  # what could not be parsed is shown as the model wrote it
        raw = show_hidden(bound_text(str(state.raw), 4000)).strip()
        return (Pre(raw),) if raw not in {"", "{}"} and state.status in FAILED else ()
    line = describe_call(state.name, state.args)
    if line.whole and len(line.text) + len(about) <= LINE_CHARACTERS:
        return ()
    return values.argument_nodes(state.name, state.args)


def _draw_output(state: CallCard, installed: Node | None) -> tuple[Node, ...]:
    """Return what an ended call printed, unless its result repeats it; it scrolls if it is long."""
    if _find_remainder(state, installed) is not None:
        return ()
    text = _without_captions(state, str(state.output))
    return (Pre(text),) if text.strip() else ()


def _find_remainder(state: CallCard, installed: Node | None) -> str | None:
    """Return what follows the output in a result that begins by repeating the output.

    None if it does not begin so, or if an `installed` card draws the result.
    """
    output, content = str(state.output).rstrip("\n"), state.content
    if installed is not None or not output or state.status != "ok" or state.display:
        return None
    if not isinstance(content, str) or not content.startswith(output):
        return None
    return content[len(output) :].lstrip("\n")


def outcome(state: CallCard, context: Context) -> tuple[Node, ...]:
    """Return what a terminal, which has printed the output already, prints at the end of a call."""
    installed = custom("tool", state, context)
    remainder = _find_remainder(state, installed)
    result = _draw_result(state, installed) if remainder is None else values.text_nodes(remainder)
    output = str(state.output)
    captions_printed = remainder is not None and without_captions(output) != output
    pictures = () if captions_printed else values.draw_attachments(state.attachments, state.name)
    return (*approval.decision_line(state), *nested(state, context), *result, *pictures)


def _draw_result(state: CallCard, installed: Node | None) -> tuple[Node, ...]:
    """Return the result of a call; what an `installed` card `tool-NAME` drew takes precedence."""
    if installed is not None:
        return (installed,)
    if state.status == "ok":
        content = state.content
        if isinstance(content, str):
            content = _without_captions(state, content)
            # the text that stands for a chart is left out if the chart itself is shown
            if any(Attachment(attachment).chart[0] for attachment in state.attachments):
                content = _CHART.sub("", content)
        return values.value_nodes(content, state.display)
    return _draw_failure(state)


def _without_captions(state: CallCard, text: str) -> str:
    """Return a text without the captions of pictures, if the pictures themselves are shown."""
    return _DISPLAY.sub("", without_captions(text)) if state.attachments else text


def _draw_failure(state: CallCard) -> tuple[Node, ...]:
    """Return the result of a call without success: message, data, and the traceback in a fold."""
    text = state.content if isinstance(state.content, str) else ""
    output = str(state.output).rstrip("\n")
    if f"{text}\n".startswith(f"{output}\n"):  # these lines are shown above
        text = text[len(output) :].lstrip("\n")
    plain = (state.display or {}).get("text/plain")
    trace = plain.strip() if isinstance(plain, str) else ""
    if not trace and (start := _TRACE.search(text)):
        trace = text[start.start() :].strip()
        text = "" if state.output else text[: start.start()].strip()  # shown with the output
    message = text or state.error or trace.rpartition("\n")[2]
    first, _, rest = bound_text(message.strip(), 2000).partition("\n")
    tone: Tone = "bad" if state.status in FAILED else "muted"
    lines: list[Node] = [text_row(clip_text(first, 2000), tone, wrap=True)] if first else []
    lines += [Pre(rest)] if rest.strip() else []
    # without its first node, the last line of the traceback, which repeats the message
    traceback: tuple[Node, ...] = values.draw_traceback(trace)[1:] if "\n" in trace else ()
    data = (Json(state.content),) if not isinstance(state.content, str) and state.content else ()
    return (*lines, *data, *traceback)


def last_lines(text: str, lines: int = OUTPUT_LINES) -> str:
    """Return the last lines of an output."""
    return "\n".join(text.rstrip("\n").split("\n")[-lines:])
