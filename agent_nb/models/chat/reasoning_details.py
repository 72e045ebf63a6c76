"""`reasoning_details` of routers (OpenRouter): signed or encrypted reasoning, put together again.

Behind a router, Claude, Gemini and GPT must get their reasoning back, unchanged, after a tool call.
Otherwise they reject the next request, or lose that reasoning. An item comes in fragments:

    {"type": "reasoning.text", "index": 0, "text": "High wa"}
    {"type": "reasoning.text", "index": 0, "text": "ter?", "signature": "Eq8…"}
"""

from __future__ import annotations

from typing import Any

from ...wire import as_list
from ..http.values import to_text

_JOINED = ("text", "summary", "data")  # fields whose fragments are joined


class Details:
    """The reasoning items of one response."""

    def __init__(self) -> None:
        self._items: dict[tuple[Any, ...], dict[str, Any]] = {}  # by index, type and id

    def add(self, fragments: Any) -> str:
        """Add a list of fragments, or a single fragment outside a list; return their text."""
        texts = []
        for position, fragment in enumerate(as_list(fragments) or [fragments]):
            if isinstance(fragment, dict):
                self._merge_fragment(_make_key(fragment, position), fragment)
                texts.append(_find_text(fragment))
        return "".join(texts)

    def take_items(self) -> list[dict[str, Any]]:
        """Return the items with text, summary, data or signature, and forget all items."""
        items, self._items = self._items, {}
        needed = (*_JOINED, "signature")
        return [item for item in items.values() if any(map(item.get, needed))]

    def _merge_fragment(self, key: tuple[Any, ...], fragment: dict[str, Any]) -> None:
        """Merge a fragment into the item with this key, or begin the item.

        Texts, summaries and data are joined; any other field gets its newest value that is not
        empty.
        """
        item = self._items.setdefault(key, {})
        for name, value in fragment.items():
            if name in _JOINED and isinstance(value, str) and isinstance(item.get(name), str):
                item[name] += value
            elif value not in (None, "", [], {}) or name not in item:
                item[name] = value


def _make_key(fragment: dict[str, Any], position: int) -> tuple[Any, ...]:
    """Return what the fragments of one item share: index, type and, if encrypted, id.

    Without an index, the `position` in the list of the chunk counts.
    """
    index, item_id = fragment.get("index"), fragment.get("id") if fragment.get("data") else None
    key = (position if index is None else index, fragment.get("type"), item_id)
    # servers send anything here, but a list or an object cannot be part of a key
    return tuple(to_text(v) if isinstance(v, dict | list) else v for v in key)


def _find_text(fragment: dict[str, Any]) -> str:
    texts = (fragment.get(name) for name in ("text", "summary"))
    return next((text for text in texts if text and isinstance(text, str)), "")
