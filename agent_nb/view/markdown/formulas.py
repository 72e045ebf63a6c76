"""Where formulas begin and end: two rules for the parser, which knows none by itself.

    $E = mc^2$    \\(a + b\\)    $$…$$    \\[…\\]    \\begin{align}…\\end{align}

The first two stand inside a line, the last one on separate lines, the others in either place. The
rules of `draw.markdown` and `open_end` look for formulas too, where nothing is parsed.
"""

from __future__ import annotations

import re

from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

LONGEST_FORMULA = 1_000  # characters of a formula in a line
# a formula between dollars; between single ones, no space inside them and no digit after them
_DOLLARS = re.compile(
    r"\$\$(?!\$)[^$]{1,1000}\$\$|\$(?![\s$])(?:[^$\\\n]|\\.){1,300}?(?<!\s)\$(?!\d)"
)
# the beginning of a formula on separate lines; `_CLOSES`: its end
_OPENS = re.compile(r"(\$\$|\\\[)|\\begin\{([a-zA-Z]{1,12}\*?)\}")
_CLOSES = {"$$": "$$", "\\[": "\\]"}
OPEN_END = "open_end"  # key of the parser's environment: more lines will come


def match_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
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


def match_inline(state: StateInline, silent: bool) -> bool:
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


def bare(formula: str) -> str:
    """Return a formula without its delimiters; `\\begin{…}…\\end{…}` has none."""
    text = formula.strip()
    if text.startswith("\\begin"):
        return text
    size = 1 if text.startswith("$") and not text.startswith("$$") else 2
    return text[size:-size].strip()
