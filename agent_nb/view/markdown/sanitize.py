"""Sanitise foreign HTML with nh3: displays of tools, and markdown after it was rendered.

Why: besides running scripts, hostile output may cover the page (a `position: fixed` copy of the
approval card, a negative margin, a class of the host's dialogs) or load something from outside. So
tags, attributes, style properties and their values must be on allow-lists, which lack `class`, `id`
and `name`.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from .. import visible

if TYPE_CHECKING:
    import nh3

# elements that may be shown; any other tag is removed
TAGS = """
    a abbr b bdi blockquote br caption code col colgroup dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p
    pre q s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var wbr
"""
# elements that are removed with their content; of others that are not allowed, the content stays
REMOVED = "script style svg math iframe object embed template noscript title textarea select xmp plaintext"
# element ("*": any) -> its attributes; `_attribute` checks all values but those of title and alt
ATTRIBUTES: dict[str, set[str]] = {
    "*": {"style", "title"},
    "a": {"href"},
    **{tag: {"tabindex"} for tag in ("pre", "div", "p")},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start"},
    "td": {"colspan", "rowspan", "align"},
    "th": {"colspan", "rowspan", "align", "scope"},
    "details": {"open"},
}
# attribute -> the values that it may have
_CHOICES = {
    "align": {"left", "right", "center", "justify", "char"},
    "scope": {"row", "col", "rowgroup", "colgroup"},
    "tabindex": {"0"},
}
# Patterns of style values. Lengths are from 0 to below 1000 of their unit.
_LENGTH = r"(?:0|\d{1,3}(?:\.\d{1,3})?(?:px|em|rem|pt|ch|%))"
# the colours that `theme.mixed` writes: a colour of the page, mixed with another one
_MIX = r"color-mix\(in srgb,(?:var\(--jp-[a-z0-9-]{3,40},)?rgb\([\d,]{5,11}\)\)? \d{1,3}%,(?:currentColor|transparent)\)"
_COLOUR = rf"(?:#[0-9a-fA-F]{{3,8}}|[a-zA-Z]{{3,20}}|rgba?\([\d\s.,%/]{{5,40}}\)|hsla?\([\d\s.,%/deg]{{5,40}}\)|{_MIX})"
# 6 to 39 px or pt, 0.5 to 2 em, 50 to 199 %
_FONT_SIZE = r"(?:[6-9]|[1-3]\d)(?:\.\d+)?p[xt]|(?:0?\.[5-9]\d?|1(?:\.\d+)?|2)r?em|(?:[5-9]\d|1\d\d)%|small|smaller|medium|large|larger"
_LINE_HEIGHT = r"1(?:\.\d+)?"
_FAMILY = r"[\w\s,'\"-]{1,80}"
_KEYWORD = r"[a-z-]{2,20}"
_BORDER = rf"(?:{_LENGTH}|{_COLOUR}|{_KEYWORD})(?:\s+(?:{_LENGTH}|{_COLOUR}|{_KEYWORD})){{0,2}}"
_LENGTHS = rf"(?:{_LENGTH}|auto)(?:\s+(?:{_LENGTH}|auto)){{0,3}}"
# property -> pattern of its value. No position, display, float, z-index, transform, opacity,
# content, url(), negative length.
PROPERTIES: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for names, pattern in (
        ("color background background-color border-color border-left-color", _COLOUR),
        ("font-weight", r"normal|bold|bolder|lighter|\d{3}"),
        ("font-style text-align vertical-align text-decoration white-space", _KEYWORD),
        ("overflow-wrap word-break border-collapse border-style list-style-type", _KEYWORD),
        ("unicode-bidi", "plaintext"),
        ("box-sizing", "border-box"),
        ("overflow", r"(?:auto|hidden|scroll)(?: (?:auto|hidden|scroll))?"),
        ("overflow-x overflow-y", r"auto|hidden|scroll"),
        ("font-size", _FONT_SIZE),
        ("line-height", rf"{_LINE_HEIGHT}|normal"),
        ("font-family", _FAMILY),
        ("font", rf"(?:{_FONT_SIZE})/{_LINE_HEIGHT} {_FAMILY}"),
        ("margin margin-top margin-bottom margin-left margin-right", _LENGTHS),
        ("padding padding-top padding-bottom padding-left padding-right", _LENGTHS),
        ("border border-top border-bottom border-left border-right", _BORDER),
        ("border-width border-radius border-spacing", _LENGTHS),
        ("width max-width min-width height max-height", rf"{_LENGTH}|fit-content"),
    )
    for name in names.split()
}
# a header of a table without text, such as pandas writes above an index
_EMPTY_HEADER = re.compile(r"<th( [^<>]*)?>((?:&nbsp;|\s)*)</th>")
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")
_LINK = re.compile(r"(?:https?://|mailto:)\S", re.IGNORECASE)


def clean(html: str) -> str:
    """Return foreign HTML reduced to the allow-lists, without control characters.

    An empty header of a table becomes a plain cell: screen readers announce a header as a name.
    """
    sanitised: str = _cleaner().clean(visible.show_prose(html))
    return _EMPTY_HEADER.sub(r"<td\1>\2</td>", sanitised)


@lru_cache(4096)
def style(value: str) -> str:
    """Return the allowed declarations of the style attribute `value`."""
    allowed = []
    # a ";" inside quotes or brackets splits too: no allowed value contains one
    for declaration in value.split(";"):
        name, _, setting = declaration.partition(":")
        name, setting = name.strip().lower(), setting.strip()
        pattern = PROPERTIES.get(name)
        if pattern is not None and pattern.fullmatch(setting):
            allowed.append(f"{name}:{setting}")
    return ";".join(allowed)


def _attribute(tag: str, name: str, value: str) -> str | None:
    """Return the allowed value of an allowed attribute, None to remove it."""
    if name == "style":
        return style(value) or None
    if name == "src":
        return value if _IMAGE.fullmatch(value) else None
    if name == "href":
        return value if _LINK.match(value) else None
    if name in _CHOICES:
        return value if value.lower() in _CHOICES[name] else None
    if name == "open":
        return ""  # its presence counts, whatever its value
    if name in {"width", "height", "colspan", "rowspan", "start"}:
        return value if value.isascii() and value.isdigit() and len(value) <= 4 else None
    # `target` and `rel` are those that `_cleaner` sets
    return value if name in ("title", "alt", "target", "rel") else None


@cache
def _cleaner() -> nh3.Cleaner:
    """Return the one sanitiser of this process, made at the first use."""
    import nh3

    return nh3.Cleaner(
        tags=set(TAGS.split()),
        clean_content_tags=set(REMOVED.split()),
        attributes={tag: set(names) for tag, names in ATTRIBUTES.items()},
        attribute_filter=_attribute,
        # `data` for images; `_attribute` refuses it in a link
        url_schemes={"http", "https", "mailto", "data"},
        url_relative="deny",
        link_rel="noreferrer",  # it implies noopener
        set_tag_attribute_values={"a": {"target": "_blank"}},
        strip_comments=True,
    )
