"""The contract of a dialect, which teaches a model to write calls, and reads and writes its turns.

Models write calls as parts of their API, as tags or as § markers; the agent knows only this
contract. A dialect module defines an instance as `dialect`. The instance is stateless: each stream
has a parser of its own, which holds the state.

Rules
- `Parser.feed` accepts text in any chunking. The parts do not depend on it, except that a text may
  come as several adjacent parts. Only a possible start of a marker is held back.
- No character is lost, besides markup: the markers of closed blocks, and half a marker at a cut.
- `feed` and `close` never raise, whatever the text.
- Calls run only if an Execute follows them; otherwise the turn gives them an error result. An
  Execute without calls (`<execute>[]</execute>`, a `§EXECUTE` alone) runs nothing.
- CallDelta parts of a text dialect preview a call: a Call of the same index confirms them; if none
  comes, they are void. A reader of parts may ignore them.
- A dialect reads and writes parts and messages (`models`), never events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ..models import CallBlock, Message, OutputSchema, Part, ResultBlock, ToolSpec


class Parser(Protocol):
    """Reads the text of one model turn."""

    stopped: bool  # the turn is over: further text is ignored

    def feed(self, text: str) -> Sequence[Part]:
        """Return the parts that `text` completes."""

    def close(self, *, cut: bool = False) -> Sequence[Part]:
        """End the stream: flush held text and close open blocks.

        A block that lacks its closing marker is `incomplete`. `cut`: the model was stopped. Then an
        unfinished call becomes an incomplete Call, not a Fault or text. Half a marker is dropped,
        but the first character of a marker alone is text.
        """


class Dialect(Protocol):
    """One way in which a model writes thoughts, calls and answers."""

    name: str
    # the request carries the tools, and the provider returns CallDelta and Call parts
    native: bool

    def instructions(self, tools: Sequence[ToolSpec], *, small: bool = False) -> str:
        """Return the system text that teaches protocol and tools ("" if the provider does it).

        For a `small` model the text is brief: such a model learns from example turns (`shots`).
        """

    def shots(self, tools: Sequence[ToolSpec]) -> Sequence[Message]:
        """Return few-shot turns for small models, written for the given tools."""

    def grammar(
        self, tools: Sequence[ToolSpec], *, small: bool = False, answered: bool = False
    ) -> str:
        """Return a grammar under which every call is valid, or "" if the dialect has none.

        The grammar is for llguidance, a library that limits what a local model may write. For a
        `small` model the grammar also keeps thoughts and answers short. `answered`: the run has
        results already.
        """

    def parser(self) -> Parser:
        """Return a parser for one model turn."""

    def assistant(self, thoughts: str, calls: Sequence[CallBlock], text: str) -> str:
        """Write a past step of the assistant: thoughts, then a batch of calls or the answer."""

    def results(self, results: Sequence[ResultBlock]) -> Message:
        """Write the results of a batch as the next message for the model."""


@runtime_checkable
class Typed(Protocol):
    """A dialect that also has a grammar of turns whose answer is JSON; optional."""

    def typed_grammar(
        self,
        tools: Sequence[ToolSpec],
        answer: OutputSchema,
        *,
        small: bool = False,
        answered: bool = False,
    ) -> str:
        """Return the grammar of `Dialect.grammar`, with JSON of the schema as the answer."""
