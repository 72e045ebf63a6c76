"""Compare the markup (HTML, SVG, LaTeX …), the JSON and the charts of two displays.

Why: if another cell of a table is highlighted, or a chart has another axis, the display differs,
even if the model reads the same text. But libraries write new, invisible ids into each display, so
ids are replaced; and what people do not see (comments, the `config` of a Plotly chart) is left out.

Rule: only MIME types that both displays have are compared. Plain text and pictures are compared
elsewhere; `uncompared_kinds` returns the types that nothing compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..wire import encode_canonical
from .figure_data import SameText
from .side_by_side import common_prefix_length

# MIME type of a text that is compared -> its name for people
_TEXT_NAMES = {
    "text/html": "HTML",
    "image/svg+xml": "SVG",
    "text/markdown": "Markdown",
    "text/latex": "LaTeX",
}
_JSON = "application/json"
_CHART = re.compile(r"application/vnd\.(vega|vegalite|plotly)\.v\d[\w.]*\+json")
# MIME types that are compared elsewhere, or not shown to people
_ELSEWHERE = re.compile(r"text/plain|image/(?:png|jpeg|gif|webp)|application/vnd\.agent-nb\..*")
_MARKUP = frozenset({"text/html", "image/svg+xml"})
# Parts of markup that are not visible. Metadata that is never closed ends where the next begins, so
# that any text takes linear time; for comments see `_remove_unseen`.
_COMMENT = re.compile("<!--.*?-->", re.DOTALL)
_METADATA = re.compile(r"<metadata\b(?:(?!<metadata\b).)*?</metadata>", re.DOTALL | re.IGNORECASE)
# The code in markup, as opposed to its text: whole styles and scripts, and tags. A part that is
# never closed ends with the text, as in a browser; this too keeps the time linear.
_CODE = re.compile(
    r"(<style\b.*?(?:</style\s*>|\Z)|<script\b.*?(?:</script\s*>|\Z)|<[a-z/!?][^>]*(?:>|\Z))",
    re.DOTALL | re.IGNORECASE,
)
# an id that markup or a script defines
_ID = re.compile(r"""(?:\bid\s*=\s*|["']id["']\s*:\s*)["']?([\w-]+)""")
# numbered names (Altair) and UUIDs
_GENERATED = re.compile(
    r"\b(?:(?:view|param|selector)_?\d+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b"
)
_TOKEN = re.compile(r"[\w-]+")
_EXCERPT_LENGTH = 60  # characters


class DisplayPair(msgspec.Struct, frozen=True):
    """The MIME bundles of a recorded display and of the new one."""

    recorded: Mapping[str, Any]
    fresh: Mapping[str, Any]

    def difference(self, same_text: SameText = str.__eq__) -> str:
        """Return the first difference in words, "" for equal displays.

        `same_text` decides whether two texts that are not identical count as equal.
        """
        for kind, recorded in self.recorded.items():
            name = self.kind_name(kind)
            if name and kind in self.fresh:
                old, new = _normalize(kind, recorded), _normalize(kind, self.fresh[kind])
                if old != new and not same_text(old, new):
                    return f"its {name} differs: {_cut_excerpts(old, new)}"
        return ""

    def uncompared_kinds(self) -> list[str]:
        """Return the MIME types that people see and nothing compares, here or elsewhere."""
        compared = set(filter(self.kind_name, self.recorded.keys() & self.fresh.keys()))
        kinds = {**self.recorded, **self.fresh}
        return [k for k in kinds if k not in compared and not _ELSEWHERE.fullmatch(k)]

    @staticmethod
    def kind_name(kind: str) -> str:
        """Return the name for people of a MIME type that is compared, "" for other types."""
        if chart := _CHART.fullmatch(kind):
            return f"{chart[1]} chart"
        return "JSON" if kind == _JSON else _TEXT_NAMES.get(kind, "")

    @staticmethod
    def is_chart(kind: str) -> bool:
        """Return whether a MIME type is the JSON of a chart."""
        return _CHART.fullmatch(kind) is not None


def _normalize(kind: str, content: Any) -> str:
    """Return the content of one MIME type as text; the ids of markup and charts are numbers."""
    text = _to_text(kind, content)
    if kind in _MARKUP:
        return _normalize_markup(text)
    if _CHART.fullmatch(kind):  # JSON: its ids are numbered names and UUIDs
        return _rename_ids(text, _number_ids(_GENERATED.findall(text)))
    return text


def _remove_unseen(text: str) -> str:
    """Return markup without its comments and metadata.

    A comment that is never closed stays: `<!--` in a script hides nothing of what follows.
    """
    # only up to the last end of a comment: behind it, each beginning would cost a search to the end
    # of the text
    before, end, after = text.rpartition("-->")
    return _METADATA.sub("", _COMMENT.sub("", before + end) + after)


def _normalize_markup(text: str) -> str:
    """Return markup without its invisible parts, with numbers in place of the ids in its code."""
    # `_CODE` has one group: `split` returns text and code in turn
    parts = _CODE.split(_remove_unseen(text))
    code = parts[1::2]
    numbers = _number_ids(
        i for piece in code for i in _ID.findall(piece) + _GENERATED.findall(piece)
    )
    parts[1::2] = [_rename_ids(piece, numbers) for piece in code]
    return "".join(parts)


def _to_text(kind: str, content: Any) -> str:
    """Return the content of one MIME type as text; JSON, also a JSON string, in canonical form."""
    if kind in _TEXT_NAMES and isinstance(content, str | list):
        # nbformat may store a text as the list of its lines; `join` also takes the text itself
        return "".join(map(str, content))
    if DisplayPair.kind_name(kind) == "plotly chart" and isinstance(content, dict):
        content = {key: value for key, value in content.items() if key != "config"}
    try:
        return encode_canonical(content)
    except ValueError:  # NaN or too many levels: notebooks hold such JSON, too
        return json.dumps(content, sort_keys=True)


def _number_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return id -> replacement, such as `‹id 1›`; displays that differ only in ids become equal."""
    return {name: f"‹id {n}›" for n, name in enumerate(dict.fromkeys(ids), 1)}


def _rename_ids(text: str, names: Mapping[str, str]) -> str:
    """Return a text in which each word that is an id is replaced."""
    return _TOKEN.sub(lambda match: names.get(match[0], match[0]), text)


def _cut_excerpts(old: str, new: str) -> str:
    """Return a piece of each text, from shortly before the first character that differs."""
    start = max(0, common_prefix_length(old, new) - _EXCERPT_LENGTH // 3)
    end = start + _EXCERPT_LENGTH
    was, now = (" ".join(text[start:end].split()) for text in (old, new))
    return f"…{was}… was, …{now}… is"
