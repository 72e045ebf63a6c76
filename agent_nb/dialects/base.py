"""The contract of a dialect: how a model is told to write a turn, how past turns are written for
it, how its text is read.

A dialect module offers an instance as `dialect`. The instance is stateless; per-stream state lives
in the parser it makes.

Rules
- `Parser.feed` takes text in any chunking and returns parts at once; only what may be the start of
  a marker is held back.
- The parts of a stream do not depend on its chunking (adjacent Text or Thought parts of one block
  merged).
- Every character of the input is in some part, or is markup of a block that was closed, or half a
  marker at a cut.
- No exception escapes `feed` or `close`, whatever the text.
- Calls run only when an Execute follows them. One that has none when the stream ends never runs:
  the turn gives it an error result.
- CallDelta parts of a text dialect are provisional: a Call of the same index confirms them, a Fault
  revokes them. They may be ignored.
- An Execute without calls is possible (`<execute>[]</execute>`, `§EXECUTE` after call text that is
  no call): nothing runs.
- When `stopped` is true the turn is over: the reader stops reading the model, and further text is
  ignored.
- A dialect knows parts and messages, never events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..models.messages import CallBlock, Message, ResultBlock, ToolSpec
from ..models.parts import Part


class Parser(Protocol):
    """Reads the text of one model turn."""

    stopped: bool

    def feed(self, text: str) -> Sequence[Part]:
        """Return the parts that `text` completes: Text, Thought, Close, Call, Execute,
        End, Fault.
        """

    def close(self, *, cut: bool = False) -> Sequence[Part]:
        """The stream is over: flush what was held back and close what is open, with
        `incomplete=True` where a closing marker should have come. `cut`: somebody or something
        stopped the model, so a call it was writing is an incomplete Call, not a malformed one or
        text, and what may be half a marker is dropped.
        """


class Dialect(Protocol):
    """One way of writing a turn."""

    name: str
    # tools travel in the request, calls come back as CallDelta/Call parts of the provider
    native: bool

    def instructions(self, tools: Sequence[ToolSpec], *, small: bool = False) -> str:
        """Return the system text that teaches the protocol and the tools ("" when the provider
        does); in few words for a `small` model, which learns from the shots.
        """

    def shots(self, tools: Sequence[ToolSpec]) -> Sequence[Message]:
        """Return few-shot turns for small models, written with the given tools."""

    def grammar(
        self, tools: Sequence[ToolSpec], *, small: bool = False, answered: bool = False
    ) -> str:
        """Return an llguidance grammar under which every call is valid ("" when there is none); for
        a `small` model one that also keeps its thoughts and answers short and fits the moment:
        `answered` when results of this run are there.
        """

    def parser(self) -> Parser:
        """Return a parser for one model turn."""

    def assistant(self, thoughts: str, calls: Sequence[CallBlock], text: str) -> str:
        """Write one past step of the assistant (text dialects): thoughts, then a batch of calls or
        the answer.
        """

    def results(self, results: Sequence[ResultBlock]) -> Message:
        """Write the results of a batch as the message that the model reads next."""
