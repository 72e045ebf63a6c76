"""The type of an agent's answer: its JSON schema, and the check of an answer against it.

Why: which types are supported, which JSON is a valid answer and which text of it is recorded must
not depend on how a provider takes a schema.

Rules
- Providers take only schemas of objects: any other schema is sent wrapped, as `{"value": …}`.
- Validation is pydantic's strict mode for JSON: a text is never a number, `1` never a bool, a
  number never a text. Only integers and integral floats may stand for each other (`3.0` is `3`).
- The recorded text is canonical JSON of the value, defaults included, if validating it again yields
  an equal value; else it is the answer's own JSON.
- A type written as a text is refused, also inside a type (`list["Row"]`), since pydantic would
  evaluate it. Annotations inside a class may be texts.
"""

from __future__ import annotations

import inspect
import json
import re
import types
import typing
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from ...errors import UsageError
from ...events import FIELDS, fields_of
from ...models import OutputSchema
from ...tools import explain_fault, load_plugins, remove_titles
from ...wire import Redaction, cut_end, encode_canonical, lenient_loads, loads
from .typed_dicts import convert_typed_dicts

WRAPPED = "value"  # the member of the wrapper object that holds the answer
LARGEST_SCHEMA = 100_000  # characters
LONGEST_NAME = 60  # characters
MOST_FAULTS = 8  # faults that an error message lists
_SUPPORTED = "a pydantic model, dataclass, TypedDict, NamedTuple, Enum, Literal, list[…] or dict[…] of these, or a plain type such as int"
_CODE_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
_ROOT_KEYWORDS = ("$defs",)  # stay at the root of a wrapped schema: references begin there


class InvalidOutput(ValueError):  # noqa: N818  (it names what is wrong with the answer)
    """Raised for an answer that is not a value of the type; the message is for the model."""

    CODE = "invalid_output"  # of the error event


class NotJson(InvalidOutput):
    """Raised for an answer that is not JSON at all."""


class Answer(msgspec.Struct, frozen=True):
    """A valid answer: its `value` in Python, and its canonical JSON `text`."""

    text: str
    value: Any


class OutputType:
    """One type of answers: the Python type `kind`, its `name` and its JSON `schema`.

    `wrapped`: the schema does not describe an object, so it is sent as a member of an object's
    schema. The constructor raises UsageError if `kind` cannot be the type of an answer.
    """

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.name = type_name(kind)
        self._adapter = _make_adapter(kind, self.name)
        self.schema = _make_schema(self._adapter, self.name)
        self.wrapped = self.schema.get("type") != "object"

    def __repr__(self) -> str:
        return f"OutputType({self.name})"

    @cached_property
    def wire(self) -> OutputSchema:
        """The schema in the form that is sent, named with characters that providers allow."""
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", self.name).strip("_")[:LONGEST_NAME] or "answer"
        if not self.wrapped:
            return OutputSchema(name, self.schema)
        plain = {k: v for k, v in self.schema.items() if k not in _ROOT_KEYWORDS}
        return OutputSchema(
            name,
            {
                "type": "object",
                "properties": {WRAPPED: plain},
                "required": [WRAPPED],
                "additionalProperties": False,
                **{k: self.schema[k] for k in _ROOT_KEYWORDS if k in self.schema},
            },
        )

    def described(self, redaction: Redaction) -> dict[str, Any]:
        """Return name, schema and names of the fields for the record, with keys redacted."""
        fields = fields_of(self.schema)
        members = {"name": self.name, "schema": self.schema, **({FIELDS: fields} if fields else {})}
        description: dict[str, Any] = redaction.value(members)
        return description

    def unwrap(self, document: Any) -> Any:
        """Return the plain JSON value that a model sent, wrapped or (against the schema) bare."""
        if self.wrapped and isinstance(document, dict) and document.keys() == {WRAPPED}:
            return document[WRAPPED]
        return document

    def parse(self, text: str) -> Answer:
        """Return the answer in a model's text: JSON, perhaps in a code fence.

        Raises InvalidOutput, whose message is for the model.
        """
        return self.validate(self.unwrap(_read_json(text)))

    def validate(self, document: Any) -> Answer:
        """Return the answer of a plain JSON value. Raises InvalidOutput."""
        from pydantic import ValidationError

        try:
            text = encode_canonical(document)
            text.encode()
        except UnicodeEncodeError as error:
            escape = f"\\u{ord(error.object[error.start]):04x}"
            raise InvalidOutput(
                f"The answer holds {escape}, half of a character. Write the whole character."
            ) from None
        except ValueError as error:
            raise InvalidOutput(f"The answer is not valid JSON: {error}.") from None
        try:
            value = self._adapter.validate_json(text, strict=True)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False)
            raise InvalidOutput(self._describe_faults(loads(text), faults)) from None
        except Exception as error:  # whatever a validator of the type raises
            raise InvalidOutput(
                f"The answer is not a valid {self.name}: {type(error).__name__}: {error}"
            ) from None
        # if the type cannot write the value as JSON and read it again: the JSON of the model
        return self._canonical_answer(value) or Answer(text, value)

    def _canonical_answer(self, value: Any) -> Answer | None:
        """Return the answer with the JSON that the type writes for `value`, defaults included.

        None if reading that JSON gives another value.
        """
        try:
            plain = self._adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
            text = encode_canonical(plain)
            reread = self._adapter.validate_json(text, strict=True)
            return Answer(text, value) if bool(reread == value) else None
        except Exception:  # serializers, validators and `__eq__` of the type are its own code
            return None

    def _describe_faults(self, document: Any, faults: list[Any]) -> str:
        """Return the message for the model: a line for each fault, at most `MOST_FAULTS`."""
        explained = (explain_fault(document, fault) for fault in faults)
        # a fault without a path begins with the colon after it
        named = (f"the answer{text}" if text.startswith(":") else text for text in explained)
        lines = list(dict.fromkeys(f"- {text}" for text in named))
        unlisted = len(lines) - MOST_FAULTS
        listed = [*lines[:MOST_FAULTS], *([f"- … and {unlisted} more"] if unlisted > 0 else [])]
        return f"The answer is not a valid {self.name}:\n" + "\n".join(listed)


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


def _make_adapter(kind: Any, name: str) -> Any:
    """Return pydantic's TypeAdapter of a type. Raises UsageError."""
    from pydantic import TypeAdapter

    if problem := _why_no_type(kind):
        raise UsageError(f"{problem} The type of an answer is {_SUPPORTED}.")
    load_plugins()
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(convert_typed_dicts(kind))
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


def _make_schema(adapter: Any, name: str) -> dict[str, Any]:
    """Return the JSON schema of a type, its root inlined (`_inline_root`). Raises UsageError."""
    try:
        generated = _to_json(adapter.json_schema(schema_generator=_make_generator()))
        schema = _inline_root(remove_titles(generated))
        size = len(json.dumps(schema, ensure_ascii=False))
    except Exception as error:  # as in `_make_adapter`
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

    Pydantic writes the root of a recursive type as a `$ref`. If the definitions only refer to
    each other, the `$ref` stays.
    """
    followed: set[str] = set()  # definitions that refer to each other would loop for ever
    while (ref := str(schema.get("$ref", ""))).startswith("#/$defs/") and ref not in followed:
        followed.add(ref)
        keywords = {k: v for k, v in schema.items() if k != "$ref"}
        schema = {**schema.get("$defs", {})[ref.removeprefix("#/$defs/")], **keywords}
    return schema


def _read_json(text: str) -> Any:
    """Return the JSON value in a model's text. Raises NotJson."""
    bare = text.strip()
    if not bare:
        raise NotJson("The answer is empty. Answer with JSON.")
    fenced = _CODE_FENCE.findall(bare)
    for candidate in (bare, *(fenced if len(fenced) == 1 else ())):
        try:
            return lenient_loads(candidate)
        except ValueError:
            continue
    raise NotJson(f"The answer is not JSON. It begins with {cut_end(bare, 80)!r}.")
