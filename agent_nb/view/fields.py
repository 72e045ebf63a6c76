"""The fields that edit the arguments of a call, and how typed text becomes arguments again.

Why: code in JSON is unreadable, so a text is edited with its real lines; one with hidden characters
is edited as JSON in ASCII, which shows them.

Rules
- A field that was not touched returns the value it was made from; an edited text keeps its line
  ends.
- Only the arguments that the call has get fields. A last field takes others, as a JSON object,
  unless the call has all arguments of the schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NoReturn

from ..wire import as_dict, as_list
from . import visible
from .call_line import CODE
from .nodes import Field

#: The name of the field for arguments that the call does not have; models write no such name.
OTHERS = "\0others"
#: The key, in place of a field's name, of what is wrong with the call as a whole.
CALL = "\0"
REASON = "reason"  # the name of the field for the reason of a denial
REASON_FIELD = Field(REASON, "line", "", hint="Why not? The model reads it (optional)")
LONGEST_REASON = 2000  # characters


def make_fields(args: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return a field for each argument; `schema`: the JSON schema of all of them ({}: unknown)."""
    schemas = as_dict(schema.get("properties"))
    fields = tuple(_make_field(name, value, schemas.get(name)) for name, value in args.items())
    missing = [str(name) for name in schemas if name not in args]
    if schemas and not missing:
        return fields
    examples = ", ".join(f"{json.dumps(name)}: …" for name in missing[:4] or ("name",))
    return (*fields, Field(OTHERS, "json", "", hint=f"{{{examples}}}"))


def read_fields(typed: Iterable[tuple[Field, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arguments that fields hold, and the faults: name of a field → what is wrong.

    `typed`: each field with its content: the index of a choice, a bool for a flag, else a text.
    """
    args: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for field, value in typed:
        try:
            if field.name == OTHERS:
                args.update(_read_others(value, args))
            else:
                args[field.name] = _read_field(field, value)
        except ValueError as fault:
            faults[field.name] = str(fault)
    return args, faults


def _make_field(name: str, value: Any, schema: Any) -> Field:
    choices = as_list(as_dict(schema).get("enum"))
    equal = [c for c in choices if c == value]
    # `1` also equals `true`, which is another choice
    if equal and all(type(c) is type(value) for c in equal) and len(choices) > 1:
        return Field(name, "choice", value, choices=tuple(choices))
    if isinstance(value, bool):
        return Field(name, "flag", value)
    if isinstance(value, int | float):
        return Field(name, "number", value)
    if not isinstance(value, str) or _hides_characters(value):
        return Field(name, "json", value)
    code = "\n" in value or name.lower() in CODE
    return Field(name, "code" if code else "text", value)


def _hides_characters(text: str) -> bool:
    plain = _use_newlines(text)
    return visible.show_hidden(plain) != plain


def text_of(field: Field) -> str:
    """Return the text that a field begins with."""
    if isinstance(field.value, str) and (field.kind != "json" or field.name == OTHERS):
        return _use_newlines(field.value)
    text = json.dumps(field.value, ensure_ascii=False, indent=2)
    # ASCII shows what is hidden in a text; other values read better without escapes
    return json.dumps(field.value, indent=2) if _hides_characters(text) else text


def _read_field(field: Field, value: Any) -> Any:
    """Return the argument that a field holds. Raises ValueError with a sentence for the user."""
    if field.kind == "choice":
        return field.choices[value]
    if field.kind == "flag":
        return value
    # an untouched field returns its own value, since its text may lack a part of it (line ends)
    if value == text_of(field):
        return field.value
    if field.kind == "number":
        return _read_number(value)
    if field.kind == "json":
        return _read_json(value)
    return value.replace("\n", "\r\n") if "\r\n" in field.value else value


def _read_number(text: str) -> Any:
    try:
        number = _read_json(text)
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        # one kind of error for every field
        raise ValueError("This is not a number.")  # noqa: TRY004
    return number


def _use_newlines(text: str) -> str:
    return text.replace("\r\n", "\n")  # as a text area does


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_read_float)
    except RecursionError:
        raise ValueError("This is nested too deeply.") from None
    except ValueError as fault:
        raise ValueError(f"This is not JSON: {fault}.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, but its numbers are finite")


def _read_float(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse_constant(digits)


def _read_others(text: str, own: Collection[str]) -> dict[str, Any]:
    """Return the arguments in the last field; `own` have fields of their own. Raises ValueError."""
    if not text.strip():
        return {}
    others = _read_json(text)
    if not isinstance(others, dict):
        # one kind of error for every field
        raise ValueError('Arguments are a JSON object, such as {"name": "value"}.')  # noqa: TRY004
    if repeated := next((name for name in others if name in own), None):
        raise ValueError(f"{visible.show_hidden(repeated)} has a field above: change it there.")
    return others
