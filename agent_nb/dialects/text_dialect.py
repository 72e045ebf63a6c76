"""The base of the dialects `xml` and `section`: instructions, example turns and grammars.

Both dialects are one protocol with different markers, so their texts are written once.
`tests/dialects/snapshots` has the complete texts that models receive.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from ..models import Message, OutputSchema, ToolSpec
from . import examples, grammar, render
from .base import Dialect, Parser
from .tags import NO_TAGS, ThoughtTags

_WITH_TOOLS = """\
You answer the user, and you can call tools. The text you write is read by a program that knows these markers:

{markers}

Rules
{rules}
- A result with the status "error" says what was wrong: correct the call, or tell the user.
- When you know the answer, write it {answer}{last}

Tools
{tools}"""

_WITHOUT_TOOLS = """\
You answer the user. The text you write is read by a program that knows {plain_markers}

There are no tools. Write your answer {answer}"""


class TextDialect(Dialect):
    """A dialect whose turns are text with markers.

    The texts below fill the slots of the same names in the instructions at the head of this file.
    """

    native = False
    markers: str  # a sample turn with calls and, if the answer has markers, one with the answer
    plain_markers: str  # an introduction and a sample turn, for a run without tools
    rules: str  # a list: how calls are written, and results read
    answer: str  # where the answer is written, the end of "write it …"
    last = ""  # what else ends a turn, behind `answer`
    closing = ""  # what follows the answer in an example

    def instructions(self, tools: Sequence[ToolSpec], *, small: bool = False) -> str:
        """Return the protocol and the tools as system text; for a `small` model only the tools."""
        if small:
            return render.describe_briefly(tools)
        if not tools:
            return _WITHOUT_TOOLS.format(plain_markers=self.plain_markers, answer=self.answer)
        return _WITH_TOOLS.format(
            markers=self.markers,
            rules=self.rules,
            answer=self.answer,
            last=self.last,
            tools=render.describe_tools(tools),
        )

    def shots(self, tools: Sequence[ToolSpec]) -> Sequence[Message]:
        """Return example turns for a few tools: a call, its result and the answer."""
        return examples.write_shots(self, tools, closing=self.closing)

    def grammar(
        self, tools: Sequence[ToolSpec], *, small: bool = False, answered: bool = False
    ) -> str:
        """Return the llguidance grammar of one turn: a thought, then valid calls or an answer."""
        rules = grammar.write_shared_rules(tools, small=small, has_results=answered)
        return "\n".join([*rules, *self.turn_rules(tools), ""])

    def typed_grammar(
        self,
        tools: Sequence[ToolSpec],
        answer: OutputSchema,
        *,
        small: bool = False,
        answered: bool = False,
    ) -> str:
        """Return the grammar of a turn whose answer is JSON of the schema."""
        rules = grammar.write_shared_rules(tools, small=small, has_results=answered, reply=answer)
        return "\n".join([*rules, *self.turn_rules(tools), ""])

    def parser(self) -> Parser:
        """Return a parser for one model turn."""
        return self.tagged_parser(NO_TAGS)

    @abstractmethod
    def tagged_parser(self, tags: ThoughtTags) -> Parser:
        """Return a parser that also reads thought tags."""

    @abstractmethod
    def turn_rules(self, tools: Sequence[ToolSpec]) -> list[str]:
        """Return the rules of a turn, which refer to those of `grammar.write_shared_rules`."""
