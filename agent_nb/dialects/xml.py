"""The `xml` dialect (seed 000): `<think>`, `<execute>[…]</execute>`, `<results>[…]</results>`.

Bare text is the answer. This module teaches and writes the dialect; `xml_reader` reads it.

Rules
- Results are a user message with one JSON entry per call, in call order (seed 000, "Storage →
  Messages").
- Text written into a block can neither close it nor open another (see `render`). Answers are
  written unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..models.messages import (
    CallBlock,
    Message,
    OutputSchema,
    ResultBlock,
    ToolSpec,
    text_message,
)
from ..wire.surrogates import encodable
from . import grammar, render
from .base import Parser
from .examples import shots
from .markers import ThoughtTags
from .xml_reader import XmlParser

_PROTOCOL = """\
You answer the user, and you can call tools. The text you write is read by a program that knows these markers:

<think>short reasoning</think>
<execute>
[{"name": "tool name", "args": {"argument": "value"}}]
</execute>

Rules
- To call tools, write one <execute> block and stop: it is a JSON array with one object per call. The calls run at once, possibly together.
- The answer of the system is a <results> block with one entry per call, in the same order. Only the system writes <results>;
  never write one yourself and never guess what a tool would return.
- The JSON is strict: double quotes, no comments, no comma after the last item, a line break inside a string as \\n. "args" is always
  there, {} if a tool needs none.
- A result with the status "error" says what was wrong: correct the call, or tell the user.
- When you know the answer, write it as plain text (Markdown) without a marker. A reply without <execute> ends your turn.

Tools
"""

_PLAIN = """\
You answer the user. The text you write is read by a program that knows one marker:

<think>short reasoning</think>

There are no tools. Write your answer as plain text (Markdown) without a marker."""


class Xml:
    """XML markers with JSON payloads."""

    name = "xml"
    native = False

    def instructions(self, tools: Sequence[ToolSpec], *, small: bool = False) -> str:
        """Return the protocol and the tools as system text."""
        if small:
            return render.brief(tools)
        return _PROTOCOL + render.tool_lines(tools) if tools else _PLAIN

    def shots(self, tools: Sequence[ToolSpec]) -> Sequence[Message]:
        """Return example turns for a few tools: a call, its result and the answer."""
        return shots(self, tools)

    def grammar(
        self, tools: Sequence[ToolSpec], *, small: bool = False, answered: bool = False
    ) -> str:
        """Return the llguidance grammar of a turn: a thought, then valid calls or an answer."""
        return _grammar(tools, grammar.head(tools, small=small, answered=answered))

    def typed_grammar(
        self,
        tools: Sequence[ToolSpec],
        answer: OutputSchema,
        *,
        small: bool = False,
        answered: bool = False,
    ) -> str:
        """Return the grammar of a turn whose answer is JSON of the schema."""
        head = grammar.head(tools, small=small, answered=answered, answer=answer)
        return _grammar(tools, head)

    def parser(self) -> Parser:
        """Return a parser for one model turn."""
        return XmlParser()

    def tagged_parser(self, tags: ThoughtTags) -> Parser:
        """Return a parser that also reads thought tags."""
        return XmlParser(tags)

    def assistant(self, thoughts: str, calls: Sequence[CallBlock], text: str) -> str:
        """Write a step: `<think>`, the text, then the batch."""
        pieces = []
        if thoughts:
            inside = encodable(thoughts).replace("</think>", r"<\/think>")
            pieces.append(f"<think>{inside}</think>")
        if text:
            pieces.append(encodable(text))
        if calls:
            pieces.append(
                f"<execute>\n{render.json_text([render.call_value(c) for c in calls])}\n</execute>"
            )
        return "\n\n".join(pieces)

    def results(self, results: Sequence[ResultBlock]) -> Message:
        """Write the results of a batch."""
        return text_message(
            "user",
            f"<results>\n{render.json_text([render.result_value(r) for r in results])}\n</results>",
        )


def _grammar(tools: Sequence[ToolSpec], rules: Sequence[str]) -> str:
    if not tools:
        return "\n".join([*rules, 'start: "<think>" thought "</think>\\n\\n" reply', ""])
    return "\n".join(
        [
            *rules,
            'start: "<think>" ( plan "</think>\\n\\n" batch | settled "</think>\\n\\n" reply )',
            'batch: "<execute>\\n" calls "\\n</execute>"',
            f"calls: {grammar.as_json(grammar.calls_schema(tools))}",
            "",
        ]
    )


dialect = Xml()
