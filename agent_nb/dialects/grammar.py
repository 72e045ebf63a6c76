"""llguidance grammars, under which even a very small model writes only valid calls.

The tools' JSON schemas are part of the grammar (`%json`), so names, types and enumerations are
enforced while the model writes. Only keywords that llguidance knows are passed on, so that a user's
schema cannot make the grammar invalid; tools validate anyway.

Rule: unbounded texts, numbers and arrays get a bound, as a small model may repeat itself without
end. Still unbounded are values without a `type`, members that an object may have besides its
`properties`, and the depth of recursive arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..models import OutputSchema, ToolSpec
from .recursion import bound_depth

# regular expressions without `<` and `§`, with which the markers of both dialects begin
THOUGHT = r"/[^<§\n]{5,400}/"
ANSWER = r"/[^<§]{1,6000}/"
MOST_CALLS = 3

# For a model of a hundred million parameters: fixed words for its plan (the few-shot turns use the
# same), and one short paragraph as answer.
PLAN = "I need to call "
NO_TOOL = "I need no tool."
CONCLUSION = "I have the result."
SHORT_THOUGHT = r"/[^<§\n.]{5,200}\./"
# a sentence such as `Read a.csv, then b.json.`: words; up to three times an ending such as `.csv`,
# a space or mark, and words; perhaps another ending; perhaps a full stop
SHORT_ANSWER = r"/[^<§\n.]{1,200}(\.[a-z0-9]{1,8}[ ,;:)][^<§\n.]{0,80}){0,3}(\.[a-z0-9]{1,8})?\.?/"

# bounds where a schema has none
SHORT_TEXT, LONG_TEXT = 120, 1000  # characters
# parameters whose texts may be long
LONG_NAMES = frozenset({
    "code", "content", "contents", "text", "body", "source", "script", "prompt", "message", "data",
    "sql", "patch",
})  # fmt: skip
LARGEST_NUMBER = 10**12
MOST_ITEMS = 12

_LOWER_BOUNDS = frozenset({"minimum", "exclusiveMinimum"})
_UPPER_BOUNDS = frozenset({"maximum", "exclusiveMaximum"})
_KEYWORDS = (
    "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "minLength", "maxLength", "minItems", "maxItems",
)  # fmt: skip
# syntax that llguidance's regular expressions lack; one such pattern makes the grammar invalid
_UNSUPPORTED = re.compile(r"\(\?|\\[1-9bBkpPzZA]")
_FORMATS = frozenset({"date-time", "time", "date", "hostname", "ipv4", "ipv6", "uuid"})
# format -> a bounded pattern, because that of llguidance lets a value grow without end
_FORMAT_PATTERNS = {
    "duration": "^PT[0-9]{1,5}[HMS]$",
    "email": r"^[a-z]{1,20}@[a-z]{1,20}\.[a-z]{2,4}$",
}
# keywords with a list of schemas -> the keyword in the grammar
_LIST_KEYWORDS = {
    "anyOf": "anyOf",
    "oneOf": "anyOf",
    "allOf": "allOf",
    "prefixItems": "prefixItems",
}


def write_shared_rules(
    tools: Sequence[ToolSpec], *, small: bool, has_results: bool, reply: OutputSchema | None = None
) -> list[str]:
    """Return the rules that the dialects share, such as `thought: /[^<§\\n]{5,400}/`.

    `plan` is the thought before calls, `settled` the thought before the `reply`; without tools,
    both are `thought`. `small`: for a small model. `has_results`: the run has results of calls
    already. The parameter `reply`: the schema of the reply, if that is JSON.
    """
    rules = _choose_small_rules(tools, has_results=has_results) if small else _choose_rules(tools)
    if reply is not None:
        rules["reply"] = write_json_term(make_answer_schema(reply))
    return ["%llguidance {}", *(f"{name}: {body}" for name, body in rules.items())]


def _choose_rules(tools: Sequence[ToolSpec]) -> dict[str, str]:
    """Return name -> body of the rules for texts."""
    rules = {"thought": THOUGHT, "reply": ANSWER}
    return {**rules, "plan": "thought", "settled": "thought"} if tools else rules


def _choose_small_rules(tools: Sequence[ToolSpec], *, has_results: bool) -> dict[str, str]:
    """Return name -> body of the rules for texts of a small model."""
    if not tools:
        sentences = 'SENTENCE (" " SENTENCE)? (" " SENTENCE)?'
        return {"thought": SHORT_THOUGHT, "SENTENCE": SHORT_ANSWER, "reply": sentences}
    names = " | ".join(json.dumps(t.name) for t in tools)
    return {
        "SENTENCE": SHORT_ANSWER,
        "reply": "SENTENCE" if has_results else 'SENTENCE (" " SENTENCE)?',
        "plan": f'{json.dumps(PLAN)} ( {names} ) "."',
        "settled": json.dumps(CONCLUSION if has_results else NO_TOOL),
    }


def make_batch_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Return the schema of a batch: an array of one to `MOST_CALLS` calls of the given tools."""
    call = make_call_schema(tools)
    definitions = {"$defs": call.pop("$defs")} if "$defs" in call else {}
    return {"type": "array", "minItems": 1, "maxItems": MOST_CALLS, "items": call, **definitions}


def make_call_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Return the schema of one call of one of the given tools.

    The tools' definitions (`$defs`) stand at its root, each with the prefix of its tool.
    """
    options: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    for number, tool in enumerate(tools):
        prefix = f"t{number}_"
        definitions |= _bound_definitions(tool.parameters, prefix)
        args = bound_schema({"type": "object", **tool.parameters}, prefix)
        call = {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "args": args},
            "required": ["name", "args"],
            "additionalProperties": False,
        }
        options.append(call)
    return {"anyOf": options, **({"$defs": definitions} if definitions else {})}


def make_answer_schema(answer: OutputSchema) -> dict[str, Any]:
    """Return the schema of a typed answer."""
    schema = bound_depth(answer.schema)
    definitions = _bound_definitions(schema, "answer_")
    return {**bound_schema(schema, "answer_"), **({"$defs": definitions} if definitions else {})}


def _bound_definitions(schema: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the definitions of a schema, bounded, by their names with `prefix`."""
    local = schema.get("$defs", {})
    return {prefix + name: bound_schema(each, prefix) for name, each in local.items()}


def write_json_term(schema: Mapping[str, Any]) -> str:
    """Return a schema as a `%json` term: one line, with the white space of the few-shot turns."""
    layout = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    return "%json " + json.dumps({"x-guidance": layout, **schema}, ensure_ascii=True)


def bound_schema(schema: Any, prefix: str = "", name: str = "") -> Any:
    """Return `schema` with only the grammar's keywords, and with a bound where it has none.

    `prefix`: begins the names of its definitions. `name`: of the parameter; it decides how long a
    text may be (`LONG_NAMES`).
    """
    if not isinstance(schema, Mapping):
        return schema if isinstance(schema, bool) else {}
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{prefix}{str(schema['$ref']).rsplit('/', 1)[-1]}"}
    out: dict[str, Any] = {key: schema[key] for key in _KEYWORDS if key in schema}
    for key, target in _LIST_KEYWORDS.items():
        if isinstance(schema.get(key), list):
            out[target] = [bound_schema(s, prefix, name) for s in schema[key]]
    out |= _select_text_format(schema)
    if "items" in schema:
        out["items"] = bound_schema(schema["items"], prefix, name)
    types = schema.get("type", ())
    for type_ in [types] if isinstance(types, str) else types:
        if type_ == "object":
            out |= _bound_members(schema, prefix, name)
        else:
            out |= _choose_bounds(type_, out, name)
    return out


def _select_text_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `format` and `pattern` of a text, as far as llguidance knows them."""
    text_format = schema.get("format")
    keywords = {"format": text_format} if text_format in _FORMATS else {}
    pattern = schema.get("pattern", _FORMAT_PATTERNS.get(str(text_format)))
    supported = isinstance(pattern, str) and not _UNSUPPORTED.search(pattern)
    return {**keywords, "pattern": pattern} if supported else keywords


def _choose_bounds(type_: str, keywords: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the bounds that a value of the type `type_` with these keywords lacks."""
    if type_ == "array" and "maxItems" not in keywords:
        return {"maxItems": max(MOST_ITEMS, int(keywords.get("minItems", 0)))}
    if {"enum", "const"} & keywords.keys():
        return {}
    bounds: dict[str, Any] = {}
    if type_ == "string" and not {"maxLength", "format"} & keywords.keys():
        longest = LONG_TEXT if name.lower() in LONG_NAMES else SHORT_TEXT
        bounds["maxLength"] = max(longest, int(keywords.get("minLength", 0)))
    if type_ in ("number", "integer"):
        limits = (keywords.get(key) for key in _LOWER_BOUNDS | _UPPER_BOUNDS)
        sizes = [abs(limit) for limit in limits if isinstance(limit, int | float)]
        # beyond the schema's own bound, else no value would be between the two
        largest = LARGEST_NUMBER + max((n for n in sizes if n >= LARGEST_NUMBER), default=0)
        if not _LOWER_BOUNDS & keywords.keys():
            bounds["minimum"] = -largest
        if not _UPPER_BOUNDS & keywords.keys():
            bounds["maximum"] = largest
    return bounds


def _bound_members(schema: Mapping[str, Any], prefix: str, name: str) -> dict[str, Any]:
    """Return the keywords of an object; one without properties may have any member."""
    out: dict[str, Any] = {}
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        out["properties"] = {n: bound_schema(s, prefix, str(n)) for n, s in properties.items()}
        out["required"] = [n for n in schema.get("required", ()) if n in properties]
    additional = schema.get("additionalProperties", "properties" not in schema)
    if isinstance(additional, Mapping):
        return {**out, "additionalProperties": bound_schema(additional, prefix, name)}
    return {**out, "additionalProperties": bool(additional)}
