"""The secret filter: what passes it holds no key, however the key is cut into pieces.

Why a stream filter before everything else: model, tools, view, log and record must see the same
text, and a key that arrives in two deltas is still a key.

Rules
- Secret are the values that are given, also as they look in HTML, in Python's `repr`, in a JSON
  string and in JSON within one, and whatever has the form of a provider's key (`wire.key_forms`).
- A key becomes `[redacted NAME]`; nothing of it stays. Of two that begin at the same place the
  longer one counts.
- A form begins where no letter or digit stands before it, and reaches as far as the characters that
  such a key may have.
- Only what may be the start of a key is held back. What looks like a key for more than `LONGEST`
  characters is redacted as it comes.
- The result does not depend on the chunking: a text fed in pieces gives what `redact_text` gives of
  the whole.
- Media, signatures and encrypted reasoning must stay as they are to the byte: media wherever they
  are a text of their own, the others in the objects that a provider wants back (`OPAQUE`), not in
  what a model or a tool calls so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from .key_forms import PATTERNS, SHORTEST, Pattern, written

LONGEST = 4096
# Members of a provider's own objects that are signed or encrypted.
OPAQUE = frozenset(
    {
        "signature",
        "thought_signature",
        "thoughtSignature",
        "encrypted_content",
        "encrypted_index",
        "encrypted_stdout",
        "data",
    }
)
# Base64 of pictures, sound and PDF.
_media = re.compile(
    r"(?:data:[\w.+-]+/[\w.+-]+;base64,)?(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR|SUQz|JVBERi0)[A-Za-z0-9+/\s]{40,}+={0,2}\s*"
).fullmatch
# Before a key in JSON: the letter or digit that ends an escape is no part of a word.
_after_escape = re.compile(r"\\(?:[bfnrt]|u[0-9a-fA-F]{4})\Z").search
_CONTEXT = 6  # characters of the longest escape
_CUT_ESCAPE = r"\\(?:[bfnrt]|u[0-9a-fA-F]{0,4})?\Z"
_cut_escape = re.compile(_CUT_ESCAPE).match


class _Found(msgspec.Struct, frozen=True):
    """What begins at a place: a key (`end`, `label`), or what may become one (`end` -1; `chars`: as
    long as these follow).
    """

    end: int
    label: str = ""
    chars: Callable[[str, int], Any] | None = None


_MAYBE = _Found(-1)


class _Rules:
    """What to look for, compiled once for a set of secrets."""

    def __init__(self, secrets: Iterable[tuple[str, str]]) -> None:
        values: dict[str, str] = {}
        for name, value in secrets:
            if len(value) >= SHORTEST:
                values |= dict.fromkeys(written(value), name)
        self._values = sorted(values.items(), key=lambda item: -len(item[0]))
        starts = {start for pattern in PATTERNS for start in pattern.starts}
        self._forms: dict[str, list[tuple[str, Pattern, Callable[[str, int], Any]]]] = {}
        for pattern in PATTERNS:
            for start in pattern.starts:
                chars = re.compile(f"[{pattern.chars}]*+").match
                self._forms.setdefault(start[0], []).append((start, pattern, chars))
        free = [v[:8] for v in values]
        # All that ordinary text costs is one search for a start, or for the beginning of one at the
        # end of the text.
        self.alert = re.compile(
            "|".join([_CUT_ESCAPE, *_beginnings(starts, _boundary_before), *_beginnings(free)])
        ).search

    def find(self, text: str, start: int, *, final: bool) -> tuple[int, _Found]:
        """Return where the next key from `start` on begins (-1: nowhere) and what it is."""
        pos = start
        while candidate := self.alert(text, pos):
            at = candidate.start()
            form = self._form(text, at, final=final) if _boundary(text, at) else None
            found = _longer(form, self._value(text, at, final=final))
            if found is None and text[at] == "\\" and not final and _cut_escape(text, at):
                found = _MAYBE
            if found is not None:
                return at, found
            pos = at + 1
        return -1, _MAYBE

    def _value(self, text: str, at: int, *, final: bool) -> _Found | None:
        rest = len(text) - at
        for value, name in self._values:
            if text.startswith(value, at):
                return _Found(at + len(value), f"[redacted {name}]")
            if not final and rest < len(value) and value.startswith(text[at:]):
                return _MAYBE
        return None

    def _form(self, text: str, at: int, *, final: bool) -> _Found | None:
        maybe = None
        for start, pattern, chars in self._forms.get(text[at], ()):
            if text.startswith(start, at):
                end = chars(text, at + len(start)).end()
                if end == len(text) and not final and end - at <= LONGEST:
                    return _Found(-1, chars=chars)
                if end - at > LONGEST or _fits(pattern, text[at + len(start) : end]):
                    return _Found(end, self._label(text[at:end], pattern, start), chars)
            elif not final and start.startswith(text[at:]):
                maybe = _MAYBE
        return maybe

    def _label(self, key: str, pattern: Pattern, start: str) -> str:
        secret = key.removeprefix(start) if pattern.kept else key
        name = next((n for v, n in self._values if v == secret), pattern.name)
        return f"{start if pattern.kept else ''}[redacted {name}]"


def _longer(one: _Found | None, other: _Found | None) -> _Found | None:
    """Return which of two counts: what is undecided, else what reaches further."""
    if one is None or other is None:
        return one or other
    return one if one.end < 0 or (other.end >= 0 and one.end >= other.end) else other


def _boundary(text: str, at: int) -> bool:
    """Whether a form may begin at `at`: no letter or digit stands before it, or one that ends an
    escape of JSON.
    """
    last = text[at - 1 : at]
    return (
        not (last.isascii() and last.isalnum())
        or _after_escape(text, max(0, at - _CONTEXT), at) is not None
    )


def _fits(pattern: Pattern, body: str) -> bool:
    if len(body) < pattern.least:
        return False
    return (
        not pattern.mixed
        or len(body) >= 2 * pattern.least
        or re.search("[A-Z0-9]", body) is not None
    )


# marks the end of a word in the tree; longer words with this beginning need no look of their own
_WHOLE = ""


def _boundary_before(length: int) -> str:
    """Return a pattern that holds where a word begins `length` characters back; `_boundary` decides
    in the end.
    """
    seen = "(?s:.)" * length
    return rf"(?:(?<![A-Za-z0-9]{seen})|(?<=\\[bfnrt]{seen})|(?<=\\u[0-9a-fA-F]{{4}}{seen}))"


def _beginnings(words: Iterable[str], before: Callable[[int], str] = lambda _: "") -> list[str]:
    """Return patterns that find a word of two or more characters, or as much of it as the text
    still has.

    `before(n)` must hold n characters back; it is asked late, because looking behind is what costs.
    """
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for char in word:
            node = node.setdefault(char, {})
        node[_WHOLE] = {}
    found = []
    for first, below in sorted(tree.items()):
        seconds = [
            rf"\Z{before(1)}",
            *(f"{re.escape(c)}{before(2)}{_branches(node)}" for c, node in sorted(below.items())),
        ]
        found.append(f"{re.escape(first)}(?:{'|'.join(seconds)})")
    return found


def _branches(node: dict[str, Any]) -> str:
    if _WHOLE in node:
        return ""
    return (
        r"(?:\Z|"
        + "|".join(re.escape(char) + _branches(below) for char, below in sorted(node.items()))
        + ")"
    )


@lru_cache(maxsize=32)
def _rules(secrets: tuple[tuple[str, str], ...]) -> _Rules:
    return _Rules(secrets)


def _rules_for(secrets: Mapping[str, str] | None) -> _Rules:
    return _rules(tuple(sorted(secrets.items())) if secrets else ())


class Redactor:
    """Filters one stream of text. `secrets` are values by name (see `models.keys.secrets`)."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._rules = _rules_for(secrets)
        self._alert = self._rules.alert
        self._held: list[str] = []
        self._size = 0
        # held is a form, as long as these characters follow
        self._grows: Callable[[str, int], Any] | None = None
        # the rest of a key that was too long to be held
        self._swallows: Callable[[str, int], Any] | None = None
        self._last = ""  # what was decided last; its end is what stands before the next text

    def feed(self, text: str) -> str:
        """Return the text that may pass now."""
        if not self._held and self._swallows is None and self._alert(text) is None:
            if text:
                self._last = text
            return text
        return self._look(text)

    def close(self) -> str:
        """The stream is over: return what was held back."""
        self._swallows = None
        return self._filter("", final=True)

    def _look(self, text: str) -> str:
        if self._swallows is not None:
            end = self._swallows(text, 0).end()
            if end == len(text):
                return ""
            self._swallows, text = None, text[end:]
        elif (
            self._grows is not None
            and self._grows(text, 0).end() == len(text)
            and self._size + len(text) <= LONGEST
        ):
            self._held.append(text)
            self._size += len(text)
            return ""
        return self._filter(text, final=False)

    def _filter(self, text: str, *, final: bool) -> str:
        before = self._last[-_CONTEXT:]
        pos = len(before)
        text = "".join([before, *self._held, text])
        self._held, self._size, self._grows = [], 0, None
        out: list[str] = []
        while pos < len(text):
            begin, found = self._rules.find(text, pos, final=final)
            out.append(text[pos : begin if begin >= 0 else len(text)])
            if begin < 0:
                break
            if found.end < 0:
                self._held, self._size, self._grows = [text[begin:]], len(text) - begin, found.chars
                text = text[:begin]
                break
            out.append(found.label)
            pos = found.end
            if pos == len(text) and not final:
                self._swallows = found.chars
        self._last = text[-_CONTEXT:]
        return "".join(out)


def redact_text(text: str, secrets: Mapping[str, str] | None = None) -> str:
    """Return `text` with every key replaced."""
    if _rules_for(secrets).alert(text) is None:
        return text
    redactor = Redactor(secrets)
    return redactor.feed(text) + redactor.close()


def redact_value(
    value: Any, secrets: Mapping[str, str] | None = None, *, opaque: Container[str] = ()
) -> Any:
    """Return a JSON value with every key replaced in its texts and in the names of its members.
    Nesting may be of any depth.

    Texts that are the base64 of media, and those that are members of a name in `opaque`, stay as
    they are.
    """
    root: list[Any] = [value]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    while todo:
        holder, key = todo.pop()
        held = holder[key]
        if isinstance(held, str):
            holder[key] = held if key in opaque or _media(held) else redact_text(held, secrets)
        elif isinstance(held, dict):
            copy = holder[key] = {
                redact_text(k, secrets) if isinstance(k, str) else k: v for k, v in held.items()
            }
            todo.extend((copy, k) for k in copy)
        elif isinstance(held, list | tuple):
            items = holder[key] = list(held)
            todo.extend((items, n) for n in range(len(items)))
    return root[0]


class Redaction:
    """The filter of one run, for all that it meets: streams of text, values, and the own objects of
    providers.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._secrets = secrets

    def stream(self) -> Redactor:
        """Return a filter for one stream of text."""
        return Redactor(self._secrets)

    def value(self, value: Any) -> Any:
        """Return `value` as `redact_value` does."""
        return redact_value(value, self._secrets)

    def payload(self, value: Any) -> Any:
        """Return a provider's own object: what in it is signed or encrypted stays as it is, for it
        goes back to be checked.
        """
        return redact_value(value, self._secrets, opaque=OPAQUE)

    def fields(self, said: Mapping[str, Any], payloads: Container[str]) -> dict[str, Any]:
        """Return the fields of a part or an event; those in `payloads` are a provider's own."""
        return {
            name: (self.payload if name in payloads else self.value)(value)
            for name, value in said.items()
        }
