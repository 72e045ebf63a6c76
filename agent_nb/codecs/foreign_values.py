"""Reads values of foreign objects leniently: a value of an unexpected type counts as absent.

One odd field must not stop a foreign stream. Nothing is lost: the note of an imported event has the
original field (`passthrough`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypeGuard

from ..wire import as_dict, dumps, loads

CAUSES = ("user", "timeout", "limit")  # reasons of an interrupt


def run_id(codec: str, first: Any, number: int = 1) -> str:
    """Return an id for a run without one: 12 hex digits, equal for equal arguments.

    `first`: the first object of the run. `number`: of the run in its stream.
    """
    return hashlib.sha256(f"{codec} {number} {dumps(first)}".encode()).hexdigest()[:12]


def text_of(obj: Mapping[str, Any], key: str) -> str:
    """Return the string at `key`, or ""."""
    value = obj.get(key)
    return value if isinstance(value, str) else ""


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number below 1e15, above which it is neither count nor time."""
    # an integer of JSON may exceed every float: it cannot be divided, or added to one
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def fraction_of(value: Any) -> float | None:
    """Return a number from 0 to 1, or None."""
    return float(value) if is_number(value) and 0 <= value <= 1 else None


def interrupt_fields(reason: str) -> dict[str, Any]:
    """Return the fields of an Interrupt; a foreign reason becomes the detail of a user's stop."""
    return {"reason": reason} if reason in CAUSES else {"reason": "user", "detail": reason}


def parse_json(text: Any) -> Any:
    """Return the JSON value of a text, or None."""
    if not isinstance(text, str):
        return None
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None


def arguments_of(value: Any) -> dict[str, Any]:
    """Return the arguments of a call; `value`: an object, or its JSON text, else {} is returned."""
    return value if isinstance(value, dict) else as_dict(parse_json(value))


def text_of_arguments(value: Any) -> str:
    """Return the text of a call's arguments, "" for an object whose keys are sorted.

    A notebook's file sorts the keys of objects, so the text keeps the order of other keys.
    """
    if isinstance(value, dict):
        return "" if _is_sorted(value) else dumps(value)
    return value if isinstance(value, str) else ""


def _is_sorted(value: Any) -> bool:
    if isinstance(value, dict):
        return list(value) == sorted(value) and all(map(_is_sorted, value.values()))
    return all(map(_is_sorted, value)) if isinstance(value, list) else True
