"""The parts of a script as typed values: turns, calls, errors, usage, and cases.

They stand apart from `scripted` because the reader of script files (`script_file`) needs them too.
An unknown key of a turn is an error, so that a mistyped key is noticed.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ..errors import UsageError
from ..wire import plain_value

_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e6)]  # of seconds or dollars


class _Checked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the parts of a script: an unknown key is an error, a default is not written."""


class ScriptedCall(_Checked, frozen=True, kw_only=True):
    """A native tool call of a script."""

    name: str
    args: dict[str, Any] | str = {}
    id: str = ""


class ScriptedError(_Checked, frozen=True, kw_only=True):
    """How a scripted request fails; `retry_after` in seconds."""

    status: int = 500
    message: str = "the script says so"
    retry_after: _Amount | None = None
    code: str = "provider"


class ScriptedUsage(_Checked, frozen=True, kw_only=True):
    """Tokens of a scripted turn."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    cost: _Amount | None = None


class Turn(_Checked, frozen=True, kw_only=True):
    """One turn of a script; the module docstring of `scripted` explains each field."""

    text: str = ""
    chunk: int = 0
    chunks: tuple[str, ...] = ()
    thought: str | tuple[str, ...] = ()
    reasoning: str | tuple[str, ...] = ()
    calls: tuple[ScriptedCall, ...] = ()
    delay: _Amount | None = None
    usage: ScriptedUsage | None = None
    finish: str = ""
    cut: bool = False
    error: ScriptedError | None = None


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of runs whose prompt holds the text `when`."""

    when: str
    turns: tuple[Turn, ...]


def read_turn(value: Any, where: str) -> Turn:
    """Read one turn. Raises UsageError that begins with `where`."""
    if isinstance(value, Turn):
        return value
    value = plain_value(value)
    try:
        turn = Turn(text=value) if isinstance(value, str) else msgspec.convert(value, Turn)
        msgspec.json.encode(turn)  # half a character, for which no bytes stand, is an error, too
        return turn
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise UsageError(
            f"{where}: {error}. Keys of a turn: {', '.join(Turn.__struct_fields__)}."
        ) from None
