"""Nodes → markdown, for front ends, converters and diffs that read it.

Why so careful: a trusted page may render `text/markdown` with raw HTML. So every character of a
model or tool that could begin a tag, a link or an image is disarmed, in a way that holds in every
markdown parser. An answer becomes, for example:

    <script>      →  &lt;script>          ![x](https://…)  →  [x](https://…)
    [x](data:…)   →  [x]\\(data:…)        $\\href{…}{x}$    →  `$\\href{…}{x}$`

Rules
- Links of an answer stay if they are http, https or mailto (in `<…>` not mailto); images only with
  their data inside.
- TeX that could leave its box (see `markdown.tex`) becomes code; outside formulas it is broken up.
"""

from __future__ import annotations

import re
from itertools import pairwise

from ...wire import cut_end
from .. import nodes, visible
from ..markdown import tex
from ..nodes import Node
from . import text
from .markup import LONGEST
from .text import DrawFunction, draw_containers, draw_each

ZERO = "\u200b"  # a space without width, put between characters that a parser must not see together
# an underscore within a word has no meaning
_SPECIAL = re.compile(r"[\\`*\[\]~$|#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_AUTOLINK = re.compile(r"<https?://[^\s<>]*>")
# a code span: `x`, or ``x ` y``
_SPAN = re.compile(r"(?<!`)(`+)(?!`)((?:.|\n)*?[^`])\1(?!`)")
# the beginning of a link target that is not allowed, such as `](javascript:`
_TARGET = re.compile(r"\]\((?!\s*(?:https?://|mailto:))", re.IGNORECASE)
_TEX = re.compile(r"\\\S|\$[^$]*[\^_{}]")  # MathJax may typeset this although markdown escapes it
_MATH = re.compile(r"\$|\\[(\[]|\\begin")
# a code span, or (`tex`) what front ends may take for a formula
_FORMULA = re.compile(
    rf"{_SPAN.pattern}|(?<!\\)(?P<tex>\$\$(?!\$)[^$]{{1,1000}}\$\$|\$(?![\s$])(?:[^$\\\n]|\\.){{1,5200}}?(?<!\s)\$(?!\d)"
    r"|\\\((?s:.){1,1000}?\\\)|\\\[(?s:.){1,1000}?\\\]|\\begin\{(?P<env>\w{1,12}\*?)\}(?s:.){1,2000}?\\end\{(?P=env)\})"
)
# an image with its data inside, `![x](data:image/png;base64,…)`; no image in its text, since many
# "![" in a row would take quadratic time
_RASTER = re.compile(
    r"!\[(?=(?:[^\]\n!]|!(?!\[))*\]\(data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+\))"
)


def draw(node: Node) -> str:
    """Return the markdown of a node, with empty lines between its blocks."""
    return "\n\n".join(part for part in blocks(node) if part)


def blocks(node: Node) -> list[str]:
    """Return the blocks of a node."""
    return DRAW[type(node)](node)


def literal(text: str) -> str:
    """Return markdown that reads as `text`: escaped, or as a code span if it may hold TeX."""
    return span(text) if _TEX.search(text) else escaped(text)


def escaped(text: str) -> str:
    """Return text that no parser takes for markup."""
    return (
        _SPECIAL.sub(r"\\\g<0>", visible.show_hidden(cut_end(text, LONGEST)))
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace("\n", " ")
    )


def span(text: str) -> str:
    """Return a code span; a text of white space stays as it is."""
    code = _disarm_code(visible.show_hidden(cut_end(text, LONGEST)).replace("\n", " "))
    runs = [len(run) for run in re.findall(r"`+", code)]
    ticks = "`" * (max(runs, default=0) + 1)
    pad = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{ticks}{pad}{code}{pad}{ticks}" if code.strip() else code


def _disarm_code(code: str) -> str:
    """Return code without tags and links, even for a parser that does not see its backticks."""
    return _TAG.sub(f"<{ZERO}", code).replace("](", f"]{ZERO}(").replace("]:", f"]{ZERO}:")


def fence(text: str, language: str = "") -> str:
    """Return a code block."""
    code = visible.show_output(text).rstrip("\n")
    ticks = "`" * max(3, max((len(run) for run in re.findall(r"`+", code)), default=0) + 1)
    return f"{ticks}{re.sub(r'[^a-z0-9+-]', '', language.lower())}\n{code}\n{ticks}"


def inline(run: nodes.T) -> str:
    """Return a run of text."""
    if not run.text.strip():
        return " " if run.text else ""
    if run.mono and not run.label:  # a run with a label is a glyph, not code
        return span(run.text)
    body = literal(run.text)
    mark = "**" if run.bold else "*" if run.italic else ""
    core = body.strip()
    return body.replace(core, f"{mark}{core}{mark}", 1) if mark else body


def line(runs: tuple[nodes.T, ...]) -> str:
    """Return runs of text on one line."""
    return re.sub(r" {2,}", " ", "".join(inline(run) for run in runs)).strip()


def row(node: nodes.Row) -> list[str]:
    """Return a paragraph: left — right."""
    paragraph = " — ".join(part for part in (line(node.left), line(node.right)) if part)
    return [_BLOCK_MARK.sub(r"\1\\\2", paragraph)]


# a beginning that makes a line a list, a heading or a quotation
_BLOCK_MARK = re.compile(r"^(\d*)((?<=\d)[.)]|(?<!\d)[-+>=](?=\s|$))")


def fold(node: nodes.Fold) -> list[str]:
    """Return the summary and the body below it; of a closed accordion, only the summary.

    A `line` shows all of a fold.
    """
    if node.line:
        return blocks(node.line)
    closed = node.accordion and node.folded
    return draw_each(blocks, node.summary if closed else (*node.summary, *node.body))


def panel(node: nodes.Panel) -> list[str]:
    """Return the steps as a list, with the body of each step in its item."""
    items = [
        item(parts)
        for step in node.steps
        if (parts := [part for part in blocks(step.child) if part])
    ]
    return ["\n".join(items)] if items else []


def item(parts: list[str]) -> str:
    """Return blocks as one list item."""
    return "- " + "\n".join(
        f"  {line}" if line else "" for line in "\n\n".join(parts).split("\n")
    ).removeprefix("  ")


def page(node: nodes.Page) -> list[str]:
    """Return all sections."""
    return [block for section in node.sections for block in blocks(section.child)]


def _code(source: str, language: str = "") -> list[str]:
    """Return a code block with at most `text.OPENED` lines of the source."""
    return [fence("\n".join(text.cap_lines(text.lines(nodes.Pre(source)), text.OPENED)), language)]


def _cell(text: str) -> str:
    return span(text).replace("|", "\\|") if _TEX.search(text) else escaped(text)


def table(node: nodes.Table) -> list[str]:
    """Return a table."""
    rows = [
        "| " + " | ".join(_cell(c) for c in cells) + " |" for cells in (node.columns, *node.rows)
    ]
    rows.insert(1, "|" + " --- |" * len(node.columns))
    return ["\n".join(rows), *([literal(node.note)] if node.note else [])]


def prose(node: nodes.Prose) -> list[str]:
    """Return an answer as the model wrote it, disarmed."""
    from ..markdown.split import lines_of, parse

    source = visible.show_prose(str(node.text).replace("\r", ""))
    parsed, references = parse(source, {})
    lines = lines_of(source)
    pieces = []
    for block in parsed:
        token = block.tokens[0]
        code = token.type in {"fence", "code_block"}
        body = fence(token.content, "".join(token.info.split()[:1])) if code else ""
        pieces.append(body or disarmed("".join(lines[block.start : block.end]).rstrip("\n")))
    # definitions of links belong to no block, so they are written again, if they are safe
    links = [
        f"[{label.lower()}]: <{reference['href']}>"
        for label, reference in references.items()
        if _safe_reference(label, reference["href"])
    ]
    return [*pieces, *(["\n".join(links)] if links else [])]


def _safe_reference(label: str, href: str) -> bool:
    """Return whether a link definition leads to the web or to mail, and holds no markup."""
    if re.search(r"[\[\]<>`\n\\]", label):
        return False
    return re.match(r"(?:https?://|mailto:)[^\s<>]*\Z", href, re.IGNORECASE) is not None


def disarmed(text: str) -> str:
    """Return markdown in which nothing begins a tag, a foreign image or TeX that leaves its box.

    Links lead only to the web or to mail.
    """
    pieces, position = [], 0
    maths = _MATH.search(text) is not None
    if maths:
        text = _FORMULA.sub(
            lambda m: m[0] if m["tex"] is None or tex.is_harmless(m["tex"]) else span(m["tex"]),
            text,
        )
    for match in _SPAN.finditer(text):
        pieces.append(_disarm_text(text[position : match.start()], maths=maths))
        pieces.append(_disarm_code(match.group()))
        position = match.end()
    return "".join([*pieces, _disarm_text(text[position:], maths=maths)])


def _disarm_text(text: str, *, maths: bool) -> str:
    """Return text outside code spans, disarmed; `maths`: it may hold TeX."""
    # front ends differ in what they take for a formula, so every refused command is broken up
    if maths:
        cuts = [0, *(backslash + 1 for backslash in tex.find_refused(text)), len(text)]
        text = ZERO.join(text[a:b] for a, b in pairwise(cuts))
    autolinks = _AUTOLINK.findall(text)
    parts = [_TAG.sub("&lt;", part) for part in _AUTOLINK.split(text)]
    joined = "".join(part + link for part, link in zip(parts, [*autolinks, ""], strict=True))
    # \0 and \1, which no text has here (`show_prose`), stand for the "![" and "](" of images with
    # their data inside, while other images become links and all other targets are broken
    joined = _RASTER.sub("\0", joined).replace("![", "[")
    joined = re.sub(r"\0([^\]\n]*)\]\(", r"![\1" + "\1", joined)
    return (
        _TARGET.sub(r"]\\(", joined).replace("\1", "](").replace("]:", "]\\:").replace("\0", "![")
    )


# type of a node -> the function that draws it
DRAW: dict[type[Node], DrawFunction] = {
    **draw_containers(blocks),
    nodes.T: lambda node: [inline(node)],
    nodes.Row: row,
    nodes.Fold: fold,
    nodes.Box: lambda node: [
        f"> {part}" if "\n" not in part else part for part in draw_each(blocks, node.children)
    ],
    nodes.Panel: panel,
    nodes.Page: page,
    nodes.Pre: lambda node: _code(node.text),
    nodes.Code: lambda node: _code(node.text[node.begin :], node.language),
    nodes.Bar: lambda node: [literal(node.label)],
    nodes.Prose: prose,
    nodes.Json: lambda node: [
        fence("\n".join(text.cap_lines(text.json_lines(node), text.OPENED)), "json")
    ],
    nodes.Tree: lambda node: [fence("\n".join(text.tree(node)))] if node.branches else [],
    nodes.Branch: lambda node: [fence("\n".join(text.branch(node)))],
    nodes.Table: table,
    nodes.Image: lambda node: [literal(text.draw(node))],
    nodes.Diff: lambda node: _code(node.text, "diff"),
    nodes.Html: lambda node: _code(node.text) if node.text else ["(HTML)"],
}
