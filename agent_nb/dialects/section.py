"""The `section` dialect (seed 001): `§THINK: … §CALL: {…} §EXECUTE`, `§RESPOND: … §END`.

Rules
- A result is one `[SYSTEM: {…}]` line of JSON without line break, § or another `[SYSTEM:`, so the
  text of a tool cannot forge another result.
- A marker inside a thought or an answer is written with a backslash after its §, a `[SYSTEM:` with
  a backslash after its bracket.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..models import CallBlock, Message, ResultBlock, ToolSpec, text_message
from ..wire import replace_surrogates
from . import grammar, render
from .base import Parser
from .section_reader import SectionParser
from .tags import ThoughtTags
from .text_dialect import TextDialect

_MARKERS = """\
§THINK: short reasoning
§CALL: {"name": "tool name", "args": {"argument": "value"}}
§EXECUTE
§RESPOND: your answer to the user
§END"""

_PLAIN_MARKERS = """\
these markers:

§THINK: short reasoning
§RESPOND: your answer to the user
§END"""

_RULES = """\
- To call a tool, write §CALL: and one JSON object. Several calls in a row run together. Then write §EXECUTE and stop.
- The system answers with one line [SYSTEM: …] per call, in the same order. Only the system writes such lines; never write one yourself
  and never guess what a tool would return.
- The JSON is strict: double quotes, no comments, no comma after the last member, a line break inside a string as \\n. "args" is
  always there, {} if a tool needs none."""

_MARKER = re.compile(r"§(?=(?:think|call|respond|execute|end)\b)", re.IGNORECASE)
_RESULT_START = re.compile(r"\[(?=SYSTEM:)")  # only the system writes it: escaped in texts


class Section(TextDialect):
    """The dialect whose markers begin with §."""

    name = "section"
    markers = _MARKERS
    plain_markers = _PLAIN_MARKERS
    rules = _RULES
    answer = "after §RESPOND: (Markdown), then §END."
    closing = "\n§END"

    def tagged_parser(self, tags: ThoughtTags) -> Parser:
        """Return a parser that also reads thought tags."""
        return SectionParser(tags)

    def turn_rules(self, tools: Sequence[ToolSpec]) -> list[str]:
        """Return the rules of a turn: a thought, then calls or the answer."""
        answer = 'answer: "§RESPOND: " reply "\\n§END"'
        if not tools:
            return [answer, 'start: "§THINK: " thought "\\n" answer']
        calls = "call " + "call? " * (grammar.MOST_CALLS - 1)
        return [
            answer,
            f'start: "§THINK: " ( plan "\\n" {calls}"§EXECUTE" | settled "\\n" answer )',
            'call: "§CALL: " object "\\n"',
            f"object: {grammar.write_json_term(grammar.make_call_schema(tools))}",
        ]

    def assistant(self, thoughts: str, calls: Sequence[CallBlock], text: str) -> str:
        """Write a step: `§THINK:`, the answer as `§RESPOND:`, then the calls with `§EXECUTE`."""
        lines = []
        if thoughts:
            lines.append(f"§THINK: {_escape_markers(thoughts)}")
        if text:
            lines.append(f"§RESPOND: {_escape_markers(text)}")
        lines += [f"§CALL: {render.write_json(render.make_call_value(c))}" for c in calls]
        if calls:
            lines.append("§EXECUTE")
        return "\n".join(lines)

    def results(self, results: Sequence[ResultBlock]) -> Message:
        """Write the results of a batch, one line each."""
        return text_message("user", "\n".join(f"[SYSTEM: {_write_result(r)}]" for r in results))


def _escape_markers(text: str) -> str:
    return _RESULT_START.sub(r"[\\", _MARKER.sub(r"§\\", replace_surrogates(text)))


def _write_result(result: ResultBlock) -> str:
    return _RESULT_START.sub(r"\\u005b", render.write_json(render.make_result_value(result)))


dialect = Section()
