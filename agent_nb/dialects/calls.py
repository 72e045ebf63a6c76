"""Reads the JSON of tool calls strictly, once it is complete (`call_scan` finds its end).

A call is `{"name": "search", "args": {"query": "tides"}}`, perhaps with an `id`.

Rule: JSON is strict (RFC 8259): no NaN, no raw control characters in strings; half surrogate pairs
are refused too. Of duplicate members the last counts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..models import Call

DEEPEST = 200  # levels of nesting
_decode = msgspec.json.Decoder().decode
_decode_call = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_batch = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
# type of a JSON value -> its name in a message for the model
_JSON_KINDS = {
    list: "an array",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def read_batch(text: str, index: int = 0) -> list[Call]:
    """Return the calls of a JSON array; the first gets `index`.

    All or nothing: raises ValueError with a message for the model if anything in it is wrong.
    """
    items = _decode_strictly(_decode_batch, text)
    return [_make_call(item, index + n, f"item {n + 1}") for n, item in enumerate(items)]


def read_call(text: str, index: int = 0) -> Call:
    """Return the call of one JSON object. Raises ValueError with a message for the model."""
    return _make_call(_decode_strictly(_decode_call, text), index, "the object")


def read_args(text: str) -> dict[str, Any]:
    """Return arguments as an object, {} for an empty text.

    Raises ValueError with a message for the model.
    """
    value = _decode_strictly(_decode, text) if text.strip() else {}
    if not isinstance(value, dict):
        raise ValueError(f"it is {_JSON_KINDS.get(type(value), type(value).__name__)}")  # noqa: TRY004  (the text is wrong, not a type)
    return value


def check_depth(depth: int) -> None:
    """Raise ValueError if JSON is nested too deeply."""
    if depth > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels")


def _make_call(item: dict[str, msgspec.Raw], index: int, where: str) -> Call:
    missing = [f'"{key}"' for key in ("name", "args") if key not in item]
    if missing:
        raise ValueError(f"{where} has no {' and no '.join(missing)}")
    name, args = _decode_member(item, "name"), _decode_member(item, "args")
    if not isinstance(name, str) or not name:
        raise ValueError(f'"name" of {where} is not a text with a tool\'s name')
    if not isinstance(args, dict):
        raise ValueError(f'"args" of {where} is not an object')  # noqa: TRY004
    call_id = _decode_member(item, "id")
    if not isinstance(call_id, str | int) or isinstance(call_id, bool):
        call_id = ""
    return Call(name, args, bytes(item["args"]).decode(), str(call_id), index)


def _decode_member(item: dict[str, msgspec.Raw], key: str) -> Any:
    return _decode_strictly(_decode, item[key]) if key in item else None


def _decode_strictly(decode: Any, text: Any) -> Any:
    try:
        return decode(text)
    except UnicodeError:
        raise ValueError(
            "it holds one half of a surrogate pair, which is not a character"
        ) from None
    except RecursionError:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels") from None
    except msgspec.MsgspecError as fault:
        raise ValueError(str(fault)) from None
