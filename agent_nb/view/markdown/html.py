"""The view's markdown parser and renderer (markdown-it-py): no raw HTML, tables, TeX unchanged.

Why rules of our own: the library knows no formulas, and front ends would typeset the text between
two prices.

Rules
- Styles are inline (`theme`), because a saved notebook has no style sheet of ours.
- Formulas are `$…$`, `$$…$$`, `\\(…\\)`, `\\[…\\]` and, on separate lines, `\\begin{…}…\\end{…}`.
- A formula stays as it is, in a tag of its own, for the front end to typeset, or is collected in
  the renderer's environment (`FORMULAS`).
- A formula that could leave its box (see `tex`) is shown as code. Where nothing typesets formulas
  (`TEX_AS_CODE`), every formula is.
- Any other character that could begin a formula is alone in a tag, so that no front end typesets
  the text between two prices.
- Images only from `data:`; a remote one becomes a link, since reading must not send requests.
- The HTML made here is not sanitised yet; `stream` does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from itertools import takewhile
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from .. import theme
from . import tex
from .highlight import highlight

_SPACE = "0 0 8px"  # the margin of a block
# type of a token -> style of its element
STYLES = {
    "paragraph_open": f"margin:{_SPACE}",
    "bullet_list_open": f"margin:{_SPACE};padding:0 0 0 22px",
    "ordered_list_open": f"margin:{_SPACE};padding:0 0 0 26px",
    "blockquote_open": f"margin:{_SPACE};padding:0 0 0 12px;border-left:3px solid #80808066",
    "table_open": f"border-collapse:collapse;margin:{_SPACE};font-size:{theme.BASE}",
    # the lines between rows are of the rows, which are fewer than the cells
    "thead_open": f"border-bottom:{theme.LINE}",
    "tr_open": f"border-bottom:{theme.HAIR}",
    "th_open": "padding:3px 14px 3px 0",
    "td_open": "padding:3px 14px 3px 0",
    "hr": f"border:0;border-bottom:{theme.LINE};background-color:transparent;padding:4px 0 0;margin:0 0 12px",
}
SIZES = {"h1": "20px", "h2": "18px", "h3": "16px", "h4": "15px"}
# every host shows code in its own font
CODE_INLINE = "background:#8882;border-radius:4px;padding:1px 4px;font-size:.92em"
ACROSS = "overflow:auto hidden"  # a block whose rows may be too wide
PRE = f"background:{theme.GROUND};font:{theme.SMALL}/1.45 {theme.MONOSPACE}"
UNBROKEN = "overflow:auto;white-space:pre"  # of a block of code with a long line
_NARROW = theme.SCROLLS // 2  # a table's row or a formula with more letters may need to scroll
# what a line break cannot part; between signs of Chinese, Japanese and Korean it can
_find_words = re.compile(r"[^\s\u2e80-\uffff]+").findall
LONGEST_FORMULA = 1_000  # characters of a formula in a line
# a formula between dollars; between single ones, no space inside them and no digit after them
_DOLLARS = re.compile(
    r"\$\$(?!\$)[^$]{1,1000}\$\$|\$(?![\s$])(?:[^$\\\n]|\\.){1,300}?(?<!\s)\$(?!\d)"
)
# the beginning of a formula on separate lines; `_CLOSES`: its end
_OPENS = re.compile(r"(\$\$|\\\[)|\\begin\{([a-zA-Z]{1,12}\*?)\}")
_CLOSES = {"$$": "$$", "\\[": "\\]"}
# what a front end may take for the beginning of a formula, or for a reference to one
_DELIMITER = re.compile(r"\$|\\(?=[(\[]|begin\s*\{|(?:eq)?ref\s*\{)")
OPEN_END = "open_end"  # key of the parser's environment: more lines will come
FORMULAS = "formulas"  # key of the renderer's environment: collects the formulas (`mathml`)
# key of the renderer's environment: nothing typesets this, so formulas are shown as code
TEX_AS_CODE = "tex_as_code"
ALIGN = re.compile(r"text-align:\s*(left|right|center)")


@cache
def parser() -> MarkdownIt:
    """Return the parser and renderer, which keeps no state between texts."""
    md = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    md.block.ruler.before("fence", "math_block", _math_block)
    md.inline.ruler.before("escape", "math_inline", _math_inline)
    for name, rule in _RULES.items():
        md.add_render_rule(name, rule)
    return md


def tokens_html(
    tokens: Sequence[Token],
    env: dict[str, Any],
    *,
    first: bool = True,
    last: bool = True,
    number: int | None = None,
) -> str:
    """Return the HTML of block tokens, not sanitised. Changes the tokens.

    A long block is cut into pages (`split`): `first` and `last` say which edges of the block this
    page has; `number` is that of its first item, if it continues an ordered list.
    """
    _style_tokens(tokens)
    if tokens and not (first and last):
        _remove_edges(tokens[0], first=first, last=last)
    if tokens and number is not None and tokens[0].type == "ordered_list_open":
        tokens[0].attrSet("start", str(number))
    md = parser()
    return str(md.renderer.render(tokens, md.options, env))


def _style_tokens(tokens: Sequence[Token]) -> None:
    in_head = False
    for token in tokens:
        css = STYLES.get(token.type)
        if token.tag == "thead":
            in_head = token.nesting > 0
        elif in_head and token.type == "tr_open":
            css = None
        if token.type == "heading_open":
            css = heading(token.tag)
        # the parser puts the alignment into the style that ours replaces
        if css and token.tag in {"th", "td"}:
            aligned = ALIGN.search(str(token.attrGet("style") or ""))
            css += f";text-align:{aligned[1] if aligned else 'left'}"
        if css:
            token.attrSet("style", css)
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("style", theme.link())


def _remove_edges(token: Token, *, first: bool, last: bool) -> None:
    """Remove the edges between the pages of a block from its first token."""
    if token.type == "fence":
        token.meta = {"first": first, "last": last}
    elif not last and token.attrGet("style"):
        token.attrSet("style", str(token.attrGet("style")).replace(f"margin:{_SPACE}", "margin:0"))


def heading(tag: str) -> str:
    """Return the style of a heading."""
    return f"margin:0;padding:6px 0;font-weight:600;line-height:1.3;font-size:{SIZES.get(tag, theme.PROSE)}"


def selectors() -> dict[str, str]:
    """Return the inline styles of rendered markdown as CSS rules: selector → declarations."""
    tags = {
        "p": "paragraph_open",
        "ul": "bullet_list_open",
        "ol": "ordered_list_open",
        "blockquote": "blockquote_open",
        "table": "table_open",
        "thead": "thead_open",
        "tbody tr": "tr_open",
        "hr": "hr",
    }
    return {
        **{tag: STYLES[name] for tag, name in tags.items()},
        **{tag: f"{STYLES[f'{tag}_open']};text-align:left" for tag in ("th", "td")},
        **{f"h{n}": heading(f"h{n}") for n in range(1, 7)},
        "code": CODE_INLINE,
        "a": theme.link(),
        "pre": f"{pre_style()};{UNBROKEN}",
        "[class*=content] div": ACROSS,  # not the boxes of the widgets
        **{f".an-{family[:3]}": theme.syntax(family) for family in theme.SYNTAX},
    }


def pre(code: str, language: str, *, first: bool = True, last: bool = True) -> str:
    """Return a block of code, or a page of one (see `tokens_html`).

    Only the first page has round corners and space above, only the last below.
    """
    text = code.rstrip("\n") if last else code.removesuffix("\n")
    # long lines scroll, also by keyboard
    long = max(map(len, text.split("\n"))) > theme.SCROLLS
    css = pre_style(first=first, last=last)
    attributes = f'style="{css};{UNBROKEN}" tabindex="0"' if long else f'style="{css}"'
    return f"<pre {attributes}>{highlight(text, language)}</pre>\n"


def pre_style(*, first: bool = True, last: bool = True) -> str:
    """Return the style of a block of code, or of one page of it."""
    if first and last:
        return f"{PRE};border-radius:5px;margin:{_SPACE};padding:8px 10px"
    top, above = ("5px", "8px") if first else ("0", "0")
    bottom, below = ("5px", "8px") if last else ("0", "0")
    corners = f"border-radius:{top} {top} {bottom} {bottom}"
    return f"{PRE};{corners};margin:0 0 {below};padding:{above} 10px {below}"


def language_of(info: str) -> str:
    """Return the language that the info string of a fence names, "" if none."""
    parts = info.strip().split()
    return parts[0].strip("{}.").lower()[:30] if parts else ""


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Match a formula on separate lines: from `$$`, `\\[` or `\\begin{…}` to its end.

    A rule of markdown-it: it adds a token unless `silent`, and returns whether it matches. A
    formula may not hold a blank line, must be closed unless more text will come (`OPEN_END`), and
    never interrupts a paragraph.
    """
    begin = state.bMarks[start] + state.tShift[start]
    opening = _OPENS.match(state.src, begin, state.eMarks[start])
    if opening is None or state.is_code_block(start) or state.sCount[start] < state.blkIndent:
        return False
    close = _CLOSES.get(opening[1]) or f"\\end{{{opening[2]}}}"
    line, closed = start, False
    while line < end and not closed and state.sCount[line] >= state.blkIndent:
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()
        if not text:
            return False
        # on its first line, "$$" and "$$$" do not close themselves
        closed = text.endswith(close) and (line > start or len(text) > 3)
        line += 1
    # markdown-it keeps one mark more than lines: the text ends before the formula does
    may_continue = state.env.get(OPEN_END) and line >= len(state.bMarks) - 1
    if silent or not (closed or may_continue):
        return closed
    token = state.push("math_block", "", 0)
    token.content = state.getLines(start, line, state.tShift[start], False)
    token.map = [start, line]
    state.line = line
    return True


def _math_inline(state: StateInline, silent: bool) -> bool:
    """Match a formula in a line, or a dollar that begins none (a rule of markdown-it)."""
    char = state.src[state.pos]
    if char not in "$\\":
        return False
    end = find_formula_end(state.src, state.pos, state.posMax)
    if not end and char == "\\":
        return False
    if not silent:
        token = state.push("math_inline" if end else "text", "", 0)
        token.content = state.src[state.pos : end or state.pos + 1]
    state.pos = end or state.pos + 1
    return True


def find_formula_end(source: str, begin: int, stop: int) -> int:
    """Return the end of the formula that begins at `begin`, or 0.

    The search is bounded (`LONGEST_FORMULA`), so that a line full of openers takes no more time.
    """
    if source[begin] == "$":
        dollars = _DOLLARS.match(source, begin, stop)
        return dollars.end() if dollars else 0
    close = {"(": "\\)", "[": "\\]"}.get(source[begin + 1 : begin + 2])
    # a formula has at least one letter between its delimiters, which have two letters each
    end = source.find(close, begin + 3, min(stop, begin + LONGEST_FORMULA)) if close else -1
    return end + 2 if end >= 0 else 0


# Rules of the renderer: (its object, tokens, index of the token, options, environment) → HTML.


def _fence(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    return pre(token.content, language_of(token.info), **(token.meta or {}))


def code_in_line(code: str) -> str:
    """Return code inside a line of text."""
    return f'<code style="{CODE_INLINE}">{escape(code)}</code>'


def _math(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    formula, is_block = tokens[index].content.strip(), tokens[index].type == "math_block"
    if env.get(TEX_AS_CODE):  # the formula may be unfinished, so it is not judged
        html = code_in_line(bare(formula))
    elif not tex.is_harmless(formula):
        return pre(formula, "latex") if is_block else code_in_line(formula)
    else:
        html = env[FORMULAS].put(formula) if FORMULAS in env else escape(formula)
    if not is_block:
        return f"<span>{html}</span>"
    return f'<p style="margin:{_SPACE};{_scrolling(len(formula))}>{html}</p>\n'


def _scrolling(letters: int) -> str:
    """Return the rest of a block's style attribute, with a tab stop if it may have to scroll.

    `letters`: the width that the block needs. It gets an edge only if it will scroll on most pages.
    """
    edge = f";{theme.EDGE}" if letters > theme.SCROLLS else ""
    return f'{ACROSS}{edge}" tabindex="0"' if letters > _NARROW else f'{ACROSS}"'


def _table(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Return the start tag of a table, in a block that scrolls if a row may be too wide."""
    start = self.renderToken(tokens, index, options, env)
    letters = _measure_table(tokens[n] for n in range(index, len(tokens)))
    return f'<div style="{_scrolling(letters)}>{start}' if letters > _NARROW else str(start)


def _end_table(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    start = next(n for n in range(index, -1, -1) if tokens[n].type == "table_open")
    return "</table></div>\n" if _measure_table(tokens[start:index]) > _NARROW else "</table>\n"


def _measure_table(tokens: Iterable[Token]) -> int:
    """Return the letters that the table with which these tokens begin needs at least.

    Texts break between words, so a column is as wide as its longest word, and two letters apart.
    """
    columns: list[int] = []
    column = 0
    for token in takewhile(lambda token: token.type != "table_close", tokens):
        if token.type == "tr_open":
            column = 0
        elif token.type == "inline":
            text = "".join(child.content for child in token.children or ())
            columns += [0] * (column + 1 - len(columns))
            columns[column] = max(columns[column], *map(len, ["", *_find_words(text)]))
            column += 1
    return sum(columns) + 2 * len(columns)


def bare(formula: str) -> str:
    """Return a formula without its delimiters; `\\begin{…}…\\end{…}` has none."""
    text = formula.strip()
    if text.startswith("\\begin"):
        return text
    size = 1 if text.startswith("$") and not text.startswith("$$") else 2
    return text[size:-size].strip()


def _isolate_delimiters(text: str) -> str:
    """Return HTML of a text in which nothing begins a formula."""
    return _DELIMITER.sub(r"<span>\g<0></span>", escape(text))


def _image(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    if source.startswith("data:"):
        return f'<img src="{escape(source)}" alt="{escape(token.content)}" style="{theme.IMAGE}">'
    return f'<a href="{escape(source)}" style="{theme.link()}">{_isolate_delimiters(token.content) or "image"}</a>'


_RULES: dict[str, Any] = {
    "fence": _fence,
    "code_block": _fence,
    "code_inline": lambda self, tokens, index, options, env: code_in_line(tokens[index].content),
    "math_block": _math,
    "math_inline": _math,
    "table_open": _table,
    "table_close": _end_table,
    "text": lambda self, tokens, index, options, env: _isolate_delimiters(tokens[index].content),
    "image": _image,
}
