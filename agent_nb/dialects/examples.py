"""Makes example turns ("shots") for small models from the tools of an agent.

A model of a hundred million parameters copies the turns before its own. So example turns show the
model the agent's tools with plausible arguments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..models import CallBlock, Message, ResultBlock, ToolSpec, text_message
from . import render
from .base import Dialect
from .grammar import CONCLUSION, NO_TOOL, PLAN

MOST_TOOLS = 3
# a schema of a stranger may contain itself, or demand a value of any size
_DEEPEST = 4  # levels of nested values; alternatives that are followed in a row
_MOST_ITEMS, _LONGEST_TEXT = 12, 1000  # items of a list or object; characters

# parameter name -> a plausible value
PLAUSIBLE: dict[str, Any] = {
    "path": "docs", "folder": "docs", "directory": "docs", "dir": "docs", "file": "notes.txt",
    "filename": "notes.txt", "expression": "3 * 4", "code": "print(6 * 7)", "command": "ls",
    "query": "solar power", "question": "solar power", "q": "solar power",
    "url": "https://example.org", "city": "Paris", "location": "Paris", "place": "Paris",
    "name": "Ada", "text": "hello", "content": "hello", "message": "hello", "language": "French",
    "pattern": "total", "date": "2025-01-31", "a": 3, "b": 4, "x": 3, "y": 4, "n": 3, "count": 3,
    "limit": 3, "steps": 3, "seconds": 2,
}  # fmt: skip

# name of a call's first argument -> a plausible result of the tool, and the answer to the user
OUTCOMES: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("path", "folder", "directory"),
        ("summer.txt  12 B\nwinter.txt  9 B", "I found two files: summer.txt and winter.txt."),
    ),
    **dict.fromkeys(("file", "filename"), ("Buy milk.", "The file says: Buy milk.")),
    "expression": ("12", "3 * 4 is 12."),
    "code": ("42", "The code prints 42."),
    "command": ("notes.txt", "The command shows notes.txt."),
    "city": ("18 degrees", "In Paris it is 18 degrees."),
}


class Example(msgspec.Struct, frozen=True):
    """A question, and the turns up to its answer; without `call` it is answered at once.

    `thought` comes before the call or, without `call`, before the answer. `conclusion` comes
    between the result of the call and the answer.
    """

    question: str
    thought: str
    answer: str
    call: CallBlock | None = None
    result: ResultBlock | None = None
    conclusion: str = ""


_PLAIN = Example(
    "What is a cat? Answer shortly.",
    "The user asks what a cat is.",
    "A cat is a small furry animal that many people keep.",
)
_GREETING = Example("Thank you!", NO_TOOL, "You are welcome.")


def write_shots(dialect: Dialect, tools: Sequence[ToolSpec], *, closing: str) -> list[Message]:
    """Return the examples for `tools` as messages; `closing` (the end of a turn) ends an answer."""
    return [m for example in make_examples(tools) for m in _write_shot(dialect, example, closing)]


def _write_shot(dialect: Dialect, example: Example, closing: str) -> Iterator[Message]:
    yield text_message("user", example.question)
    thought = example.thought
    if example.call is not None and example.result is not None:
        yield text_message("assistant", dialect.assistant(thought, (example.call,), ""))
        yield dialect.results((example.result,))
        thought = example.conclusion
    yield text_message("assistant", dialect.assistant(thought, (), example.answer) + closing)


def make_examples(tools: Sequence[ToolSpec]) -> list[Example]:
    """Return the examples for these tools; without tools, one question with its answer.

    The first example needs no tool; then each of the first `MOST_TOOLS` tools has one.
    """
    if not tools:
        return [_PLAIN]
    return [_GREETING, *(_make_example(t, n) for n, t in enumerate(tools[:MOST_TOOLS], 1))]


def _make_example(tool: ToolSpec, number: int) -> Example:
    """Return an example that calls `tool`; `number` makes its call id unique."""
    args = make_args(tool)
    first = next(iter(args), "")
    result, answer = OUTCOMES.get(first, ("12", f"The result of {tool.name} is 12."))
    return Example(
        question=_write_question(tool, args),
        thought=f"{PLAN}{tool.name}.",
        answer=answer,
        call=CallBlock(f"example_{number}", tool.name, args),
        result=ResultBlock(f"example_{number}", tool.name, result),
        conclusion=CONCLUSION,
    )


def _write_question(tool: ToolSpec, args: Mapping[str, Any]) -> str:
    """Return the question: the first sentence of the tool's description, and the arguments."""
    purpose = render.cut_sentence(tool.description) or f"Use {tool.name}"
    write = render.write_json
    values = [str(v) if isinstance(v, str | int | float) else write(v) for v in args.values()]
    return f"{purpose}: {', '.join(values)}" if values else f"{purpose}."


def make_args(tool: ToolSpec) -> dict[str, Any]:
    """Return plausible arguments for a tool: the required ones, else the first optional one.

    A value is one in the schema (`examples`, `enum`, `const`, `default`), else that for its name in
    `PLAUSIBLE` if the type fits, else a constant of its type.
    """
    properties = render.list_properties(tool)
    required = [n for n in tool.parameters.get("required", ()) if n in properties]
    chosen = required or list(properties)[:1]
    return {n: _make_value(properties[n], tool.parameters, n) for n in chosen}


def _make_value(
    schema: Mapping[str, Any], root: Mapping[str, Any], name: str = "", depth: int = 0
) -> Any:
    """Return a plausible value for `schema`, within sensible bounds; patterns are ignored.

    `root`: the schema with the definitions. `name`: the parameter's name. `depth`: how many values
    enclose this one.
    """
    # a loop, because a schema may be a case of itself
    for _ in range(_DEEPEST):
        schema = render.follow_reference(schema, root)
        suggested = _value_from_schema(schema)
        if suggested is not None:
            return suggested
        case = _first_case(schema)
        if schema.get("type") is not None or case is None:
            break
        schema = case
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((k for k in kind if k != "null"), "null")
    return _make_of_type(str(kind), schema, root, name, depth) if depth < _DEEPEST else None


def _first_case(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first alternative of a schema that is not null, None if it has none."""
    cases = (case for key in ("anyOf", "oneOf", "allOf") for case in schema.get(key, ()))
    return next((c for c in cases if isinstance(c, dict) and c.get("type") != "null"), None)


def _value_from_schema(schema: Mapping[str, Any]) -> Any:
    """Return a value that the schema itself contains, None if it has none."""
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    value = schema.get("const", schema.get("default"))
    # an empty default, or the current folder, shows the model nothing to copy
    return None if value in ("", ".", None) else value


def _make_of_type(
    kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], name: str, depth: int
) -> Any:
    """Return a value of the JSON type `kind`, a text for an unknown type; see `_make_value`."""
    if kind == "null":
        return None
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        return _make_number(schema, name)
    if kind == "array":
        items = schema.get("items")
        # an item of "names" gets the value of a parameter "name"
        item_name, item_schema = name.removesuffix("s"), items if isinstance(items, dict) else {}
        item = _make_value(item_schema, root, item_name, depth + 1)
        return [item] * min(max(1, int(schema.get("minItems", 1))), _MOST_ITEMS)
    if kind == "object":
        properties = schema.get("properties", {})
        required = [n for n in schema.get("required", ()) if n in properties]
        return {n: _make_value(properties[n], root, n, depth + 1) for n in required[:_MOST_ITEMS]}
    return _make_text(schema, name)


def _make_text(schema: Mapping[str, Any], name: str) -> str:
    value = PLAUSIBLE.get(name.lower())
    text = value if isinstance(value, str) else "example"
    text = text.ljust(min(int(schema.get("minLength", 0)), _LONGEST_TEXT), "a")
    return text[: int(schema.get("maxLength", len(text)))]


def _make_number(schema: Mapping[str, Any], name: str) -> Any:
    """Return a plausible number, moved to the nearest bound if it is outside of the bounds.

    Its distance from an exclusive bound is 1; if the bounds leave less, it is their middle.
    """
    value = PLAUSIBLE.get(name.lower())
    number = value if isinstance(value, int) else 3
    above = schema.get("exclusiveMinimum", -math.inf)
    below = schema.get("exclusiveMaximum", math.inf)
    low, high = schema.get("minimum", above + 1), schema.get("maximum", below - 1)
    if low > high:  # such as above 0 and below 1
        return (schema.get("minimum", above) + schema.get("maximum", below)) / 2
    return max(low, min(number, high))
