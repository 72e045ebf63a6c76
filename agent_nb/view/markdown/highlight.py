"""Source code → escaped HTML with colours (Pygments), inline since front ends drop style sheets."""

from __future__ import annotations

from functools import cache
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import Any

from ...host import without_project
from .. import theme

# characters; longer code is shown plain: on some texts a lexer takes quadratic time, which is
# seconds at this length
LONGEST = 12_000
# token type of Pygments, which includes its subtypes -> family in `theme.SYNTAX`
FAMILIES = {
    f"Token.{kind}": family
    for family, kinds in {
        "keyword": "Keyword Operator.Word Name.Tag",
        "string": "Literal.String",
        "number": "Literal.Number",
        "comment": "Comment",
        "name": "Name.Function Name.Class Name.Builtin Name.Decorator Name.Attribute Generic.Heading Generic.Subheading",
        "inserted": "Generic.Inserted",
        "deleted": "Name.Exception Generic.Deleted Generic.Error",
    }.items()
    for kind in kinds.split()
}


def highlight(code: str, language: str, *, begin: int = 0) -> str:
    """Return `code` as HTML for the inside of a `pre`.

    The part before `begin` is left out: it only decides whether the rest continues a string.
    """
    runs = color_runs(code, language, begin=begin)
    return "".join(_span(text, family) for text, family in runs)


def color_runs(code: str, language: str, *, begin: int = 0) -> list[tuple[str, str]]:
    """Return `code` from `begin` on as texts with their families ("": not coloured).

    Code in a known language loses its last line end.
    """
    lexer = _lexer(language) if language and len(code) <= LONGEST else None
    if lexer is None:
        return [(code[begin:], "")]
    pieces: list[tuple[str, str]] = []
    family = ""
    for kind, token in lexer.get_tokens(code):
        # `begin` counts down: the characters that are still to be skipped
        value, begin = token[begin:], max(0, begin - len(token))
        family = _family(kind) if value.strip() else family
        pieces.append((value, family))
    runs = [("".join(text for text, _ in run), key) for key, run in groupby(pieces, itemgetter(1))]
    text, family = runs.pop()
    return [*runs, (text.removesuffix("\n"), family)]  # the lexer ensures a line end


def _span(text: str, family: str) -> str:
    if not text:
        return ""
    return f'<span style="{theme.syntax(family)}">{escape(text)}</span>' if family else escape(text)


@cache
def _family(kind: Any) -> str:
    """Return the family of a Pygments token type, "" for one that is not coloured."""
    while kind is not None:
        if (name := str(kind)) in FAMILIES:
            return FAMILIES[name]
        kind = kind.parent
    return ""


@cache
def _lexer(language: str) -> Any:
    """Return the Pygments lexer of a language, None if it has none."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        # Pygments imports lexers of installed packages: none may come from the user's folder
        with without_project():
            return get_lexer_by_name(language.lower(), stripnl=False, ensurenl=True)
    except ClassNotFound:
        return None
