"""A JSON Schema within the subset that a provider enforces while the model writes.

Providers refuse a schema outside their subset. With a schema inside it, a model cannot write an
invalid answer. Every object is closed and all its members are required: beside `properties`
`{"a": …}` stand `"required": ["a"]` and `"additionalProperties": false`. A schema for which that
cannot be done has no strict form.

Rule: each document that is valid under a strict schema for `OPENAI` is valid under the original.
For `ANTHROPIC` bounds and patterns become words of the description; the answer is validated later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

# values of `format` that are sent to the provider; others are dropped
FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
# OpenAI's limits, kept for all providers
MOST_LEVELS = 10  # of nested objects and lists; a definition begins anew, since it may recur
MOST_MEMBERS = 5000  # of all objects together
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_BOUNDS = (*_NUMBERS, "minItems", "maxItems", "minLength", "maxLength", "pattern")
_SHAPES = ("type", "enum", "const")
# Python type of a fixed value -> its type in JSON Schema
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
# keywords that do not decide which values are valid; most are dropped
_ANNOTATIONS = frozenset(
    {"title", "default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator"}
    | {"$comment", "contentMediaType", "contentEncoding", "format", "description", "$defs"}
)
# keywords that are translated; a schema with a keyword in neither of the sets has no strict form
_TRANSLATED = frozenset(
    {"$ref", "anyOf", "oneOf", "properties", "required", "additionalProperties", "items"}
    | {"uniqueItems", *_BOUNDS, *_SHAPES}
)


class Rules(msgspec.Struct, frozen=True):
    """The subset of one provider.

    `bounds`: keywords that it takes. `worded`: other bounds become words of the description, else
    a schema with them has no strict form. `recursive`: whether recursive schemas may be sent.
    """

    bounds: frozenset[str]
    worded: bool = False
    recursive: bool = True


OPENAI = Rules(frozenset({*_NUMBERS, "minItems", "maxItems", "pattern"}))
ANTHROPIC = Rules(frozenset(), worded=True, recursive=False)


class _NoStrictForm(ValueError):  # noqa: N818  (it names what does not exist)
    """A schema that the subset cannot express."""


def _require(condition: object) -> None:
    """Raise _NoStrictForm unless the condition is true."""
    if not condition:
        raise _NoStrictForm


def make_strict(schema: Mapping[str, Any], rules: Rules) -> dict[str, Any] | None:
    """Return the strict form of an object's schema, None if it has none."""
    definitions = schema.get("$defs", {})
    strict = _Translation(rules, definitions)
    try:
        if not rules.recursive and recursive_names(definitions):
            return None
        result = strict.translate(schema, 0)
        if definitions:
            result["$defs"] = {n: strict.translate(each, 1) for n, each in definitions.items()}
    except (_NoStrictForm, AttributeError, KeyError, TypeError, RecursionError):  # or malformed
        return None
    members = sum(len(each.get("properties", ())) for each in _objects(result))
    return result if result.get("type") == "object" and members <= MOST_MEMBERS else None


class _Translation:
    """Translates the schemas of one document; `make_strict` catches what the methods raise.

    `depth`: how many objects and lists enclose a schema. `result`: its strict form so far.
    """

    def __init__(self, rules: Rules, definitions: Mapping[str, Any]) -> None:
        self._rules = rules
        self._definitions = definitions

    def translate(self, schema: Any, depth: int) -> dict[str, Any]:
        """Return the strict form of a schema."""
        _require(isinstance(schema, Mapping) and depth <= MOST_LEVELS)
        _require(not schema.keys() - _ANNOTATIONS - _TRANSLATED)
        result: dict[str, Any] = {key: schema[key] for key in _SHAPES if key in schema}
        result |= _type_of(result)
        other_bounds = _copy_bounds(schema, self._rules, result)
        # with `worded` bounds it is left out without words: the answer is validated later
        _require(not schema.get("uniqueItems") or self._rules.worded)
        if schema.get("format") in FORMATS:
            result["format"] = schema["format"]
        self._add_choices(schema, depth, result)
        if "object" in _list_types(schema):
            self._add_members(schema, depth, result)
        else:
            _require(not {"properties", "required", "additionalProperties"} & schema.keys())
        if "array" in _list_types(schema):
            result["items"] = self.translate(schema.get("items"), depth + 1)
        else:
            _require("items" not in schema)
        _require({"type", "anyOf", "$ref"} & result.keys())
        return _add_description(result, schema.get("description"), other_bounds)

    def _add_choices(self, schema: Mapping[str, Any], depth: int, result: dict[str, Any]) -> None:
        """Add a reference and options; `oneOf` becomes `anyOf` if no value fits two options."""
        if "$ref" in schema:
            name = str(schema["$ref"]).removeprefix("#/$defs/")
            _require(name in self._definitions and not schema.keys() - _ANNOTATIONS - {"$ref"})
            result["$ref"] = schema["$ref"]
        options = schema.get("oneOf")
        if options is not None:
            _require("anyOf" not in schema and self._are_disjoint(options))
        options = schema.get("anyOf", options)
        if options is not None:
            result["anyOf"] = [self.translate(each, depth) for each in options]

    def _add_members(self, schema: Mapping[str, Any], depth: int, result: dict[str, Any]) -> None:
        """Add the members of an object: closed, and all required.

        An open object without named members has no strict form: closed, it could only be empty.
        """
        members: Any = schema.get("properties")
        _require(members or (members is not None and not schema.get("additionalProperties")))
        _require(not set(schema.get("required", ())) - members.keys())
        result["properties"] = {n: self.translate(each, depth + 1) for n, each in members.items()}
        result["required"] = list(members)
        result["additionalProperties"] = False

    def _are_disjoint(self, options: Any) -> bool:
        """Return whether objects differ in the fixed text of a member that all require."""
        resolved = [
            self._definitions.get(str(each.get("$ref", "")).removeprefix("#/$defs/"), each)
            for each in options
        ]
        _require(all(each.get("type") == "object" for each in resolved))  # not `null` as well
        names = set.intersection(*(set(each.get("required", ())) for each in resolved))
        members = ([each["properties"].get(name, {}) for each in resolved] for name in names)
        return any(map(_have_distinct_texts, members))


def _type_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type of `enum` or `const` values that lack one: a strict schema must name it."""
    if "type" in result or not {"enum", "const"} & result.keys():
        return {}
    values = result["enum"] if "enum" in result else [result["const"]]
    kinds = list(dict.fromkeys(_TYPES.get(type(value), "") for value in values))
    _require(kinds and "" not in kinds)
    return {"type": kinds[0] if len(kinds) == 1 else kinds}


def _list_types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)


def _copy_bounds(schema: Mapping[str, Any], rules: Rules, result: dict[str, Any]) -> list[str]:
    """Copy the bounds that the provider takes to `result`; return the others as words."""
    others = []
    for key in _BOUNDS:
        if key not in schema:
            continue
        # not a pattern with `(?`: providers refuse lookarounds, and may refuse other groups
        if key in rules.bounds and "(?" not in str(schema[key]):
            result[key] = schema[key]
        else:
            _require(rules.worded)
            others.append(f"{key}: {json.dumps(schema[key], ensure_ascii=False)}")
    return others


def _have_distinct_texts(members: list[Any]) -> bool:
    """Return whether all members have fixed values, all texts, and no two share one."""
    # 1 and 1.0 are equal in JSON and differ as text, so only texts count
    fixed = [[m["const"]] if "const" in m else m.get("enum", []) for m in members]
    texts = [json.dumps(value) for values in fixed for value in values]
    return all(fixed) and len(texts) == len(set(texts)) and all(v.startswith('"') for v in texts)


def _add_description(result: dict[str, Any], text: Any, bounds: list[str]) -> dict[str, Any]:
    """Return `result` with text and bounds as description; a `$ref` must stand alone: wrap it."""
    description = str(text or "")
    if bounds:
        words = f"({', '.join(bounds)})"
        description = f"{description} {words}" if description else words
    if not description:
        return result
    if "$ref" in result:
        return {"description": description, "anyOf": [result]}
    return {"description": description} | result


def recursive_names(definitions: Mapping[str, Any]) -> set[str]:
    """Return the names of the definitions that contain themselves, directly or not."""
    recursive: set[str] = set()
    references = {
        name: {str(m["$ref"]).removeprefix("#/$defs/") for m in _objects(schema) if "$ref" in m}
        for name, schema in definitions.items()
    }
    for name, direct in references.items():
        # all names that the definition leads to; itself among them means recursion
        reachable, unvisited = set[str](), direct
        while unvisited:
            reachable |= unvisited
            unvisited = (
                set[str]().union(*(references.get(each, set()) for each in unvisited)) - reachable
            )
        recursive |= {name} & reachable
    return recursive


def _objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield each mapping in `schema`, itself first."""
    if isinstance(schema, Mapping):
        yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for member in schema:
            yield from _objects(member)
