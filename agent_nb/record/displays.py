"""Whether two displays show the same beside text and pictures: HTML, SVG, charts as JSON.

Why: a table whose highlighted cell moves, or a chart with another axis, is a change, also where the
model read the same text. Libraries write new ids into each display, which nobody sees.

Rules
- Ids count by the order in which they come first, in tags, styles and scripts: whatever has the
  attribute `id`, UUIDs, and the names that Altair counts. Comments and metadata of an SVG do not
  count. Text between tags is never taken for an id.
- Only kinds that both displays have are compared. The others are named (`uncompared_kinds`).
- Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..wire import encode_canonical
from .figure_data import SameText

_NAMES = {  # of the MIME types that are compared, as people read them
    "text/html": "HTML",
    "image/svg+xml": "SVG",
    "text/markdown": "Markdown",
    "text/latex": "LaTeX",
    "application/json": "JSON",
}
_CHART = re.compile(r"application/vnd\.(vega|vegalite|plotly)\.v\d[\w.]*\+json")
# compared elsewhere, or not for people
_ELSEWHERE = re.compile(r"text/plain|image/(?:png|jpeg|gif|webp)|application/vnd\.agent-nb\..*")
_MARKUP = frozenset({"text/html", "image/svg+xml"})
# what of a markup nobody sees
_UNSEEN = re.compile(r"<!--.*?-->|<metadata\b.*?</metadata>", re.DOTALL | re.IGNORECASE)
# splits markup into text and code: tags, and whole styles and scripts
_CODE = re.compile(
    r"(<style\b.*?</style\s*>|<script\b.*?</script\s*>|<[^>]*>)", re.DOTALL | re.IGNORECASE
)
# an id that markup or a script defines
_ID = re.compile(r"""(?:\bid\s*=\s*|["']id["']\s*:\s*)["']?([\w-]+)""")
# names with a counter (Altair) and UUIDs
_COUNTED = re.compile(
    r"\b(?:(?:view|param|selector)_?\d+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b"
)
_TOKEN = re.compile(r"[\w-]+")
_WORDS = 60  # characters of an excerpt


class DisplayPair(msgspec.Struct, frozen=True):
    """The MIME bundles of a recorded display and of the new one."""

    recorded: Mapping[str, Any]
    fresh: Mapping[str, Any]

    def difference(self, same_text: SameText = str.__eq__) -> str:
        """Return the first difference in words, "" if there is none."""
        for kind in self.recorded:
            name = self.kind_name(kind)
            if not name or kind not in self.fresh:
                continue
            old, new = (_normal(kind, side[kind]) for side in (self.recorded, self.fresh))
            if old != new and not same_text(old, new):
                return f"its {name} differs: {_excerpts(old, new)}"
        return ""

    def uncompared_kinds(self) -> list[str]:
        """Return the MIME types that are shown and not compared."""
        recorded, fresh = self.recorded, self.fresh
        return [
            kind
            for kind in dict.fromkeys([*recorded, *fresh])
            if not _ELSEWHERE.fullmatch(kind)
            and not (self.kind_name(kind) and kind in recorded and kind in fresh)
        ]

    @staticmethod
    def kind_name(kind: str) -> str:
        """Return the name of a MIME type that is compared, else ""."""
        chart = _CHART.fullmatch(kind)
        return f"{chart[1]} chart" if chart else _NAMES.get(kind, "")


def _normal(kind: str, content: Any) -> str:
    """Return the content of a display with its ids numbered by their order."""
    text = "".join(content) if isinstance(content, list) and kind in _NAMES else content
    if not isinstance(text, str):
        text = encode_canonical(content)
    if kind in _MARKUP:
        parts = _CODE.split(_UNSEEN.sub("", text))
        # split by a group: every second part is code
        names = _ids(parts[1::2])
        return "".join(_renamed(part, names) if n % 2 else part for n, part in enumerate(parts))
    return _renamed(text, _counted([text])) if _CHART.fullmatch(kind) else text


def _ids(parts: list[str]) -> dict[str, str]:
    """Return the new names of the ids in code."""
    return _numbered(parts, lambda part: [*_ID.findall(part), *_COUNTED.findall(part)])


def _counted(parts: list[str]) -> dict[str, str]:
    """Return the new names of counted names in the JSON of a chart, which defines no ids."""
    return _numbered(parts, _COUNTED.findall)


def _numbered(parts: list[str], find: Callable[[str], list[str]]) -> dict[str, str]:
    """Return a name for each id, by the order in which they come first."""
    ids = dict.fromkeys(name for part in parts for name in find(part))
    return {name: f"‹id {n}›" for n, name in enumerate(ids, 1)}


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a text with whole words replaced by their new names."""
    return _TOKEN.sub(lambda match: names.get(match[0], match[0]), text)


def _excerpts(old: str, new: str) -> str:
    """Return both texts from shortly before the first character that differs."""
    pairs = enumerate(zip(old, new, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(old), len(new)))
    start = max(0, at - _WORDS // 3)
    was, now = (" ".join(text[start : start + _WORDS].split()) for text in (old, new))
    return f"…{was}… was, …{now}… is"
