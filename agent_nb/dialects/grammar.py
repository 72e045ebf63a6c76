"""llguidance grammars, under which even a very small model writes only valid calls.

Why: the tools' JSON schemas are part of the grammar (`%json`), so names, types and enumerations are
enforced while the model writes.

Rules
- Only keywords that llguidance knows are passed on, so that a user's schema cannot make the grammar
  invalid; tools validate anyway.
- Objects allow no additional members unless their schema says so. Unbounded texts, numbers and
  arrays get a bound: a small model that repeats itself would otherwise never end.
- Definitions (`$defs`) move to the root, prefixed by their tool's number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..models import OutputSchema, ToolSpec
from .recursion import bounded_depth

THOUGHT = r"/[^<§\n]{5,400}/"
ANSWER = r"/[^<§]{1,6000}/"
MOST_CALLS = 3

# For a model of a hundred million parameters: fixed words for its plan (the shots use the same),
# and one short paragraph as answer.
PLAN = "I need to call "
NO_TOOL = "I need no tool."
CONCLUSION = "I have the result."
SHORT_THOUGHT = r"/[^<§\n.]{5,200}\./"
SHORT_ANSWER = r"/[^<§\n.]{1,200}(\.[a-z0-9]{1,8}[ ,;:)][^<§\n.]{0,80}){0,3}(\.[a-z0-9]{1,8})?\.?/"


def head(
    tools: Sequence[ToolSpec], *, small: bool, answered: bool, answer: OutputSchema | None = None
) -> list[str]:
    """Return the rules that all dialects share: `thought`, `reply`, `plan` (before calls) and
    `settled` (before the reply).

    `answer`: the schema of the reply, if it is JSON.
    """
    rules = _head(tools, small=small, answered=answered)
    if answer is None:
        return rules
    reply = f"reply: {as_json(answer_schema(answer))}"
    return [reply if rule.startswith("reply:") else rule for rule in rules]


def _head(tools: Sequence[ToolSpec], *, small: bool, answered: bool) -> list[str]:
    if not small:
        rules = [f"thought: {THOUGHT}", f"reply: {ANSWER}", "plan: thought", "settled: thought"]
        return ["%llguidance {}", *(rules if tools else rules[:2])]
    if not tools:
        sentences = 'reply: SENTENCE (" " SENTENCE)? (" " SENTENCE)?'
        return [
            "%llguidance {}",
            f"thought: {SHORT_THOUGHT}",
            f"SENTENCE: {SHORT_ANSWER}",
            sentences,
        ]
    names = " | ".join(json.dumps(t.name) for t in tools)
    return [
        "%llguidance {}",
        f"SENTENCE: {SHORT_ANSWER}",
        "reply: SENTENCE" if answered else 'reply: SENTENCE (" " SENTENCE)?',
        f'plan: {json.dumps(PLAN)} ( {names} ) "."',
        f"settled: {json.dumps(CONCLUSION if answered else NO_TOOL)}",
    ]


SHORT, LONG = 120, 1000  # characters of a text without a bound
LONG_NAMES = frozenset(
    {
        "code",
        "content",
        "contents",
        "text",
        "body",
        "source",
        "script",
        "prompt",
        "message",
        "data",
        "sql",
        "patch",
    }
)
NUMBER = 10**12
ITEMS = 12

_PLAIN = (
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
)
# what the engine's regular expressions lack: it drops a whole grammar for one of these
_UNKNOWN = re.compile(r"\(\?|\\[1-9bBkpPzZA]")
_FORMATS = frozenset({"date-time", "time", "date", "hostname", "ipv4", "ipv6", "uuid"})
# formats whose own grammar need not end
_ENDING = {
    "duration": "^PT[0-9]{1,5}[HMS]$",
    "email": r"^[a-z]{1,20}@[a-z]{1,20}\.[a-z]{2,4}$",
}
_LISTS = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf", "prefixItems": "prefixItems"}


def calls_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Return the schema of a batch: an array of one to `MOST_CALLS` calls of the given tools."""
    items, definitions = _calls(tools)
    return {"type": "array", "minItems": 1, "maxItems": MOST_CALLS, "items": items, **definitions}


def call_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Return the schema of one call of one of the given tools."""
    items, definitions = _calls(tools)
    return {**items, **definitions}


def answer_schema(answer: OutputSchema) -> dict[str, Any]:
    """Return the schema of a typed answer."""
    prefix = "answer_"
    schema = bounded_depth(answer.schema)
    local = schema.get("$defs", {})
    definitions = {prefix + name: bounded(each, prefix) for name, each in local.items()}
    return {
        **bounded(schema, prefix),
        **({"$defs": definitions} if definitions else {}),
    }


def as_json(schema: Mapping[str, Any]) -> str:
    """Return a schema for a grammar: one line of JSON with fixed white space, as in the shots."""
    form = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    return "%json " + json.dumps({"x-guidance": form, **schema}, ensure_ascii=True)


def _calls(tools: Sequence[ToolSpec]) -> tuple[dict[str, Any], dict[str, Any]]:
    options: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    for number, tool in enumerate(tools):
        prefix = f"t{number}_"
        local = tool.parameters.get("$defs", {})
        definitions |= {prefix + name: bounded(s, prefix) for name, s in local.items()}
        args = bounded({"type": "object", **tool.parameters}, prefix)
        options.append(_object({"name": {"const": tool.name}, "args": args}, ["name", "args"]))
    return {"anyOf": options}, ({"$defs": definitions} if definitions else {})


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def bounded(schema: Any, prefix: str = "", name: str = "") -> Any:
    """Return `schema` with only the grammar's keywords, and with bounds where it has none.

    `prefix`: of the names of definitions. `name`: of the parameter, by which the length of a text
    is guessed.
    """
    if not isinstance(schema, Mapping):
        return schema if isinstance(schema, bool) else {}
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{prefix}{str(schema['$ref']).rsplit('/', 1)[-1]}"}
    out: dict[str, Any] = {key: schema[key] for key in _PLAIN if key in schema}
    for key, target in _LISTS.items():
        if isinstance(schema.get(key), list):
            out[target] = [bounded(s, prefix, name) for s in schema[key]]
    if schema.get("format") in _FORMATS:
        out["format"] = schema["format"]
    pattern = schema.get("pattern", _ENDING.get(str(schema.get("format"))))
    if isinstance(pattern, str) and not _UNKNOWN.search(pattern):
        out["pattern"] = pattern
    if "items" in schema:
        out["items"] = bounded(schema["items"], prefix, name)
    kinds = schema.get("type", ())
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        _BOUNDS.get(kind, _unbounded)(schema, out, prefix, name)
    return out


def _text(schema: Mapping[str, Any], out: dict[str, Any], prefix: str, name: str) -> None:
    if not {"enum", "const", "maxLength", "format"} & out.keys():
        out["maxLength"] = max(
            LONG if name.lower() in LONG_NAMES else SHORT, int(out.get("minLength", 0))
        )


def _number(schema: Mapping[str, Any], out: dict[str, Any], prefix: str, name: str) -> None:
    if not {"enum", "const"} & out.keys():
        if "minimum" not in out and "exclusiveMinimum" not in out:
            out["minimum"] = -NUMBER
        if "maximum" not in out and "exclusiveMaximum" not in out:
            out["maximum"] = NUMBER


def _array(schema: Mapping[str, Any], out: dict[str, Any], prefix: str, name: str) -> None:
    out.setdefault("maxItems", max(ITEMS, int(out.get("minItems", 0))))


def _members(schema: Mapping[str, Any], out: dict[str, Any], prefix: str, name: str) -> None:
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        out["properties"] = {n: bounded(s, prefix, str(n)) for n, s in properties.items()}
        out["required"] = [n for n in schema.get("required", ()) if n in properties]
    more = schema.get("additionalProperties", not properties and "properties" not in schema)
    out["additionalProperties"] = (
        bounded(more, prefix, name) if isinstance(more, Mapping) else bool(more)
    )


def _unbounded(schema: Mapping[str, Any], out: dict[str, Any], prefix: str, name: str) -> None:
    """Kinds that end by themselves."""


_BOUNDS = {
    "string": _text,
    "number": _number,
    "integer": _number,
    "array": _array,
    "object": _members,
}
