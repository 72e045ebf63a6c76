"""TeX → MathML (latex2mathml), for pages without a front end or a network to typeset formulas.

Why MathML: browsers draw it without scripts or remote fonts, and it can be searched and copied. The
TeX may be hostile, so only elements and attributes of allow-lists are written. They hold no
negative or large length, no colour and no link.
"""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from html import escape, unescape
from typing import TYPE_CHECKING

from .. import visible
from .formulas import bare

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LONGEST = 4_000  # characters of one formula
DEEPEST = 100  # nested elements
# elements that may be written; any other becomes an `mrow`
ELEMENTS = """
    math mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd
    mtext mtr munder munderover none
"""
TAGS = frozenset(ELEMENTS.split())
# from 0 to below 5 of any of these units
LENGTH = r"\+?(?:0|[0-4]?(?:\.\d{1,4})?)(?:em|ex|pt|px)?"
# attribute -> pattern of its whole value
ATTRIBUTES: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for names, pattern in (
        ("accent accentunder displaystyle fence largeop movablelimits", "true|false"),
        ("separator stretchy symmetric", "true|false"),
        ("form", "prefix|infix|postfix"),
        ("columnalign rowalign", "(?:left|center|right|top|bottom|baseline|axis| )+"),
        ("columnlines rowlines", "(?:none|solid|dashed| )+"),
        ("linethickness lspace rspace minsize maxsize", LENGTH),
        ("columnspacing rowspacing", f"{LENGTH}(?: {LENGTH}){{0,20}}"),
        ("mathvariant", "[a-z-]{4,24}"),
        ("scriptlevel", r"\+?[0-3]"),
    )
    for name in names.split()
}
WIDTH = re.compile(LENGTH)  # the attribute `width`, allowed on `mspace` only
_DISPLAY = ("$$", "\\[", "\\begin{")  # beginnings of display formulas


class Formulas:
    """Carries the formulas of one text past the sanitiser, which removes MathML.

    `put` replaces a formula by a mark; once the text is sanitised, `fill` replaces the marks.
    """

    def __init__(self) -> None:
        self._sources: list[str] = []
        self._secret = secrets.token_hex(8)  # so that the text cannot contain a mark

    def put(self, source: str) -> str:
        """Return the mark of a formula, given with its delimiters."""
        self._sources.append(source)
        return f"{self._secret}m{len(self._sources) - 1}m"

    def fill(self, html: str) -> str:
        """Return sanitised HTML with the formulas in place of their marks."""
        if not self._sources:
            return html
        marks = re.compile(f"{self._secret}m([0-9]+)m")
        return marks.sub(lambda mark: formula(self._sources[int(mark[1])]), html)


def formula(source: str) -> str:
    """Return a formula, given with its delimiters, as MathML, or as code if that fails."""
    tex = bare(source)
    if len(tex) <= LONGEST:
        with suppress(Exception):  # the converter may raise anything, also RecursionError
            return _write_element(_convert(tex, source.strip().startswith(_DISPLAY)), 0)
    return f"<code>{escape(visible.show_hidden(source))}</code>"


def _convert(tex: str, block: bool) -> Element:
    """Return the MathML of the converter, with the TeX as its alternative text."""
    from latex2mathml.converter import convert_to_element

    root = convert_to_element(tex, display="block" if block else "inline")
    root.attrib = {"display": "block" if block else "inline", "alttext": tex}
    return root


def _write_element(element: Element, depth: int) -> str:
    """Return an element as text, reduced to the allow-lists. Raises ValueError if too deep."""
    if depth > DEEPEST:
        raise ValueError(depth)
    tag = element.tag if element.tag in TAGS else "mrow"
    attributes = element.attrib
    if depth:  # `_convert` set those of the root
        attributes = {k: v for k, v in attributes.items() if _is_allowed(tag, k, v)}
    written = "".join(
        f' {name}="{escape(visible.show_hidden(value))}"' for name, value in attributes.items()
    )
    inside = "".join(_write_element(child, depth + 1) for child in element)
    # the converter writes operators as entities, such as &#x0003D;
    return f"<{tag}{written}>{escape(visible.show_hidden(unescape(element.text or '')))}{inside}</{tag}>"


def _is_allowed(tag: str, name: str, value: str) -> bool:
    pattern = WIDTH if name == "width" and tag == "mspace" else ATTRIBUTES.get(name)
    return pattern is not None and pattern.fullmatch(value) is not None
