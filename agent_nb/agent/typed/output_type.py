"""The type of an agent's answer (`type_adapter`), and the check of an answer against it.

Rules
- Validation is pydantic's strict mode for JSON: a text is never a number, `1` never a bool, a
  number never a text. Only integers and integral floats may stand for each other (`3.0` is `3`).
- The recorded text is canonical JSON of the value, defaults included, if validating it again yields
  an equal value; else it is the answer's own JSON.
"""

from __future__ import annotations

import re
import typing
from functools import cached_property
from typing import Any

import msgspec

from ...events import FIELDS, fields_of
from ...models import OutputSchema
from ...tools import explain_fault
from ...wire import Redaction, cut_end, encode_canonical, lenient_loads, loads
from .type_adapter import LONGEST_NAME, make_adapter, make_schema, type_name

WRAPPED = "value"  # the member of the wrapper object that holds the answer
MOST_FAULTS = 8  # faults that an error message lists
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
        self._adapter = make_adapter(kind, self.name)
        self.schema = make_schema(self._adapter, self.name)
        self.wrapped = self.schema.get("type") != "object"

    def __repr__(self) -> str:
        return f"OutputType({self.name})"

    @property
    def item_names(self) -> tuple[str, ...]:
        """The names of the items of a NamedTuple, which its schema lacks; () for other types."""
        kind = self.kind
        while typing.get_origin(kind) is typing.Annotated:
            kind = typing.get_args(kind)[0]
        is_tuple = isinstance(kind, type) and issubclass(kind, tuple)
        return tuple(getattr(kind, "_fields", ())) if is_tuple else ()

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
