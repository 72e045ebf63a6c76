"""Makes pydantic's adapter of the type of an answer, and its JSON schema.

Rule: a type written as a text is refused, also inside a type (`list["Row"]`), since pydantic would
evaluate it. Annotations inside a class may be texts.
"""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Mapping
from typing import Any

from ...errors import UsageError
from ...tools import prepare_type, remove_titles
from ...wire import cut_end

LARGEST_SCHEMA = 100_000  # characters
LONGEST_NAME = 60  # characters
_SUPPORTED = "a pydantic model, dataclass, TypedDict, NamedTuple, Enum, Literal, list[…] or dict[…] of these, or a plain type such as int"


def type_name(kind: Any) -> str:
    """Return the name of a type as its user writes it, at most `LONGEST_NAME` characters."""
    return cut_end(_write_type(kind), LONGEST_NAME)


def _write_type(kind: Any) -> str:
    """Return a type as Python source would write it, without modules: `list[Row] | None`."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is type(None):
        return "None"
    if kind is Ellipsis:
        return "..."
    if origin is typing.Annotated:
        return _write_type(args[0])  # without its metadata
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(_write_type, args))
    if origin is typing.Literal:
        return f"Literal[{', '.join(repr(a) for a in args)}]"
    if args:
        return f"{_write_type(origin)}[{', '.join(map(_write_type, args))}]"
    return str(getattr(kind, "__name__", None) or str(kind).removeprefix("typing."))


def make_adapter(kind: Any, name: str) -> Any:
    """Return pydantic's TypeAdapter of a type. Raises UsageError."""
    from pydantic import TypeAdapter

    if problem := _why_no_type(kind):
        raise UsageError(f"{problem} The type of an answer is {_SUPPORTED}.")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(prepare_type(kind))
        # pydantic puts off a name that is not defined yet: raise for it now
        adapter.rebuild(raise_errors=True)
    except UsageError:
        raise
    except NameError as error:
        raise UsageError(
            f"The type {name} refers to something that is not defined ({error}). Define it first, at the top level."
        ) from None
    except Exception as error:  # pydantic raises many kinds, and annotations may raise any
        raise UsageError(_no_schema_message(name, error)) from None
    return adapter


def _why_no_type(kind: Any) -> str:
    """Return why `kind` cannot be the type of an answer, "" if it can."""
    if isinstance(kind, str | typing.ForwardRef):
        return f"{kind!r} is a text, not a type."
    if text := _find_text(kind):
        return f"{text} is a text inside {type_name(kind)}, not a type."
    if kind is None or kind is inspect.Parameter.empty:
        return "None is not a type."
    if isinstance(kind, Mapping):
        return "A dict of a JSON schema is not a type."
    if isinstance(kind, type) or typing.get_origin(kind) is not None:
        return ""
    if inspect.isroutine(kind) or isinstance(kind, types.ModuleType):
        return f"{getattr(kind, '__name__', kind)!s} is a {type(kind).__name__}, not a type."
    if type(kind).__module__ in ("typing", "typing_extensions", "types"):
        return ""
    return f"This is an object of the class {type(kind).__name__}, not a type."


def _find_text(kind: Any) -> str:
    """Return the first text used as a type inside `kind`, quoted; "" if there is none."""
    if isinstance(kind, str | typing.ForwardRef):
        return repr(kind if isinstance(kind, str) else kind.__forward_arg__)
    origin = typing.get_origin(kind)
    if origin is typing.Literal:
        return ""
    # a list holds the parameters of a Callable
    members = kind if isinstance(kind, list) else typing.get_args(kind)
    if origin is typing.Annotated:
        members = members[:1]  # without its metadata
    return next(filter(None, map(_find_text, members)), "")


def _no_schema_message(name: str, error: Exception) -> str:
    """Return the message for a type that pydantic refuses, with the first line of its error."""
    reason = str(error).partition("\n")[0].rstrip(".")[:200]
    hint = " For the rows of a table give list[Row] and read run.output_frame()."
    hint = hint if name in ("DataFrame", "Series") else ""
    return f"The type {name} has no JSON schema ({reason}).{hint} The type of an answer is {_SUPPORTED}."


def make_schema(adapter: Any, name: str) -> dict[str, Any]:
    """Return the JSON schema of a type, its root inlined (`_inline_root`). Raises UsageError."""
    try:
        generated = _to_json(adapter.json_schema(schema_generator=_make_generator()))
        schema = _inline_root(remove_titles(generated))
        size = len(json.dumps(schema, ensure_ascii=False))
    except Exception as error:  # as in `make_adapter`
        raise UsageError(_no_schema_message(name, error)) from None
    if size > LARGEST_SCHEMA:
        raise UsageError(
            f"The JSON schema of {name} has {size:,} characters; at most {LARGEST_SCHEMA:,} are sent. Ask for a smaller type."
        )
    return schema


def _make_generator() -> Any:
    """Return the class that makes schemas; it is made here to import pydantic only when needed."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        """JSON schemas for models: a Decimal is a text, which keeps its digits."""

        def decimal_schema(self, schema: Any) -> Any:
            return {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}

        def is_subclass_schema(self, schema: Any) -> Any:
            return self.handle_invalid_for_json_schema(schema, "a class is not JSON")

        def set_schema(self, schema: Any) -> Any:
            array = super().set_schema(schema)
            # a set merges duplicates, so the model may repeat an item
            return {k: v for k, v in array.items() if k != "uniqueItems"}

        frozenset_schema = set_schema  # as in pydantic, both are arrays

    return Generator


def _to_json(schema: Any) -> Any:
    """Return a schema as plain JSON, with the titles of a tuple's items as their descriptions.

    Titles are removed afterwards, and the fields of a NamedTuple have their names nowhere else.
    """
    if isinstance(schema, list | tuple):
        return [_to_json(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    members = {str(key): _to_json(value) for key, value in schema.items()}
    if isinstance(members.get("prefixItems"), list):
        members["prefixItems"] = [_title_to_description(item) for item in members["prefixItems"]]
    return members


def _title_to_description(item: Any) -> Any:
    if isinstance(item, dict) and isinstance(item.get("title"), str) and "$ref" not in item:
        return {"description": item["title"], **item}
    return item


def _inline_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose root, if it is a `$ref`, is replaced by the definition it refers to.

    Pydantic writes the root of a recursive type so. Definitions that only refer to each other stay.
    """
    followed: set[str] = set()  # definitions that refer to each other would loop for ever
    while (ref := str(schema.get("$ref", ""))).startswith("#/$defs/") and ref not in followed:
        followed.add(ref)
        keywords = {k: v for k, v in schema.items() if k != "$ref"}
        schema = {**schema.get("$defs", {})[ref.removeprefix("#/$defs/")], **keywords}
    return schema
