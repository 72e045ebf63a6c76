"""Arguments of a call that Vertex AI streams in pieces, as JSON text that grows.

A piece has a path of names and indices (RFC 9535 without filters), and a `stringValue`,
`numberValue`, `boolValue` or `nullValue`. Each of these pieces adds the text to its right:

    {"jsonPath": "$.city", "stringValue": "Par", "willContinue": true}    {"city": "Par
    {"jsonPath": "$.city", "stringValue": "is"}                           is"
    {"jsonPath": "$.days[0]", "numberValue": 3}                           , "days": [3

The text grows as long as the paths come in the order of a document. After a path that goes back, or
differs in kind, only `close` returns the arguments, with the last value of each path.
"""

from __future__ import annotations

import re
from typing import Any

from ...wire import as_dict
from ..http.values import to_json, to_text

Key = str | int  # the name of a field, or an index in a list

# one key of a path: `.name`, `[0]`, `['name']` or `["name"]`
_KEY = re.compile(
    r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d{1,9})\]"
    r"|\[(?:'(?P<one>(?:[^'\\]|\\.)*)'|\"(?P<two>(?:[^\"\\]|\\.)*)\")\]"
)
_DEEPEST = 100  # keys of a path; a longer path counts as one that cannot be read
_ABSENT: Any = object()


class PartialArgs:
    """The arguments of one call, begun with those that came whole."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self._root: dict[Key, Any] = {}  # values by their keys, lists too; a leaf is a `_Leaf`
        self._path: list[Key] = []  # of the last value
        self._in_string = False  # the last value is a string that goes on
        self._ordered = True  # so far, all paths came in the order of a document
        self._text: list[str] = []
        for name, value in whole.items():
            self._text.append(self._begin([name], _Leaf(value), to_json(value)))

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    def add(self, piece: Any) -> str:
        """Add a piece; return the text that it adds."""
        fields = as_dict(piece)
        path = _read_path(to_text(fields.get("jsonPath")))
        text = self._add_value(path, _read_value(fields))
        if fields.get("willContinue") is not True and self._in_string and path == self._path:
            text += self._end_string()
        if not self._ordered:
            return ""
        self._text.append(text)
        return text

    def _add_value(self, path: list[Key], value: Any) -> str:
        """Add the value of a piece, or the next piece of the open string; return its text."""
        is_text = isinstance(value, str)
        if self._in_string and path == self._path:
            if not is_text:
                return ""
            self._find_node(path).pieces.append(value)
            return to_json(value)[1:-1]
        if value is _ABSENT or not path:
            return ""
        written = to_json(value)
        text = self._begin(path, _Leaf(value), written[:-1] if is_text else written)
        self._in_string = is_text
        return text

    def close(self) -> str:
        """Return all arguments as JSON text; it begins with `text` if the paths were in order."""
        if not self._ordered:
            return to_json(_build(self._root))
        if not self._path:
            return ""
        return self.text + self._end_string() + _write_ends(self._path, 0)

    def _begin(self, path: list[Key], leaf: _Leaf, written: str) -> str:
        """Put a value at a path; return the text that leads to it, and its own."""
        self._ordered = self._ordered and self._is_in_order(path)
        text = self._end_string() + self._write_between(path) + written if self._ordered else ""
        self._store(path, leaf)
        self._path = path
        return text

    def _is_in_order(self, path: list[Key]) -> bool:
        """Return whether a path may come next in the order of a document."""
        last, level = self._path, self._count_shared(path)
        # a new list begins with index 0
        if any(isinstance(key, int) and key for key in path[level + 1 :]):
            return False
        if not last:
            return isinstance(path[0], str)
        # one path contains the other: the text of the earlier value would have to change
        if level >= min(len(last), len(path)):
            return False
        before, key = last[level], path[level]
        if isinstance(before, int) or isinstance(key, int):
            return isinstance(before, int) and isinstance(key, int) and key == before + 1
        return key not in self._find_node(path[:level])

    def _count_shared(self, path: list[Key]) -> int:
        """Return how many keys a path shares with the path of the last value."""
        shortest = min(len(self._path), len(path))
        return next((n for n in range(shortest) if self._path[n] != path[n]), shortest)

    def _write_between(self, path: list[Key]) -> str:
        """Return the text between the last value and one at `path`."""
        level = self._count_shared(path)
        between = f"{_write_ends(self._path, level + 1)}, " if self._path else "{"
        return between + _write_name(path[level]) + "".join(map(_write_start, path[level + 1 :]))

    def _store(self, path: list[Key], leaf: _Leaf) -> None:
        node: Any = self._root
        for key in path[:-1]:
            if not isinstance(node.get(key), dict):
                node[key] = {}
            node = node[key]
        node[path[-1]] = leaf

    def _find_node(self, path: list[Key]) -> Any:
        """Return the leaf, or the values by their keys, at a path that exists."""
        node: Any = self._root
        for key in path:
            node = node[key]
        return node

    def _end_string(self) -> str:
        ended, self._in_string = '"' if self._in_string else "", False
        return ended


class _Leaf:
    """A value, or the pieces of a string."""

    def __init__(self, value: Any) -> None:
        self.pieces = [value]

    @property
    def value(self) -> Any:
        return self.pieces[0] if len(self.pieces) == 1 else "".join(self.pieces)


def _read_path(text: str) -> list[Key]:
    """Return the keys of a path below `$`; a path that cannot be read is the name of one field."""
    if not text.startswith("$"):
        return [text] if text else []
    keys: list[Key] = []
    position = 1
    while position < len(text):
        match = _KEY.match(text, position)
        if match is None or len(keys) == _DEEPEST:
            return [text]
        if match["index"]:
            keys.append(int(match["index"]))
        else:
            quoted = match["one"] or match["two"] or ""
            keys.append(match["name"] or re.sub(r"\\(.)", r"\1", quoted))
        position = match.end()
    return keys


def _read_value(fields: dict[str, Any]) -> Any:
    """Return the value of a piece, `_ABSENT` if it has none."""
    if "stringValue" in fields:
        return to_text(fields["stringValue"])
    for name in ("numberValue", "boolValue"):
        if name in fields:
            return fields[name]
    return None if "nullValue" in fields else _ABSENT


def _build(node: Any) -> Any:
    """Return the value of a node; one whose keys are all indices is a list."""
    if isinstance(node, _Leaf):
        return node.value
    if node and all(isinstance(key, int) for key in node):
        return [_build(node[key]) for key in sorted(node)]
    return {str(key): _build(value) for key, value in node.items()}


def _write_start(key: Key) -> str:
    """Return the start of the object or list that has this key first."""
    return "[" if isinstance(key, int) else "{" + _write_name(key)


def _write_name(key: Key) -> str:
    return "" if isinstance(key, int) else f"{to_json(key)}: "


def _write_ends(path: list[Key], level: int) -> str:
    """Return the ends of the objects and lists that are open below a level of a path."""
    return "".join("]" if isinstance(key, int) else "}" for key in reversed(path[level:]))
