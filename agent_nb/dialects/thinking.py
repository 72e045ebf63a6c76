"""The `thinking` filter (seed 004): `<think>…</think>`, `<thinking>…</thinking>`, over any dialect.

Reasoning models write their thoughts into the text, whatever the dialect. Used as a dialect,
`thinking` is this filter over `native`, and its tags count anywhere.

Rules
- The usual tags count only at the start of a turn, where a reasoning model writes them; later they
  are part of the answer. Tags that the user named count anywhere outside code fences.
- In a thought only its closing tag counts: no call runs from inside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..errors import UsageError
from ..models import Close, Part, Text, Thought
from . import native
from .base import Dialect, Parser, Typed
from .markers import MarkerParser
from .tags import NO_TAGS, Taggable, ThoughtTags

TAGS = ("think", "thinking")
ANYWHERE = ThoughtTags(anywhere=TAGS)


class FilterParser:
    """Takes thoughts out of the text for a parser that does not know the tags."""

    def __init__(self, wrapped: Parser, tags: ThoughtTags) -> None:
        self._wrapped = wrapped
        self._filter = MarkerParser("", (), tags)
        self._part_type: type[Part] = Text
        self.stopped = False

    def feed(self, text: str) -> Sequence[Part]:
        """Return the parts that `text` completes."""
        return self._pass_on(self._filter.feed(text))

    def close(self, *, cut: bool = False) -> Sequence[Part]:
        """Flush and close both parsers."""
        return [*self._pass_on(self._filter.close(cut=cut)), *self._wrapped.close(cut=cut)]

    def _pass_on(self, parts: Sequence[Part]) -> list[Part]:
        out: list[Part] = []
        for part in parts:
            if self._wrapped.stopped:
                break
            if isinstance(part, Text):
                self._part_type = Text
                out.extend(self._wrapped.feed(part.text))
            elif isinstance(part, Thought):
                self._part_type = Thought
                out.append(part)
            elif not isinstance(part, Close) or self._part_type is Thought:
                out.append(part)  # the inner parser closes its text itself
        self.stopped = self._wrapped.stopped
        return out


class Thinking:
    """A dialect whose parser also reads thought tags; all else is the wrapped dialect's."""

    def __init__(self, wrapped: Dialect, tags: ThoughtTags, *, name: str = "") -> None:
        self.name = name or wrapped.name
        self.native = wrapped.native
        self._wrapped = wrapped
        self._tags = tags
        self.instructions, self.shots = wrapped.instructions, wrapped.shots
        self.grammar = wrapped.grammar
        self.assistant, self.results = wrapped.assistant, wrapped.results
        self.typed_grammar = wrapped.typed_grammar if isinstance(wrapped, Typed) else _no_grammar

    def over(self, inner: Dialect, named: Sequence[str] = ()) -> Dialect:
        """Return `inner` with this filter, for the text of a provider.

        The usual tags count at the start of a turn, those that the user `named` anywhere. A method
        only because the agent loads this file's `dialect`. Raises UsageError as `thinking` does.
        """
        return thinking(inner, ThoughtTags(leading=TAGS, anywhere=tuple(named)))

    def with_tags(self, tags: ThoughtTags) -> Dialect:
        """Return the same dialect with `tags` beside its own."""
        both = ThoughtTags(
            tuple(dict.fromkeys((*self._tags.leading, *tags.leading))),
            tuple(dict.fromkeys((*self._tags.anywhere, *tags.anywhere))),
        )
        return Thinking(self._wrapped, both, name=self.name)

    def parser(self) -> Parser:
        """Return a parser of the wrapped dialect that also reads the thought tags."""
        if isinstance(self._wrapped, Taggable):
            return self._wrapped.tagged_parser(self._tags)
        return FilterParser(self._wrapped.parser(), self._tags)


def _no_grammar(*_: Any, **__: Any) -> str:
    return ""


def thinking(wrapped: Dialect, tags: ThoughtTags = ANYWHERE) -> Dialect:
    """Return `wrapped` with a filter for `tags` around it; without tags, `wrapped` itself.

    If `wrapped` is a filter, the result has its tags and `tags`. Raises UsageError if a tag is not
    a name of letters, digits, `_`, `.` and `-`.
    """
    for tag in (*tags.leading, *tags.anywhere):
        if not re.fullmatch(r"[A-Za-z_][\w.-]*", tag):
            raise UsageError(
                f"{tag!r} is not a tag name. Write it without brackets, for example 'thinking'."
            )
    if isinstance(wrapped, Thinking):
        return wrapped.with_tags(tags)
    return Thinking(wrapped, tags) if tags != NO_TAGS else wrapped


dialect = Thinking(native.dialect, ANYWHERE, name="thinking")
