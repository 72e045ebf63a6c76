"""The `xml` dialect (seed 000): `<think>`, `<execute>[…]</execute>`, `<results>[…]</results>`.

Bare text is the answer. Results are a user message with one JSON entry per call, in call order
(seed 000, "Storage → Messages").

Rule: text written into a block can neither close it nor open another (see `render`). Answers are
written unchanged, but for lone surrogates.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..models import CallBlock, Message, ResultBlock, ToolSpec, text_message
from ..wire import replace_surrogates
from . import grammar, render
from .base import Parser
from .tags import ThoughtTags
from .text_dialect import TextDialect
from .xml_reader import XmlParser

_MARKERS = """\
<think>short reasoning</think>
<execute>
[{"name": "tool name", "args": {"argument": "value"}}]
</execute>"""

_RULES = """\
- To call tools, write one <execute> block and stop: it is a JSON array with one object per call. The calls run at once, possibly together.
- The answer of the system is a <results> block with one entry per call, in the same order. Only the system writes <results>;
  never write one yourself and never guess what a tool would return.
- The JSON is strict: double quotes, no comments, no comma after the last item, a line break inside a string as \\n. "args" is always
  there, {} if a tool needs none."""


class Xml(TextDialect):
    """The dialect whose markers are tags around text or JSON."""

    name = "xml"
    markers = _MARKERS
    plain_markers = "one marker:\n\n<think>short reasoning</think>"
    rules = _RULES
    answer = "as plain text (Markdown) without a marker."
    last = " A reply without <execute> ends your turn."

    def tagged_parser(self, tags: ThoughtTags) -> Parser:
        """Return a parser that also reads thought tags."""
        return XmlParser(tags)

    def turn_rules(self, tools: Sequence[ToolSpec]) -> list[str]:
        """Return the rules of a turn: a thought, then a batch of calls or the answer."""
        if not tools:
            return ['start: "<think>" thought "</think>\\n\\n" reply']
        return [
            'start: "<think>" ( plan "</think>\\n\\n" batch | settled "</think>\\n\\n" reply )',
            'batch: "<execute>\\n" calls "\\n</execute>"',
            f"calls: {grammar.write_json_term(grammar.make_batch_schema(tools))}",
        ]

    def assistant(self, thoughts: str, calls: Sequence[CallBlock], text: str) -> str:
        """Write a step: `<think>`, the text, then the batch."""
        pieces = []
        if thoughts:
            inside = replace_surrogates(thoughts).replace("</think>", r"<\/think>")
            pieces.append(f"<think>{inside}</think>")
        if text:
            pieces.append(replace_surrogates(text))
        if calls:
            batch = render.write_json([render.make_call_value(call) for call in calls])
            pieces.append(f"<execute>\n{batch}\n</execute>")
        return "\n\n".join(pieces)

    def results(self, results: Sequence[ResultBlock]) -> Message:
        """Write the results of a batch."""
        entries = render.write_json([render.make_result_value(result) for result in results])
        return text_message("user", f"<results>\n{entries}\n</results>")


dialect = Xml()
