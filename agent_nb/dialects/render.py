"""What the text dialects write: JSON without markers, and lists of tools.

Arguments and results may contain a dialect's markers, by chance or on purpose; read as markers,
they would end a block or forge one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..models import CallBlock, ResultBlock, ToolSpec

_OPENING = re.compile(r"<(?=(?:think|thinking|execute|results|respond|end)\b)|§")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DEEPEST = 4  # the most references followed in a row, and levels of a nested type that are named
_MOST_TYPES = 500  # in one parameter: types that refer to themselves multiply with each level


def write_json(value: Any) -> str:
    """Return `value` as one line of JSON that can neither close a block nor look like a marker.

    `</` is written `<\\/`; each § and the first character of an opening marker are written `\\u…`,
    and so are lone surrogates, which UTF-8 lacks. NaN and infinity become null, an object that JSON
    lacks becomes its `str`.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:  # NaN or infinity, which JSON lacks: they become null
        loose = json.dumps(value, ensure_ascii=False, default=str)
        text = json.dumps(json.loads(loose, parse_constant=lambda _: None), ensure_ascii=False)
    text = _OPENING.sub(lambda m: f"\\u{ord(m[0]):04x}", text.replace("</", "<\\/"))
    return text if text.isascii() else _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def make_call_value(call: CallBlock) -> dict[str, Any]:
    """Return a call as both text dialects write it."""
    return {"name": call.name, "args": call.args}


def make_result_value(result: ResultBlock) -> dict[str, Any]:
    """Return a result as both text dialects write it (seed 000, results), with printed output."""
    content = result.content if result.value is None else result.value
    printed = {"printed": result.printed} if result.printed else {}
    return {
        "tool": result.name,
        "status": "error" if result.error else "success",
        "content": content,
        **printed,
    }


def describe_tools(tools: Sequence[ToolSpec]) -> str:
    """Return the tools as a list: signature, description and parameters."""
    return "\n".join(_describe_tool(t) for t in tools)


def describe_briefly(tools: Sequence[ToolSpec]) -> str:
    """Return the system text for a small model, which learns the markers from example turns."""
    if not tools:
        return "You are a helpful assistant. Think in one short sentence, then answer in one short paragraph."
    lines = [
        f"{t.name}({', '.join(list_properties(t))}): {cut_sentence(t.description)}." for t in tools
    ]
    return "You are an agent with tools. " + " ".join(lines)


def cut_sentence(text: str) -> str:
    """Return the first sentence of a text, on one line and without its period."""
    return " ".join(text.split()).split(". ")[0].rstrip(".")


def _describe_tool(tool: ToolSpec) -> str:
    """Return signature and description of a tool, and a line for each described parameter."""
    root, properties = tool.parameters, list_properties(tool)
    required = root.get("required", ())
    fields = (
        f"{name}{'' if name in required else '?'}: {name_type(schema, root)}{_write_default(schema)}"
        for name, schema in properties.items()
    )
    description = " ".join(tool.description.split()) or "no description"
    lines = [f"- {tool.name}({', '.join(fields)}): {description}"]
    for name, schema in properties.items():
        if schema.get("description"):
            lines.append(f"    {name}: {' '.join(str(schema['description']).split())}")
    return "\n".join(lines)


def list_properties(tool: ToolSpec) -> dict[str, dict[str, Any]]:
    """Return the schemas of a tool's parameters by name."""
    properties = tool.parameters.get("properties", {})
    if isinstance(properties, dict):
        return {n: s if isinstance(s, dict) else {} for n, s in properties.items()}
    return {}


def _write_default(schema: Mapping[str, Any]) -> str:
    return f" = {write_json(schema['default'])}" if schema.get("default") is not None else ""


def follow_reference(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a local `$ref` (`#/$defs/NAME`); an unknown one means any value."""
    followed = 0
    while (ref := schema.get("$ref")) is not None and followed < _DEEPEST:
        definition = root.get("$defs", {}).get(str(ref).rsplit("/", 1)[-1], {})
        schema = definition if isinstance(definition, dict) else {}
        followed += 1
    return schema


def name_type(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return a schema in few words: `string`, `"a" | "b"`, `array of {x: number}` …"""
    return _name_type(schema, root, 0, iter(range(_MOST_TYPES)))


def _name_type(
    schema: Mapping[str, Any], root: Mapping[str, Any], depth: int, budget: Iterator[int]
) -> str:
    """Return the name of a type inside `depth` others; `budget`: one item for each further name."""
    schema = follow_reference(schema, root)
    if depth > _DEEPEST or next(budget, None) is None:
        return "any"
    if "const" in schema:
        return write_json(schema["const"])
    if isinstance(schema.get("enum"), list):
        return " | ".join(write_json(v) for v in schema["enum"])
    # equal names are listed once: a model reads "string | string" as two different things
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return " | ".join(
                dict.fromkeys(
                    _name_type(s, root, depth + 1, budget)
                    for s in schema[key]
                    if isinstance(s, dict)
                )
            )
    kind = schema.get("type", "any")
    if kind == "array":
        items = schema.get("items")
        if isinstance(items, dict) and items:
            return f"array of {_name_type(items, root, depth + 1, budget)}"
        return "array"
    if kind == "object" and isinstance(schema.get("properties"), dict):
        required = schema.get("required", ())
        fields = (
            f"{n}{'' if n in required else '?'}: {_name_type(s, root, depth + 1, budget)}"
            for n, s in schema["properties"].items()
        )
        return "{" + ", ".join(fields) + "}"
    return " | ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
