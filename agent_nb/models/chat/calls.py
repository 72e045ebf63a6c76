"""Assembles native tool calls from fragments, whatever a provider leaves out.

    {"index": 0, "id": "c1", "function": {"name": "search", "arguments": "{\\"q"}}
    {"index": 0, "function": {"arguments": "uery\\": \\"tides\\"}"}}

Compatible servers disagree on how a call is split. Some send no index, some the same index for
every call, some repeat the name or invent a new id with every fragment. A call whose arguments are
not a JSON object is still a Call, with a `fault` that gives the reason.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...wire import lenient_loads
from ..parts import Call, CallDelta


def make_call(name: str, raw: str, *, call_id: str = "", index: int = 0, broken: str = "") -> Call:
    """Return the Call for arguments as written; `broken`: why it is incomplete, "" if it is not."""
    args, fault = _parse_arguments(raw)
    if broken:
        fault = broken
    elif not name:
        fault = "The call has no tool name."
    return Call(name, args, raw, call_id, index, incomplete=bool(broken), fault=fault)


def _parse_arguments(raw: str) -> tuple[dict[str, Any], str]:
    """Return (arguments, ""), or ({}, what is wrong) if the text is not a JSON object."""
    if not raw.strip():
        return {}, ""
    try:
        value = lenient_loads(raw)
    except ValueError as error:
        return {}, f"The arguments are not valid JSON: {error}."
    if isinstance(value, dict):
        return value, ""
    return {}, f"The arguments must be a JSON object, not {type(value).__name__}."


class _OpenCall(msgspec.Struct, eq=False):
    """A call in progress, until it is returned (`done`)."""

    index: int
    id: str
    name: str = ""
    pieces: list[str] = []
    done: bool = False

    @property
    def raw(self) -> str:
        return "".join(self.pieces)

    def add(self, call_id: str, name: str, args: str) -> None:
        """Add one fragment."""
        self.id = self.id or call_id
        # a name may come in pieces before the arguments, and be repeated as a whole
        if name != self.name and not self.pieces:
            self.name += name
        if args:
            self.pieces.append(args)

    def close(self, broken: str) -> Call:
        """Return the call; later fragments are ignored."""
        self.done = True
        return make_call(self.name, self.raw, call_id=self.id, index=self.index, broken=broken)

    def is_complete(self) -> bool:
        """Return whether the arguments so far are a JSON object; an empty text counts as {}."""
        return not _parse_arguments(self.raw)[1]


class CallTable:
    """Assembles the calls of one response."""

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []
        self._by_index: dict[Any, _OpenCall] = {}
        self._by_id: dict[str, _OpenCall] = {}

    def __bool__(self) -> bool:
        """Return whether there is any call."""
        return bool(self._calls)

    def add(self, index: Any, call_id: str, name: str, args: str) -> CallDelta | None:
        """Add one fragment; return its delta, or None if it adds nothing."""
        call = self._find(index, call_id, name)
        is_new = call is None
        if call is None:
            call = self._open(index, call_id)
        if call.done:
            return None
        if call_id and not call.id:
            self._by_id[call_id] = call
        call.add(call_id, name, args)
        # without arguments, only the beginning of a call and its name are worth a delta
        if args or is_new or name:
            return CallDelta(args, index=call.index, call_id=call.id, name=call.name)
        return None

    def close_complete(self) -> list[Call]:
        """Close and return the open calls if all are complete; else close none and return []."""
        waiting = [call for call in self._calls if not call.done]
        if not all(call.is_complete() for call in waiting):
            return []
        return [call.close("") for call in waiting]

    def close(self, broken: str = "") -> list[Call]:
        """End the stream; return the open calls. `broken`: why they are incomplete, if they are."""
        return [call.close(broken) for call in self._calls if not call.done]

    def _find(self, index: Any, call_id: str, name: str) -> _OpenCall | None:
        """Return the call that a fragment continues, None for a new call."""
        if index is None and call_id in self._by_id:
            return self._by_id[call_id]
        newest = self._calls[-1] if self._calls else None
        call = newest if index is None else self._by_index.get(index)
        return None if call is None or _begins_call(call, call_id, name) else call

    def _open(self, index: Any, call_id: str) -> _OpenCall:
        call = _OpenCall(len(self._calls), call_id)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        if call_id:
            self._by_id[call_id] = call
        return call


def _begins_call(call: _OpenCall, call_id: str, name: str) -> bool:
    """Return whether a fragment addressed to `call` begins a new call.

    It does if it has a name and another id or, where an id is missing, comes after complete
    arguments.
    """
    if not name or (call_id and call_id == call.id):
        return False
    if call_id and call.id:
        return True
    return bool(call.pieces) and call.is_complete()
