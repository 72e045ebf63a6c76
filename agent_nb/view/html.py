"""Nodes → static HTML: `details`, inline styles, nothing else.

Why: this is what a saved notebook shows everywhere: JupyterLab before and after trust, GitHub (which strips styles), nbconvert, print.

Rules
- No script, style element, svg, form control, id, remote address; every text is escaped here, once.
- It must read without styles: words carry the state, colours only repeat it.
- One function per node type; the live widgets use the same functions for everything that stands still.
- Formulas stay TeX, which front ends typeset; `typeset` makes them MathML, for a page that stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from typing import Any

import msgspec

from ..sides import CHANGED
from . import look, nodes, safe
from .nodes import Node
from .text import Text

NO_MATH = 'class="mathjax_ignore tex2jax_ignore"'
IGNORE = NO_MATH.replace('"', '"agent-nb ', 1)
MATH = 'class="mathjax_process tex2jax_process"'
GAP = "\u2003"  # between the two sides of a row, also where no style keeps them apart
DEPTH, ENTRIES = 6, 60
LINES, LETTERS = 12, look.SCROLLS  # what certainly needs no scrolling


_alone: ContextVar[bool] = ContextVar("agent_nb_page_alone", default=False)


@contextmanager
def typeset() -> Iterator[None]:
    """Draw formulas as MathML in this context."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def draw(node: Node) -> str:
    """Return the HTML of a node."""
    return DRAW[type(node)](node)


def drawn(children: tuple[Node, ...]) -> str:
    """Return the HTML of nodes, one after the other."""
    return "".join(draw(c) for c in children)


def text(value: str) -> str:
    """Return a text for the page: no character hides, none has a meaning in HTML."""
    return escape(safe.visible(value))


def style(*parts: str) -> str:
    """Return a style attribute of the parts that are not empty, or nothing."""
    joined = ";".join(p for p in parts if p)
    return f' style="{joined}"' if joined else ""


def run(node: nodes.T) -> str:
    """Return a run of text. Without styles too it shows what is bold and what is a name; quiet code is plain text there."""
    if node.now:
        return f'<span class="agent-nb-now">{run(msgspec.structs.replace(node, now=False))}</span>'
    ink = look.ink(node.tone)
    if node.hint:
        return f'<span title="{text(node.hint)}">{run(msgspec.structs.replace(node, hint=""))}</span>'
    if node.label:
        glyph = look.GLYPH if node.mono else ""
        return f'<span role="img" aria-label="{escape(node.label)}"{style(glyph, ink)}>{text(node.text)}</span>'
    if node.mono:
        tag = "span" if node.tone == "muted" else "code"
        said = f"<{tag}{style(look.MONO, ink)}>{text(node.text)}</{tag}>"
        return f"<b{style('font-weight:600')}>{said}</b>" if node.bold else said
    tag, weight = ("b", "font-weight:600") if node.bold else ("i", "") if node.italic else ("span", "")
    css, said = style(ink, weight), text(node.text.replace("  ", "\u2002"))
    return f"<{tag}{css}>{said}</{tag}>" if css or tag != "span" else said


def _line(node: nodes.Row) -> str:
    """Return the inside of a row."""
    left = "".join(run(t) for t in node.left)
    if not node.right:
        return f"<span{style('' if node.wrap else look.LEFT, 'min-width:0' if node.wrap else '')}>{left}</span>"
    live = ' aria-live="polite"' if node.live else ""
    said = f"<span{live}{style(look.WORDS if node.wrap else look.LEFT)}>{left}</span>"
    return f"{said} <span{style(look.RIGHT)}>{GAP}{''.join(run(t) for t in node.right)}</span>"


def row(node: nodes.Row) -> str:
    """Return a line of its own."""
    css = look.ROW if node.right or not node.wrap else ""
    return f"<div{style(css, 'overflow-wrap:break-word' if node.wrap else '')}>{_line(node)}</div>"


def fold(node: nodes.Fold) -> str:
    """Return a line that opens; its marker stays, so that it looks like one without styles too."""
    if not node.body:
        return "".join(draw(part) for part in node.summary)
    lines = "".join(f"<span{style(look.ROW)}>{_line(p)}</span>" if isinstance(p, nodes.Row) else draw(p) for p in node.summary)
    summary = f"<summary{style(look.SUMMARY)}>{lines}</summary>"
    return f"<details{' open' if node.open else ''}>{summary}<div{style(look.BODY)}>{drawn(node.body)}</div></details>"


def lane(node: nodes.Lane) -> str:
    """Return the strip that shows when a call ran within its batch."""
    inner = f"margin-left:{node.start * 100:.1f}%;width:{max(0.6, node.width * 100):.1f}%;height:2px;border-radius:1px"
    part = f"<span{style('display:block', inner, look.lane(node.tone))}></span>"
    outer = style("display:block", "height:2px", "margin:2px 0 1px", "background-color:rgba(128,128,128,0.14)", "border-radius:1px")
    return f'<span role="img" aria-label="{escape(node.label)}" title="{escape(node.label)}"{outer}>{part}</span>'


def stack(node: nodes.Stack) -> str:
    """Return nodes below one another."""
    return drawn(node.children)


def box(node: nodes.Box) -> str:
    """Return nodes on a tinted ground with a toned left edge."""
    edge = f"border-left:3px solid rgb(128,128,128);border-left-color:{look.role(node.tone or 'muted')}"
    return f'<div role="note"{style(look.BOX, look.tint(node.tone), edge)}>{drawn(node.children)}</div>'


def panel(node: nodes.Panel) -> str:
    """Return steps as rows divided by hairlines."""
    rows = []
    for number, step in enumerate(node.steps):
        hair = f"border-top:{look.HAIR}" if number else ""
        marked = isinstance(step.child, nodes.Fold) and step.child.body
        outer = style(look.STEP if marked else look.STEP_LINE, hair, look.tint(step.tone, 6) if step.tone else "")
        rows.append(f"<div{outer}>{draw(step.child)}</div>")
    return f"<div{style(look.PANEL)}>{''.join(rows)}</div>"


def section(node: nodes.Section) -> str:
    """Return a part of the page."""
    outer = {"header": look.HEADER, "footer": look.FOOTER}.get(node.key, "")
    return f"<div{style(outer)}>{draw(node.child)}</div>" if outer else draw(node.child)


def page(node: nodes.Page) -> str:
    """Return a whole view."""
    inner = "".join(section(s) for s in node.sections)
    return f'<div {IGNORE} role="group" aria-label="{escape(safe.visible(node.label))}"{style(look.PAGE)}>{inner}</div>'


def pre(node: nodes.Pre) -> str:
    """Return preformatted text."""
    wrap = "white-space:pre-wrap;overflow-wrap:break-word" if node.wrap else "white-space:pre"
    said = safe.output(node.text).rstrip("\n")
    return f"<pre{style(look.PRE, look.HEIGHT, wrap, look.ink(node.tone))}{stop(said, wrap=node.wrap)}>{escape(said)}</pre>"


def stop(said: str, *, wrap: bool = False) -> str:
    """Return what makes a text that scrolls a stop of the tabulator: who has no mouse could not read its end."""
    lines = said.split("\n")
    tall = sum(1 + (len(line) // LETTERS if wrap else 0) for line in lines) > LINES
    return ' tabindex="0"' if tall or (not wrap and max(map(len, lines)) > LETTERS) else ""


def code(node: nodes.Code) -> str:
    """Return highlighted source code."""
    from .highlight import highlight

    said = safe.output(node.text).rstrip("\n")
    return f"<pre{style(look.PRE, look.HEIGHT, 'white-space:pre')}{stop(said)}>{highlight(said, node.language)}</pre>"


def bar(node: nodes.Bar) -> str:
    """Return a progress bar with its words below."""
    share = max(0.0, min(1.0, node.fraction or 0.0)) * 100
    role = f'role="progressbar" aria-label="{text(node.name)}" aria-valuemin="0" aria-valuemax="100" aria-valuenow="{share:.0f}"'
    inner = f"<div{style('height:6px', f'width:{share:.1f}%', 'border-radius:3px', look.fill(node.tone))}></div>"
    track = f"height:6px;border-radius:3px;margin:5px 0 2px;background-color:{look.TRACK}"
    words = f"<div{style(look.SMALL_TEXT, look.ink('muted'))}>{text(node.label)}</div>"
    return f"<div {role}{style(track)}>{inner}</div>{words}"


def prose(node: nodes.Prose) -> str:
    """Return rendered markdown."""
    from .markdown import render, stream_of

    if _alone.get():
        from .mathml import Formulas

        inner = render(str(node.text), Formulas())
    elif isinstance(node.text, Text):
        inner = stream_of(node.text, closed=not node.open).html(caret=node.open)
    else:
        inner = render(str(node.text))
    return f"<div {MATH}{style(look.THOUGHT if node.dim else look.ANSWER, look.ink('muted') if node.dim else '')}>{inner}</div>"


def json(node: nodes.Json) -> str:
    """Return a JSON value as a tree of folds."""
    tree = _tree(node.value, DEPTH)
    return f"<div{style('margin:4px 0', look.SMALL_TEXT, 'line-height:1.5')}>{tree}</div>"


def _tree(value: Any, depth: int) -> str:
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else None
    if not pairs:
        return _leaf(value)
    lines = [_entry(key, item, depth) for key, item in pairs[:ENTRIES]]
    if len(pairs) > ENTRIES:
        lines.append(f"<div{style(look.ink('muted'))}>… {len(pairs) - ENTRIES:,} more</div>")
    return "".join(lines)


def _entry(key: Any, item: Any, depth: int) -> str:
    name = f"<code{style(look.MONO, look.syntax('name'))}>{text(str(key))}</code>"
    if not isinstance(item, dict | list) or not item:
        return f"<div>{name} {_leaf(item)}</div>"
    size = f"{len(item)} {'fields' if isinstance(item, dict) else 'items'}"
    about = f"<span{style(look.ink('muted'))}>{size}</span>"
    if depth <= 0:
        return f"<div>{name} {_leaf(repr(item)[:200])}</div>"
    summary = f"<summary{style(look.SUMMARY)}>{name} {about}</summary>"
    opened = " open" if depth == DEPTH and len(item) <= 5 else ""
    return f"<details{opened}>{summary}<div{style('margin-left:16px')}>{_tree(item, depth - 1)}</div></details>"


def _leaf(value: Any) -> str:
    import json as codec

    family = "string" if isinstance(value, str) else "number" if isinstance(value, int | float) else "keyword"
    said = codec.dumps(value, ensure_ascii=False, default=str)
    said = said if len(said) <= 2000 else said[:2000] + "…"
    return f"<code{style(look.MONO, look.syntax(family), 'white-space:pre-wrap;overflow-wrap:break-word')}>{text(said)}</code>"


def tree(node: nodes.Tree) -> str:
    """Return branches as nested lists, which stay a tree without styles."""
    label = f' aria-label="{text(node.label)}"' if node.label else ""
    return f"<ul{label}{style(look.TREE)}>{''.join(branch(b) for b in node.branches)}</ul>"


def branch(node: nodes.Branch) -> str:
    """Return one line of a tree and what hangs below it."""
    left = f"<span{style(look.WORDS)}>{''.join(run(t) for t in node.row.left)}</span>"
    right = "".join(run(t) for t in node.row.right) + _figure(node)
    said = f"<span{style(look.ROW)}>{left}{f' <span{style(look.RIGHT)}>{GAP}{right}</span>' if right else ''}</span>"
    if node.detail:
        summary = f"<summary{style(look.SUMMARY)}>{said}</summary>"
        said = f"<details>{summary}<div{style(look.BODY)}>{drawn(node.detail)}</div></details>"
    edge = f"border-left-color:{look.role(node.tone)}" if node.strong and node.tone else ""
    below = f"<ul{style(look.BRANCHES, edge)}>{''.join(branch(b) for b in node.branches)}</ul>" if node.branches else ""
    return f"<li{style(look.BRANCH)}>{said}{below}</li>"


def _figure(node: nodes.Branch) -> str:
    """Return the small bar of a branch and the figure behind it."""
    if node.share is None:
        return f" {run(nodes.T(node.figure, mono=True))}" if node.figure else ""
    width = f"width:{node.share * 100:.0f}%"
    inner = f"<span{style('display:block', 'height:5px', 'border-radius:3px', width, look.fill(node.tone))}></span>"
    figure = f"<span{style(look.FIGURE)}>{run(nodes.T(node.figure, tone=node.tone, mono=True))}</span>"
    return f" <span{style(look.METER)}>{inner}</span>{figure}"


def _cells(node: nodes.Table, row: tuple[str, ...]) -> list[str]:
    if not node.sides:
        return [f"<td{style(look.CELL)}>{text(c)}</td>" for c in row]
    colours = ("", "deleted", "inserted") if row[0] == CHANGED else ("",) * len(row)
    return [f"<td{style(look.SIDE, look.syntax(kind) if kind else '')}>{text(c)}</td>" for c, kind in zip(row, colours, strict=False)]


def table(node: nodes.Table) -> str:
    """Return a table."""
    head = "".join(f'<th scope="col"{style(look.CELL, "font-weight:600")}>{text(c)}</th>' for c in node.columns)
    body = "".join("<tr>" + "".join(_cells(node, row)) + "</tr>" for row in node.rows)
    note = f"<div{style(look.SMALL_TEXT, look.ink('muted'))}>{text(node.note)}</div>" if node.note else ""
    inner = f"<table{style(look.TABLE)}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    scrolls = ' tabindex="0"' if len(node.rows) > LINES // 2 or sum(map(len, node.columns)) > LETTERS // 2 else ""
    return f"<div{style('overflow:auto', look.HEIGHT)}{scrolls}>{inner}</div>{note}"


def image(node: nodes.Image) -> str:
    """Return an image from its data."""
    data = re.sub(r"[^A-Za-z0-9+/=]", "", node.data)
    return f'<div><img alt="{escape(safe.visible(node.alt))}" src="data:{node.media_type};base64,{data}"{style(look.IMAGE)}></div>'


def diff(node: nodes.Diff) -> str:
    """Return a diff, its lines coloured."""
    text = safe.output(node.text).rstrip("\n")
    said = "\n".join(_diff_line(line) for line in text.split("\n"))
    return f"<pre{style(look.PRE, look.HEIGHT, 'white-space:pre')}{stop(text)}>{said}</pre>"


def _diff_line(line: str) -> str:
    family = {"+": "inserted", "-": "deleted", "@": "name"}.get(line[:1], "")
    if line.startswith(("+++", "---", "diff ")):
        family = "comment"
    return f"<span{style(look.syntax(family))}>{escape(line)}</span>" if family else escape(line)


def html(node: nodes.Html) -> str:
    """Return what a tool brought, after the sanitiser; what that took out may have stood in the middle of a key."""
    from ..models.keys import secrets
    from ..redact import redact_text
    from .clean import clean

    inner = redact_text(clean(node.html), secrets()) or (f"<pre>{escape(safe.output(node.text))}</pre>" if node.text else "")
    return f"<div{style('overflow:auto', 'max-height:30em', 'margin:4px 0', look.SMALL_TEXT)} tabindex=\"0\">{inner}</div>"


def nothing(node: Node) -> str:
    """Buttons and editors have no place in a page that stands still."""
    return ""


DRAW: dict[type[Node], Callable[[Any], str]] = {
    nodes.T: run,
    nodes.Row: row,
    nodes.Lane: lane,
    nodes.Fold: fold,
    nodes.Stack: stack,
    nodes.Box: box,
    nodes.Step: lambda node: draw(node.child),
    nodes.Panel: panel,
    nodes.Section: section,
    nodes.Page: page,
    nodes.Pre: pre,
    nodes.Code: code,
    nodes.Bar: bar,
    nodes.Prose: prose,
    nodes.Json: json,
    nodes.Tree: tree,
    nodes.Branch: branch,
    nodes.Table: table,
    nodes.Image: image,
    nodes.Diff: diff,
    nodes.Html: html,
    nodes.Button: nothing,
    nodes.Buttons: nothing,
    nodes.Editor: nothing,
}
