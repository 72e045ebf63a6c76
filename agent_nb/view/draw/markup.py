"""The parts of static HTML that several nodes need: text, style attributes, runs, tab stops.

Why in one place: with one forgotten escape, text of a model or tool could write HTML of its own.
What `text` and `run` return is escaped, and never escaped again.
"""

from __future__ import annotations

from html import escape

import msgspec

from ...wire import cut_end
from .. import nodes, theme, visible

LINES, LETTERS = 12, theme.SCROLLS  # lines, and letters of a line, that fit without scrolling
LONGEST = 20_000  # characters of one text, such as a name or a message from a record


def text(value: str) -> str:
    """Return a text of bounded length as HTML, with hidden characters made visible."""
    return escape(visible.show_hidden(cut_end(value, LONGEST)))


def style(*parts: str) -> str:
    """Return a style attribute of the non-empty parts, or ""."""
    joined = ";".join(p for p in parts if p)
    return f' style="{joined}"' if joined else ""


def run(node: nodes.T) -> str:
    """Return a run of text as HTML.

    Bold, italic and code get tags, since some front ends strip styles; muted code is a plain span.
    A run with a `label` is a glyph and gets none of these tags; bold wins over italic.
    """
    if node.now:
        return f'<span class="agent-nb-now">{run(msgspec.structs.replace(node, now=False))}</span>'
    ink = theme.ink(node.tone)
    if node.hint:
        content = run(msgspec.structs.replace(node, hint=""))
        return f'<span title="{text(node.hint)}">{content}</span>'
    if node.label:
        glyph = theme.GLYPH if node.mono else ""
        return f'<span role="img" aria-label="{escape(node.label)}"{style(glyph, ink)}>{text(node.text)}</span>'
    if node.mono:
        tag = "span" if node.tone == "muted" else "code"
        code = f"<{tag}{style(theme.MONO, ink)}>{_code(node)}</{tag}>"
        return f"<b{style('font-weight:600')}>{code}</b>" if node.bold else code
    tag = "b" if node.bold else "i" if node.italic else "span"
    weight = "font-weight:600" if node.bold else ""
    # HTML would collapse two spaces; an en space is as wide as both
    content = text(node.text.replace("  ", "\u2002"))
    css = style(ink, weight, theme.ENDS if node.cut else "")
    return f"<{tag}{css}>{content}</{tag}>" if css or tag != "span" else content


def _code(node: nodes.T) -> str:
    if not node.language:
        return text(node.text)
    from ..markdown.highlight import highlight

    return highlight(visible.show_hidden(node.text), node.language)


def tab_stop(content: str, *, wrap: bool = False) -> str:
    """Return the tabindex attribute of a box that the keyboard scrolls, "" if `content` fits.

    `wrap`: long lines break, so that only the height counts.
    """
    lines = content.split("\n")
    tall = sum(1 + (len(line) // LETTERS if wrap else 0) for line in lines) > LINES
    return ' tabindex="0"' if tall or (not wrap and max(map(len, lines)) > LETTERS) else ""
