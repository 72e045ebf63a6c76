"""The result of a tool as nodes (text, JSON tree, table, image, diff, traceback), and its gist.

Why bounded: tools return anything, also gigabytes of text, and a page must open at once. The
drawers escape, and draw a `Pre` as a terminal shows it: the hidden characters of arguments are made
visible here.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..wire import Attachment, cut_middle, describe_size
from .call_line import CODE, find_language
from .display import widget
from .format import clip_text, count_noun, join_parts, text_row
from .nodes import Code, Diff, Fold, Html, Image, Interactive, Json, Node, Pre, Prose, Row, T, Table
from .visible import show_hidden

LONGEST = 20_000  # characters of one text
LONGEST_CELL = 200  # characters of a cell in a table
LONGEST_GIST = 60  # characters
# SVG is missing: a tool's is never drawn, a cell's only as an <img> (`display_nodes`)
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
SVG = "image/svg+xml"
# an output of a cell is shown beside its run if it has one of these types
DISPLAY_TYPES = (SVG, *IMAGES, "text/html", "text/markdown", "text/latex")
OPEN_PICTURES = 6  # more are in a fold
LARGEST_IMAGE = 6_000_000  # characters of an image in base64, of an SVG drawing, or of HTML
MOST_ROWS = 20  # of a table that are shown
MOST_COLUMNS = 10  # a value with more columns becomes a tree
_DIFF = re.compile(r"^(?:--- .*\n\+\+\+ |diff --git |@@ -\d+)", re.MULTILINE)
# a traceback of Python, or of IPython, which begins with dashes and the error below them
_TRACE = re.compile(
    r"^Traceback \(most recent call last\)|^-{20,}\n\w+(Error|Exception)\b", re.MULTILINE
)
# media type -> the bytes with which such an image begins
_MAGIC = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def display_nodes(data: Mapping[str, Any]) -> tuple[Node, ...]:
    """Return the nodes of a mime bundle that a cell displayed; an SVG drawing becomes an image."""
    svg = None if any(mime in data for mime in IMAGES) else data.get(SVG)
    if isinstance(svg, str) and svg.strip() and len(svg) <= LARGEST_IMAGE:
        # scripts do not run in an <img>
        return (Image(SVG, base64.b64encode(svg.encode("utf-8", "replace")).decode(), "drawing"),)
    bundle = {m: value for m, value in data.items() if m in DISPLAY_TYPES or m == "text/plain"}
    return value_nodes(None, bundle)


def value_nodes(content: Any, display: dict[str, Any] | None = None) -> tuple[Node, ...]:
    """Return the nodes of a result: of its mime bundle `display`, else of its `content`."""
    for mime, make in _FORMS.items():
        value = (display or {}).get(mime)
        nodes = make(mime, value, display or {}) if value not in (None, "") else ()
        if nodes:
            return nodes
    return content_nodes(content)


def content_nodes(content: Any) -> tuple[Node, ...]:
    """Return the nodes of a text or JSON value."""
    if isinstance(content, str):
        return text_nodes(content)
    return (make_table(content) or Json(content),)


def text_nodes(text: str) -> tuple[Node, ...]:
    """Return the nodes of a text: a traceback, a diff, JSON or plain text, judged by its look."""
    if not text.strip():
        return ()
    if _TRACE.search(text[:4000]):
        return draw_traceback(text)
    if _DIFF.search(text[:400]):
        return (Diff(bound_text(text)),)
    if text.lstrip()[:1] in "{[":
        return _json_text(text)
    return (Pre(bound_text(text)),)


def is_diff(text: str) -> bool:
    """Return whether a text begins as a diff; lines with dashes alone may be a list."""
    return _DIFF.match(text) is not None


def draw_traceback(text: str) -> tuple[Node, ...]:
    """Return the last line of a traceback, with the whole of it in a fold."""
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "error")
    head = text_row(f"Traceback — {count_noun(len(text.splitlines()), 'line')}")
    return (
        text_row(clip_text(last, 400), "bad", wrap=True),
        Fold((head,), (Code(bound_text(text), "pytb"),), title="Traceback"),
    )


def _json_text(text: str) -> tuple[Node, ...]:
    try:
        value = json.loads(text) if len(text) <= LONGEST else None
    except (ValueError, RecursionError):
        value = None
    return content_nodes(value) if isinstance(value, dict | list) else (Pre(bound_text(text)),)


def bound_text(text: str, limit: int = LONGEST) -> str:
    """Return a text cut to `limit` characters: head, size of what is left out, tail."""
    left_out = count_noun(len(text) - limit, "character")
    return cut_middle(text, limit, f"… {left_out} left out here; the log has them …")


def argument_nodes(tool: str, args: Mapping[str, Any]) -> tuple[Node, ...]:
    """Return the arguments of a call: code and long texts in boxes, the others as a tree."""
    long_texts = {k: v for k, v in args.items() if isinstance(v, str) and is_code_or_long(k, v)}
    short_args = {k: v for k, v in args.items() if k not in long_texts}
    parts: list[Node] = [Json(short_args)] if short_args else []
    for key, long_text in long_texts.items():
        if len(args) > 1:
            parts.append(Row((T(key, tone="muted", mono=True),)))
        text, language = show_hidden(bound_text(long_text)), find_language(tool, key, args)
        parts.append(Code(text, language) if language else Pre(text))
    return tuple(parts)


def is_code_or_long(key: str, text: str) -> bool:
    """Return whether an argument is shown in a box of its own."""
    return is_long(text) or key in CODE


def is_long(text: str) -> bool:
    """Return whether a text does not fit on one line."""
    return "\n" in text or len(text) > 80


def newest_text(value: Any) -> str:
    """Return the text at the end of a JSON value that is being written; "" if it has none."""
    while isinstance(value, dict | list) and value:
        value = list(value.values())[-1] if isinstance(value, dict) else value[-1]
    return value if isinstance(value, str) else ""


def make_table(value: Any) -> Table | None:
    """Return a table if `value` is a list of objects that fits one, else None.

    The first `MOST_ROWS` objects must be flat, and have `MOST_COLUMNS` keys in all at most.
    """
    if not are_objects(value):
        return None
    shown = value[:MOST_ROWS]
    # in the order of their first appearance, as in the first rows that people see
    columns = list(dict.fromkeys(str(key) for row in shown for key in row))
    cells = [v for row in shown for v in row.values()]
    if len(columns) > MOST_COLUMNS or any(isinstance(v, dict | list) for v in cells):
        return None
    rows = tuple(tuple(format_cell(row.get(c, "")) for c in columns) for row in shown)
    note = count_noun(len(value) - MOST_ROWS, "more row") if len(value) > MOST_ROWS else ""
    return Table(tuple(columns), rows, note)


def are_objects(value: Any) -> bool:
    """Return whether a value is a list of objects, none of them empty."""
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) and v for v in value)


def format_cell(value: Any) -> str:
    """Return a JSON value as the text of a table cell."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return clip_text(text, LONGEST_CELL)


# The forms: (type, value, bundle) → nodes, () if the value cannot be drawn.


def _image(mime: str, value: Any, display: dict[str, Any]) -> tuple[Node, ...]:
    """Return base64 data as an image, if it is of bounded size and begins like its type."""
    data = "".join(value.split()) if isinstance(value, str) and len(value) <= LARGEST_IMAGE else ""
    try:
        # 64 letters are whole groups of four, and hold the first bytes
        head = base64.b64decode(data[:64], validate=True)
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return ()
    alt = display.get("text/plain")
    if head.startswith(_MAGIC[mime]):
        return (Image(mime, data, clip_text(alt, 120) if isinstance(alt, str) else "image"),)
    return ()


def _html(mime: str, value: Any, display: dict[str, Any]) -> tuple[Node, ...]:
    text = display.get("text/plain")
    if not isinstance(value, str) or len(value) > LARGEST_IMAGE:
        return ()
    return (Html(value, bound_text(text) if isinstance(text, str) else ""),)


def _latex(mime: str, value: Any, display: dict[str, Any]) -> tuple[Node, ...]:
    """Return LaTeX as one formula, or as markdown if it has several, or words around them."""
    if not isinstance(value, str):
        return ()
    tex = value.strip()
    bare = tex.strip("$").strip()
    is_one_formula = "$" not in bare and (
        tex.startswith("\\begin{") or (tex.startswith("$") and tex.endswith("$"))
    )
    if is_one_formula and bare:
        value = "$$\n" + re.sub(r"\n\s*\n", "\n", bare) + "\n$$"  # a blank line would end it
    return (Prose(bound_text(value)),)


# MIME type -> function; the richest form comes first, and the first that can be drawn is taken
_FORMS: dict[str, Callable[[str, Any, dict[str, Any]], tuple[Node, ...]]] = {
    **dict.fromkeys(IMAGES, _image),
    "text/html": _html,
    "text/markdown": lambda _, value, __: (
        (Prose(bound_text(value)),) if isinstance(value, str) else ()
    ),
    "text/latex": _latex,
    "application/json": lambda _, value, __: content_nodes(value),
    "text/plain": lambda _, value, __: text_nodes(value) if isinstance(value, str) else (),
}


def draw_attachments(attachments: Sequence[Mapping[str, Any]], of: str = "") -> tuple[Node, ...]:
    """Return attachments as images, charts and tables; images after `OPEN_PICTURES` in a fold.

    `of`: the name of the tool that made them. An attachment that cannot be drawn becomes a line
    with its type.
    """
    numbered = Attachment.number_all(attachments)
    nodes = [node for n, a in numbered for node in _draw_attachment(n, a, of)]
    images = [node for node in nodes if isinstance(node, Image)]
    folded = tuple(images[OPEN_PICTURES:])
    if not folded:
        return tuple(nodes)
    title = count_noun(len(folded), "more picture")
    fold = Fold((text_row(title),), folded, title=title)
    return (*(node for node in nodes if node not in folded), fold)


def _draw_attachment(number: int, attachment: Attachment, of: str) -> tuple[Node, ...]:
    """Return an attachment as a picture, a chart, a widget, or what its mime bundle shows."""
    note = attachment.get(Attachment.NOTE)
    notes = (text_row(clip_text(note, 300), wrap=True),) if isinstance(note, str) else ()
    picture = (_draw_picture(number, attachment, of),) if attachment.get("data") else ()
    # without a mime bundle: the picture, or a line that names the type if nothing can be drawn
    if not attachment.display:
        return picture + notes if picture else (_draw_picture(number, attachment, of),)
    kind, chart = attachment.chart
    if attachment.model_id:
        still = picture or value_nodes(None, attachment.display)
        return (Interactive(widget(attachment.model_id), still),)
    if not kind:
        return picture or value_nodes(None, attachment.display)
    if Attachment.explain_refusal(kind, chart):  # a forged record: ours refused it before
        return picture or (_draw_picture(number, attachment, of),)
    caption = f"figure {number}{of and f' of {of}'}: {attachment.chart_name}"
    return (_draw_chart(kind, chart, caption, picture, notes),)


def _draw_chart(
    kind: str, chart: Any, caption: str, picture: tuple[Node, ...], notes: tuple[Row, ...]
) -> Interactive:
    """Return a chart of the MIME type `kind`; its `notes` replace a `picture` that is missing."""
    described = f"{caption}; {notes[0].left[0].text}" if notes else caption
    still = picture or (text_row(described, wrap=True),)
    data = {kind: chart, "text/plain": caption if picture else described}
    if picture and isinstance(picture[0], Image):
        data[picture[0].media_type] = picture[0].data
    return Interactive(data, still)


def _draw_picture(number: int, attachment: Mapping[str, Any], of: str) -> Node:
    """Return an attachment as an image with a caption, or as a line that names its type."""
    kind = str(attachment.get("media_type", ""))
    name = attachment.get("name")
    title = f"figure {number} of {of}" if of else f"figure {number}"
    if isinstance(name, str) and name:
        title = clip_text(name, 60)
    size = describe_size(attachment)
    caption = join_parts(title, f"{size} pixels" if size else "")
    data = attachment.get("data")
    if kind in IMAGES and (images := _image(kind, data, {"text/plain": caption})):
        return images[0]
    return text_row(f"attached: {clip_text(kind, 60) or 'file'}")


def describe_result(
    content: Any, display: dict[str, Any] | None = None, *, pictures: int = 0
) -> str:
    """Return a result in a few words: its only line, the names of its fields, or its size.

    `pictures`: the number of its figures; if it has any, only that is returned, as `2 figures`.
    """
    if pictures:
        return count_noun(pictures, "figure")
    bundle = display or {}
    if any(mime in bundle for mime in IMAGES):
        return "image"
    plain = bundle.get("text/plain")
    if isinstance(content, str):
        return _text_gist(content or (plain if isinstance(plain, str) else ""))
    if isinstance(content, list):
        return count_noun(len(content), "item")
    if isinstance(content, dict):
        return clip_text(", ".join(map(str, content)), LONGEST_GIST) or "{}"
    return clip_text(json.dumps(content, ensure_ascii=False), LONGEST_GIST)


def _text_gist(text: str) -> str:
    first = next((line for line in text[:4000].splitlines() if line.strip()), "")
    # the tool `variables` begins with the class and the shape, which say more than a size
    if "\n" not in text or text.isspace() or re.match(r"(?:DataFrame|Series|ndarray)\b", first):
        return clip_text(first, LONGEST_GIST)
    return count_noun(text.count("\n") + (not text.endswith("\n")), "line")
