"""Nodes → static HTML: text elements, `details` that open, inline styles.

Why so plain: a saved notebook is read in many places: JupyterLab before and after trust, GitHub
(which strips styles), nbconvert, print. The live widgets draw everything static with it too.

Rules
- No script, style element, svg, form control or id, and no remote address but that of a link.
- The page is readable without styles: words carry the state, colours only repeat it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from html import escape
from typing import Any

from .. import nodes, theme, visible
from ..nodes import Node
from ..state.text import Text
from .data import diff, json_tree, table
from .markup import run, style, tab_stop, text

# classes that make MathJax skip a page; `MATH` makes it typeset the markdown inside
NO_MATH = 'class="mathjax_ignore tex2jax_ignore"'
PAGE_CLASS = NO_MATH.replace('"', '"agent-nb ', 1)
MATH = 'class="mathjax_process tex2jax_process"'
GAP = "\u2003"  # an em space between the sides of a row, which is there without styles too

# whether formulas become MathML: the current `draw_html`, or one around it, was told so
_typeset: ContextVar[bool] = ContextVar("agent_nb_typeset", default=False)


def draw_html(node: Node, *, typeset: bool = False) -> str:
    """Return the HTML of a node; `typeset`: with formulas as MathML, for a page opened alone."""
    token = _typeset.set(typeset or _typeset.get())
    try:
        return DRAW[type(node)](node)
    finally:
        _typeset.reset(token)


def draw_nodes(children: tuple[Node, ...]) -> str:
    """Return the HTML of nodes, one after the other."""
    return "".join(draw_html(c) for c in children)


def _line(node: nodes.Row) -> str:
    """Return the inside of a row."""
    left = "".join(run(t) for t in node.left)
    if not node.right:
        return f"<span{style('' if node.wrap else theme.LEFT, 'min-width:0' if node.wrap else '')}>{left}</span>"
    live = ' aria-live="polite"' if node.live else ""
    before = f"<span{live}{style(theme.WIDE_WORDS if node.wrap else theme.LEFT)}>{left}</span>"
    cut = [t for t in node.right if t.cut]
    right = "".join(run(t) for t in node.right if not t.cut)
    if not cut:
        return f"{before} <span{style(theme.RIGHT)}>{GAP}{right}</span>"
    # in an element of its own the rest keeps its spaces
    beside = f"{GAP}{''.join(map(run, cut))}<span>{right}</span>"
    return f"{before} <span{style(theme.RIGHT_CUT)}>{beside}</span>"


def _row_style(node: nodes.Row) -> str:
    """Return the style that puts the two sides of a row beside each other, "" if none is needed."""
    if not node.wrap:
        return theme.ROW
    return theme.ROWS if node.right else ""


def row(node: nodes.Row) -> str:
    """Return a line as a block."""
    return f"<div{style(_row_style(node), 'overflow-wrap:break-word' if node.wrap else '')}>{_line(node)}</div>"


def fold(node: nodes.Fold) -> str:
    """Return a line that opens; without a body, the line alone."""
    if not node.body:
        return draw_nodes(node.summary)
    summary = f"<summary{style(theme.SUMMARY)}>{summary_line(node)}</summary>"
    if not (node.open and node.lines):
        body = f"<div{style(theme.BODY)}>{draw_nodes(node.body)}</div>"
    else:
        # `ROOM` shows its children in reverse; inside one child, the nodes keep their order
        body = f'<div tabindex="0"{style(theme.BODY, theme.ROOM, theme.height(node.lines))}><div>{draw_nodes(node.body)}</div></div>'
    return f"<details{' open' if node.open else ''}>{summary}{body}</details>"


def summary_line(node: nodes.Fold) -> str:
    """Return the inside of the line that opens a fold."""
    return "".join(
        f"<span{style(_row_style(p) or theme.ROW)}>{_line(p)}</span>"
        if isinstance(p, nodes.Row)
        else draw_html(p)
        for p in node.summary
    )


def box(node: nodes.Box) -> str:
    """Return nodes on a tinted background with a coloured left edge."""
    # front ends that drop the theme's colour keep the literal one before it
    edge = f"border-left:3px solid rgb(128,128,128);border-left-color:{theme.role(node.tone or 'muted')}"
    return f'<div role="note"{style(theme.BOX, theme.tint(node.tone), edge)}>{draw_nodes(node.children)}</div>'


def panel(node: nodes.Panel) -> str:
    """Return steps as rows divided by hairlines."""
    rows = []
    for number, step in enumerate(node.steps):
        hairline = f"border-top:{theme.HAIR}" if number else ""
        padding = theme.STEP if step.marked else theme.STEP_LINE
        tint = theme.tint(step.tone, 6) if step.tone else ""
        rows.append(f"<div{style(padding, hairline, tint)}>{draw_html(step.child)}</div>")
    return f"<div{style(theme.PANEL)}>{''.join(rows)}</div>"


def section(node: nodes.Section) -> str:
    """Return a part of the page; only header and footer have a style of their own."""
    outer = {"header": theme.HEADER, "footer": theme.FOOTER}.get(node.key, "")
    return f"<div{style(outer)}>{draw_html(node.child)}</div>" if outer else draw_html(node.child)


def page(node: nodes.Page) -> str:
    """Return a whole view."""
    sections = "".join(section(s) for s in node.sections)
    return f'<div {PAGE_CLASS} role="group" aria-label="{text(node.label)}"{style(theme.PAGE)}>{sections}</div>'


def pre(node: nodes.Pre) -> str:
    """Return preformatted text."""
    # front ends break the lines of outputs anywhere, unless told not to
    breaks = "white-space:pre-wrap;overflow-wrap:break-word;word-break:normal"
    wrap = breaks if node.wrap else "white-space:pre"
    text_ = visible.show_output(node.text).rstrip("\n")
    return f"<pre{style(theme.PRE, theme.HEIGHT, wrap, theme.ink(node.tone))}{tab_stop(text_, wrap=node.wrap)}>{escape(text_)}</pre>"


def code(node: nodes.Code) -> str:
    """Return highlighted source code."""
    from ..markdown.highlight import highlight

    # the part that is not shown decides whether the shown part begins inside a string
    hidden = visible.show_output(node.text[: node.begin])
    source = visible.show_output(node.text[node.begin :]).rstrip("\n")
    select = theme.WHOLE if node.whole else ""
    highlighted = highlight(hidden + source, node.language, begin=len(hidden))
    return f"<pre{style(theme.PRE, theme.HEIGHT, 'white-space:pre', select)}{tab_stop(source)}>{highlighted}</pre>"


def bar(node: nodes.Bar) -> str:
    """Return a progress bar with its words below."""
    share = max(0.0, min(1.0, node.fraction or 0.0)) * 100
    role = f'role="progressbar" aria-label="{text(node.name)}" aria-valuemin="0" aria-valuemax="100" aria-valuenow="{share:.0f}"'
    filled = f"<div{style('height:5px', f'width:{share:.1f}%', 'border-radius:3px', theme.fill(node.tone))}></div>"
    track = style(theme.BAR, f"background-color:{theme.TRACK}")
    return f"<div {role}{track}>{filled}</div>{bar_words(node)}"


def bar_words(node: nodes.Bar) -> str:
    """Return the words below a bar."""
    return f"<div{style(theme.BAR_WORDS, theme.ink('muted'))}>{text(node.label)}</div>"


def prose(node: nodes.Prose) -> str:
    """Return rendered markdown; a growing text is rendered piece by piece (`stream_of`)."""
    from ..markdown.stream import render, stream_of

    if _typeset.get():
        from ..markdown.mathml import Formulas

        content = render(str(node.text), Formulas())
    elif isinstance(node.text, Text):
        content = stream_of(node.text, closed=not node.open).html(caret=node.open)
    else:
        content = render(str(node.text))
    return f"<div {MATH}{style(theme.THOUGHT if node.dim else theme.ANSWER, theme.ink('muted') if node.dim else '')}>{content}</div>"


def tree(node: nodes.Tree) -> str:
    """Return branches as nested lists, which remain a tree without styles."""
    label = f' aria-label="{text(node.label)}"' if node.label else ""
    return f"<ul{label}{style(theme.TREE)}>{''.join(branch(b) for b in node.branches)}</ul>"


def branch(node: nodes.Branch) -> str:
    """Return one line of a tree and the branches below it."""
    left = f"<span{style(theme.WORDS)}>{''.join(run(t) for t in node.row.left)}</span>"
    right = "".join(run(t) for t in node.row.right) + _figure(node)
    line = f"<span{style(theme.ROW)}>{left}{f' <span{style(theme.RIGHT)}>{GAP}{right}</span>' if right else ''}</span>"
    if node.detail:
        summary = f"<summary{style(theme.SUMMARY)}>{line}</summary>"
        detail = f"<div{style(theme.BODY)}>{draw_nodes(node.detail)}</div>"
        line = f"<details>{summary}{detail}</details>"
    edge = f"border-left-color:{theme.role(node.tone)}" if node.strong and node.tone else ""
    children = "".join(map(branch, node.branches))
    if children:
        children = f"<ul{style(theme.BRANCHES, edge)}>{children}</ul>"
    return f"<li{style(theme.BRANCH)}>{line}{children}</li>"


def _figure(node: nodes.Branch) -> str:
    """Return the small bar of a branch, and its figure."""
    if node.share is None:
        return f" {run(nodes.T(node.figure, mono=True))}" if node.figure else ""
    width = f"width:{node.share * 100:.0f}%"
    meter = f"<span{style('display:block', 'height:5px', 'border-radius:3px', width, theme.fill(node.tone))}></span>"
    figure = run(nodes.T(node.figure, tone=node.tone, mono=True))
    return f" <span{style(theme.METER)}>{meter}</span><span{style(theme.FIGURE)}>{figure}</span>"


def image(node: nodes.Image) -> str:
    """Return an image; characters that are not base64 are dropped from its data."""
    data = re.sub(r"[^A-Za-z0-9+/=]", "", node.data)
    return f'<div><img alt="{text(node.alt)}" src="data:{escape(node.media_type)};base64,{data}"{style(theme.IMAGE)}></div>'


def html(node: nodes.Html) -> str:
    """Return HTML from a tool, sanitised; its plain text if nothing is left.

    Secrets are redacted after sanitising: a tag that the sanitiser removes may have split a key.
    """
    from ...models import collect_secrets
    from ...wire import redact_text
    from ..markdown.sanitize import clean

    content = redact_text(clean(node.html), collect_secrets())
    if not content and node.text:
        content = f"<pre>{escape(visible.show_output(node.text))}</pre>"
    margin = f"margin:4px 0 0 {theme.INDENT}" if node.below else "margin:4px 0 0"
    return f'<div{style("overflow:auto", "max-height:30em", margin, theme.SMALL_TEXT)} tabindex="0">{content}</div>'


# type of a node -> the function that draws it
DRAW: dict[type[Node], Callable[[Any], str]] = {
    nodes.T: run,
    nodes.Row: row,
    nodes.Fold: fold,
    **dict.fromkeys((nodes.Stack, nodes.Form), lambda node: draw_nodes(node.children)),
    nodes.Box: box,
    nodes.Step: lambda node: draw_html(node.child),
    nodes.Panel: panel,
    nodes.Section: section,
    nodes.Page: page,
    nodes.Pre: pre,
    nodes.Code: code,
    nodes.Bar: bar,
    nodes.Prose: prose,
    nodes.Json: json_tree,
    nodes.Tree: tree,
    nodes.Branch: branch,
    nodes.Table: table,
    nodes.Image: image,
    nodes.Interactive: lambda node: draw_nodes(node.still),
    nodes.Diff: diff,
    nodes.Html: html,
    # a static page has no buttons and no editors
    **dict.fromkeys((nodes.Button, nodes.Buttons, nodes.Editor), lambda _: ""),
}
