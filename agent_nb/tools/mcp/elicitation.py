"""Questions of a server to the user (elicitation): a form, asked field by field at the keyboard.

Why: a server may need an answer that only the user has, such as a name or a choice. Its texts are
shown escaped and bounded.

Rule: where nobody can be asked, questions are declined. So are longer forms, and questions that
send the user to an address: whether it is safe cannot be judged here.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import msgspec

from ...wire import as_dict, as_list, cut_end, escape_unprintable
from ..base import Host
from .sdk import import_sdk

LONGEST_MESSAGE = 2_000  # characters of the server's message
_LONGEST_ABOUT = 200  # characters of a field's description
_LONGEST_FORMAT = 40  # characters of the name of a text's format
_MOST_FIELDS = 20  # the most fields of a form; a longer form is declined
_MOST_ATTEMPTS = 3  # unclear answers to one field before the form is cancelled
Refusal = Literal["decline", "cancel"]
_YES, _NO = ("y", "yes", "true"), ("n", "no", "false")
# JSON type -> what the user should type
_NUMBERS = {"integer": "a whole number", "number": "a number"}


class Keyboard(msgspec.Struct, frozen=True):
    """The keyboard of the user whose call runs; it is read on the kernel's main thread by `host`.

    `loop`: the event loop of the call, through which the session's own thread reaches `host`.
    """

    loop: asyncio.AbstractEventLoop
    host: Host

    async def on_main(self, function: Callable[[], Any]) -> Any:
        """Call a function on the main thread and return its value."""
        future = asyncio.run_coroutine_threadsafe(_call_host(self.host, function), self.loop)
        return await asyncio.wrap_future(future)


async def _call_host(host: Host, function: Callable[[], Any]) -> Any:
    # `run_coroutine_threadsafe` takes a coroutine; a host may return another awaitable
    return await host.call(function)


async def answer_elicitation(server: str, params: Any, keyboard: Keyboard | None) -> Any:
    """Ask the user the question of `server`; return the SDK's answer (no keyboard: a refusal)."""
    import_sdk()  # first: without the SDK it says what to install
    from mcp_types import ElicitResult

    # a question that sends the user to an address has no schema
    schema = getattr(params, "requested_schema", None)
    if keyboard is None or not isinstance(schema, Mapping):
        return ElicitResult(action="decline")
    try:
        ask = partial(ask_at_keyboard, server, str(params.message), schema)
        reply: dict[str, Any] | Refusal = await keyboard.on_main(ask)
    except EOFError:  # the front end has no keyboard
        return ElicitResult(action="decline")
    if isinstance(reply, str):
        return ElicitResult(action=reply)
    return ElicitResult(action="accept", content=reply)


def ask_at_keyboard(
    server: str, message: str, schema: Mapping[str, Any]
) -> dict[str, Any] | Refusal:
    """Ask for each field of a JSON schema; return the values by name, or `decline` or `cancel`."""
    fields = as_dict(schema.get("properties"))
    required = as_list(schema.get("required"))
    if len(fields) > _MOST_FIELDS:
        return "decline"
    try:
        question = f"The MCP server {escape_unprintable(server)} asks:\n{_escape_text(message, LONGEST_MESSAGE)}\nAnswer it? [y]es, [n]o: "
        if input(question).strip().lower() not in _YES:
            return "decline"
        values = {}
        for name, field in fields.items():
            value = _ask_field(name, as_dict(field), needed=name in required)
            if value is not None:
                values[name] = value
    except (EOFError, _UnclearError):
        return "cancel"
    return values


class _UnclearError(Exception):
    """The user gave no clear answer in `_MOST_ATTEMPTS`."""


def _ask_field(name: str, field: Mapping[str, Any], *, needed: bool) -> Any:
    """Return the user's value of one field, None if it is left out. Raises _UnclearError."""
    default, kind = field.get("default"), _describe_kind(field)
    about = _escape_text(str(field.get("description") or field.get("title") or ""), _LONGEST_ABOUT)
    empty = "" if needed else "empty: leave it out"
    if default is not None:
        empty = f"empty: {_escape_text(json.dumps(default), _LONGEST_ABOUT)}"
    notes = "; ".join(note for note in (kind, empty) if note)
    prompt = f"{_escape_text(name, _LONGEST_ABOUT)}{f' – {about}' if about else ''} ({notes}): "
    for _ in range(_MOST_ATTEMPTS):
        typed = input(prompt).strip()
        if not typed and (default is not None or not needed):
            return default
        try:
            return _parse_answer(typed, field)
        except ValueError as fault:
            prompt = f"{fault} {_escape_text(name, _LONGEST_ABOUT)}: "
    raise _UnclearError


def _list_choices(field: Mapping[str, Any]) -> list[str]:
    """Return the values that a field, or each item of an array, may have; [] for any."""
    item = as_dict(field.get("items")) if field.get("type") == "array" else field
    titled = as_list(item.get("oneOf")) or as_list(item.get("anyOf"))
    values = as_list(item.get("enum")) or [as_dict(option).get("const") for option in titled]
    return [str(option) for option in values if option is not None]


def _describe_kind(field: Mapping[str, Any]) -> str:
    """Return in words what to type for a field."""
    choices = _join_choices(_list_choices(field))
    if field.get("type") == "array":
        return f"several of {choices}, with commas" if choices else "texts with commas"
    if choices:
        return f"one of {choices}"
    names = {"boolean": "y or n", **_NUMBERS}
    format_name = _escape_text(str(field.get("format") or "a text"), _LONGEST_FORMAT)
    return names.get(str(field.get("type")), format_name)


def _parse_answer(typed: str, field: Mapping[str, Any]) -> Any:
    """Return the typed text as a value of the field. Raises ValueError that says what to type."""
    if not typed:
        raise ValueError("Please type something.")
    kind, choices = field.get("type"), _list_choices(field)
    if kind == "array":
        texts = [text.strip() for text in typed.split(",") if text.strip()]
        return [_check_choice(text, choices) for text in texts]
    _check_choice(typed, choices)
    if kind == "boolean":
        if typed.lower() not in (*_YES, *_NO):
            raise ValueError("Please type y or n.")
        return typed.lower() in _YES
    if kind in ("integer", "number"):
        with suppress(ValueError):
            number = int(typed) if kind == "integer" else float(typed)
            # JSON has neither nan nor infinity; `isfinite` raises for a very large int
            if isinstance(number, int) or math.isfinite(number):
                return number
        raise ValueError(f"Please type {_NUMBERS[kind]}.")
    return typed


def _check_choice(typed: str, choices: list[str]) -> str:
    if choices and typed not in choices:
        raise ValueError(f"Please type one of {_join_choices(choices)}.")
    return typed


def _join_choices(choices: list[str]) -> str:
    return _escape_text(", ".join(choices), LONGEST_MESSAGE)


def _escape_text(text: str, limit: int) -> str:
    return cut_end(escape_unprintable(text), limit)
