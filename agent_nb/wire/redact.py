"""The secret filter: its output has no key (of an API, a password), however the text is chunked.

Model, tools, view, log and record must see the same text, so it comes before all of them. A key
becomes `[redacted NAME]`.

Rules
- Only text that may begin a key is held back: of a provider's form up to `LONGEST_KEY` characters,
  of a secret up to its length.
- Signatures and encrypted reasoning stay unchanged only in a provider's own objects (`OPAQUE`
  names the fields), not in fields that a model or a tool names so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from typing import Any

from .key_search import CONTEXT_LENGTH, LONGEST_KEY, search_for
from .unpicklable import Unpicklable

# Fields of a provider's own objects that are signed or encrypted.
OPAQUE = frozenset({
    "signature", "thought_signature", "thoughtSignature", "encrypted_content", "encrypted_index",
    "encrypted_stdout", "data",
})  # fmt: skip
# Base64 of pictures, sound and PDF.
_media = re.compile(
    r"(?:data:[\w.+-]+/[\w.+-]+;base64,)?(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR|SUQz|JVBERi0)[A-Za-z0-9+/\s]{40,}+={0,2}\s*"
).fullmatch


class Redactor(Unpicklable):
    """Filters one stream of text. `secrets`: name -> value (`models.collect_secrets`)."""

    LONGEST_KEY = LONGEST_KEY  # characters of a key that is held back

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._search = search_for(secrets)
        self._find_start = self._search.find_start
        self._held: list[str] = []
        self._size = 0
        # matches characters that would continue the key that is held back
        self._grows: Callable[[str, int], Any] | None = None
        # matches characters that would continue the key that was just redacted: they are dropped
        self._swallows: Callable[[str, int], Any] | None = None
        self._last = ""  # the latest decided text: the context of the next one

    def feed(self, text: str) -> str:
        """Return the text that may pass now."""
        # nearly all text passes here: nothing in it may begin a key
        if not self._held and self._swallows is None and self._find_start(text) is None:
            if text:
                self._last = text
            return text
        return self._decide(text)

    def close(self) -> str:
        """End the stream and return what was held back."""
        self._swallows = None
        return self._filter("", final=True)

    def _decide(self, text: str) -> str:
        """Return what may pass of text that may contain, continue or begin a key."""
        if self._swallows is not None:
            end = self._swallows(text, 0).end()
            if end == len(text):
                return ""
            self._swallows, text = None, text[end:]
        elif (
            self._grows is not None
            and self._grows(text, 0).end() == len(text)
            and self._size + len(text) <= LONGEST_KEY
        ):
            self._held.append(text)
            self._size += len(text)
            return ""
        return self._filter(text, final=False)

    def _filter(self, text: str, *, final: bool) -> str:
        """Return the text with its keys replaced; hold back what may still become one."""
        before = self._last[-CONTEXT_LENGTH:]
        pos = len(before)
        text = "".join([before, *self._held, text])
        self._held, self._size, self._grows = [], 0, None
        out: list[str] = []
        while pos < len(text):
            key = self._search.find(text, pos, final=final)
            if key is None:
                out.append(text[pos:])
                break
            out.append(text[pos : key.start])
            if key.end is None:  # only later text can decide
                self._held, self._size = [text[key.start :]], len(text) - key.start
                self._grows = key.chars
                text = text[: key.start]
                break
            out.append(key.label)
            pos = key.end
            if pos == len(text) and not final:  # the key may go on in the next piece
                self._swallows = key.chars
        self._last = text[-CONTEXT_LENGTH:]
        return "".join(out)


def redact_text(text: str, secrets: Mapping[str, str] | None = None) -> str:
    """Return `text` with every key replaced."""
    return search_for(secrets).redact(text)


def redact_value(
    value: Any, secrets: Mapping[str, str] | None = None, *, opaque: Container[str] = ()
) -> Any:
    """Return a JSON value, nested to any depth, with every key in its strings and names replaced.

    The base64 of media, and texts in fields named in `opaque`, stay unchanged. Tuples become lists.
    """
    redact = search_for(secrets).redact
    if isinstance(value, str):
        return value if _media(value) else redact(value)
    if not isinstance(value, dict | list | tuple):
        return value
    cleaned: dict[str, str] = {}  # names of fields and short texts repeat

    def clean(text: str) -> str:
        if type(text) is not str:  # a subclass may have no hash
            return redact(text)
        if text not in cleaned:
            cleaned[text] = redact(text)
        return cleaned[text]

    # no recursion: a value may be nested deeper than Python's stack
    root: list[Any] = [value]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    while todo:
        holder, key = todo.pop()
        member = holder[key]
        if isinstance(member, str):
            holder[key] = member if key in opaque or _media(member) else clean(member)
        elif isinstance(member, dict):
            copy = {clean(k) if isinstance(k, str) else k: v for k, v in member.items()}
            holder[key] = copy
            todo.extend((copy, k) for k in copy)
        elif isinstance(member, list | tuple):
            items = holder[key] = list(member)
            todo.extend((items, n) for n in range(len(items)))
    return root[0]


class Redaction(Unpicklable):
    """The filter of one run: for streams of text, values and providers' own objects."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._secrets = secrets

    def stream(self) -> Redactor:
        """Return a filter for one stream of text."""
        return Redactor(self._secrets)

    def value(self, value: Any) -> Any:
        """Return `value` with every key replaced; see `redact_value`."""
        return redact_value(value, self._secrets)

    def payload(self, value: Any) -> Any:
        """Return a provider's object redacted, except the fields that it signed or encrypted."""
        return redact_value(value, self._secrets, opaque=OPAQUE)

    def fields(self, fields: Mapping[str, Any], payloads: Container[str]) -> dict[str, Any]:
        """Return the redacted fields of a part or event; `payloads` names a provider's objects."""
        return {
            name: (self.payload if name in payloads else self.value)(value)
            for name, value in fields.items()
        }
