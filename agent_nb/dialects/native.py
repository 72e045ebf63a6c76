"""The `native` dialect: the request carries the tools, the provider returns calls as parts.

With it the agent treats providers with and without native calls alike. All text is answer, since
the parser knows no markers (`thinking` adds thought tags).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..models import CallBlock, Message, ResultBlock, ToolSpec
from .base import Parser
from .markers import MarkerParser
from .tags import NO_TAGS, ThoughtTags


class Native:
    """Teaches and writes nothing: the provider's encoder does both."""

    name = "native"
    native = True

    def instructions(self, tools: Sequence[ToolSpec], *, small: bool = False) -> str:
        """Return "": the request carries the tools."""
        return ""

    def shots(self, tools: Sequence[ToolSpec]) -> Sequence[Message]:
        """Return no shots."""
        return ()

    def grammar(
        self, tools: Sequence[ToolSpec], *, small: bool = False, answered: bool = False
    ) -> str:
        """Return "": this dialect has no grammar."""
        return ""

    def parser(self) -> Parser:
        """Return a parser that passes text through."""
        return self.tagged_parser(NO_TAGS)

    def tagged_parser(self, tags: ThoughtTags) -> Parser:
        """Return a parser that takes thought tags out of the text."""
        return MarkerParser("", (), tags)

    def assistant(self, thoughts: str, calls: Sequence[CallBlock], text: str) -> str:
        """Return the answer; thoughts and calls are blocks of the message in this dialect."""
        return text

    def results(self, results: Sequence[ResultBlock]) -> Message:
        """Return the results as blocks of a tool message."""
        return Message("tool", tuple(results))


dialect = Native()
