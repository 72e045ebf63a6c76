"""The view's markdown parser and renderer (markdown-it-py): no raw HTML, tables, TeX unchanged.

Why our own rules: saved pages need safe HTML with inline styles, and front ends would typeset the
text between two prices. So a character that could begin a formula, and does not (`formulas`), is
alone in a tag. `tokens_html` is called for each part of a text, by `stream`.

Rules
- Styles are inline (`theme`), because a saved notebook has no style sheet of ours.
- Images only from `data:`; a remote one becomes a link, since reading must not send requests.
- The HTML made here is not sanitised; `stream` does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from itertools import takewhile
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from .. import theme
from . import tex
from .formulas import bare, match_block, match_inline
from .highlight import highlight

_SPACE = "0 0 8px"  # the margin of a block
# tag of a block -> its style; `h5` and `h6` are as large as the text
STYLES = {
    "p": f"margin:{_SPACE}",
    "ul": f"margin:{_SPACE};padding:0 0 0 22px",
    "ol": f"margin:{_SPACE};padding:0 0 0 26px",
    "blockquote": f"margin:{_SPACE};padding:0 0 0 12px;border-left:3px solid #80808066",
    "table": f"border-collapse:collapse;margin:{_SPACE};font-size:{theme.BASE}",
    # the lines between rows are of the rows, which are fewer than the cells
    "thead": f"border-bottom:{theme.LINE}",
    "tr": f"border-bottom:{theme.HAIR}",
    "th": "padding:3px 14px 3px 0",
    "td": "padding:3px 14px 3px 0",
    "hr": f"border:0;border-bottom:{theme.LINE};background-color:transparent;padding:4px 0 0;margin:0 0 12px",
    **{
        f"h{n}": f"margin:0;padding:6px 0;font-weight:600;line-height:1.3;font-size:{size}"
        for n, size in enumerate(("20px", "18px", "16px", "15px", theme.PROSE, theme.PROSE), 1)
    },
}
# every host shows code in its own font
CODE_INLINE = "background:#8882;border-radius:4px;padding:1px 4px;font-size:.92em"
PRE = f"background:{theme.GROUND};font:{theme.SMALL}/1.45 {theme.MONOSPACE}"
ALIGN = re.compile(r"text-align:\s*(left|right|center)")  # in the style that the parser writes

# blocks that scroll where they are too wide
ACROSS = "overflow:auto hidden"  # the style of a table or a formula that may be too wide
UNBROKEN = "overflow:auto;white-space:pre"  # of a block of code with a long line
_NARROW = theme.SCROLLS // 2  # a table's row or a formula with more letters may need to scroll
# what shows of a formula: a command is about as wide as a letter
_find_symbols = re.compile(r"\\(?:[A-Za-z]+|.)|[^{}_^&]").findall
# what a line break cannot part; between signs of Chinese, Japanese and Korean it can
_find_words = re.compile(r"[^\s\u2e80-\uffff]+").findall

# texts from right to left: letters of their scripts, and the style of a block that has any
_find_leftward = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff]").search
_BESIDE = "text-align:left"  # of the text of a list, whose marks stand at the left
_BIDI = "unicode-bidi:plaintext"  # the first letter of a text decides its direction

# what a front end may take for the beginning of a formula, or for a reference to one
_DELIMITER = re.compile(r"\$|\\(?=[(\[]|begin\s*\{|(?:eq)?ref\s*\{)")
# keys of the renderer's environment: an object that collects the formulas (`mathml`), and whether
# formulas are shown as code, because nothing typesets this text
FORMULAS, TEX_AS_CODE = "formulas", "tex_as_code"


@cache
def parser() -> MarkdownIt:
    """Return the parser and renderer, which keeps no state between texts."""
    md = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    md.block.ruler.before("fence", "math_block", match_block)
    md.inline.ruler.before("escape", "math_inline", match_inline)
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
    block: Token | None = None  # the block that holds the next text
    for token in tokens:
        css = STYLES.get(token.tag) if token.nesting >= 0 else None
        if token.tag == "thead":
            in_head = token.nesting > 0
        elif in_head and token.tag == "tr":
            css = None
        # the parser puts the alignment into the style that ours replaces
        if css and token.tag in {"th", "td"}:
            aligned = ALIGN.search(str(token.attrGet("style") or ""))
            css += f";text-align:{aligned[1] if aligned else 'left'}"
        if css:
            token.attrSet("style", css)
        if token.nesting > 0 and not token.hidden:
            block = token
        elif block is not None and token.type == "inline":
            if _find_leftward(token.content):
                block.attrSet("style", f"{block.attrGet('style') or _BESIDE};{_BIDI}")
            longest = max(map(len, token.content.split()), default=0)
            if block.tag in {"th", "td"} and longest > theme.SCROLLS:
                block.attrSet("style", f"{block.attrGet('style')};{theme.BROKEN}")
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("style", theme.LINK)


def _remove_edges(token: Token, *, first: bool, last: bool) -> None:
    """Remove the edges between the pages of a block from its first token."""
    if token.type == "fence":
        token.meta = {"first": first, "last": last}
    elif not last and token.attrGet("style"):
        token.attrSet("style", str(token.attrGet("style")).replace(f"margin:{_SPACE}", "margin:0"))


def selectors() -> dict[str, str]:
    """Return the inline styles of rendered markdown as CSS rules: selector → declarations."""
    by_tag = {tag: css for tag, css in STYLES.items() if tag not in ("tr", "th", "td")}
    return {
        **by_tag,
        "tbody tr": STYLES["tr"],
        **{tag: f"{STYLES[tag]};text-align:left" for tag in ("th", "td")},
        "code": CODE_INLINE,
        "a": theme.LINK,
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
    attributes = _make_attributes(len(_find_symbols(formula)), f"margin:{_SPACE};{ACROSS}")
    return f"<p {attributes}>{html}</p>\n"


def _make_attributes(letters: int, css: str) -> str:
    """Return the attributes of a block: its style, and a tab stop if it may have to scroll.

    `letters`: the width that the block needs. It gets an edge only if it will scroll on most pages.
    """
    edge = f";{theme.EDGE}" if letters > theme.SCROLLS else ""
    return f'style="{css}{edge}"' + (' tabindex="0"' if letters > _NARROW else "")


def _table(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Return the start tag of a table, in a block that scrolls if a row may be too wide."""
    start = self.renderToken(tokens, index, options, env)
    letters = _measure_table(tokens[n] for n in range(index, len(tokens)))
    return f"<div {_make_attributes(letters, ACROSS)}>{start}" if letters > _NARROW else str(start)


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


def _isolate_delimiters(text: str) -> str:
    """Return HTML of a text in which nothing begins a formula."""
    return _DELIMITER.sub(r"<span>\g<0></span>", escape(text))


def _image(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    if source.startswith("data:"):
        return f'<img src="{escape(source)}" alt="{escape(token.content)}" style="{theme.IMAGE}">'
    return f'<a href="{escape(source)}" style="{theme.LINK}">{_isolate_delimiters(token.content) or "image"}</a>'


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
