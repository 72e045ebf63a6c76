"""Native tool calls out of fragments, whatever a provider leaves out.

Why: compatible servers disagree on how a call is cut up. Some give no index, some the same index to
every call, some repeat the name or invent a new id with every fragment. All of them are read here
by one set of rules.

Rules
- A fragment belongs to the call of its index; without an index to the call of its id; without both
  to the last call.
- With a call's index but another id *and* a name, or with a name once the arguments are complete,
  it begins a new call.
- Our own `index` counts the calls in order of first appearance.
- A call whose arguments are no JSON object is still a Call, with a `fault` that says why; it never
  raises.
"""

from __future__ import annotations

from typing import Any

from ...wire.json_text import lenient_loads
from ..parts import Call, CallDelta


def call_part(name: str, raw: str, *, call_id: str = "", index: int = 0, broken: str = "") -> Call:
    """Return the Call of arguments as written; `broken` says why the block never ended ("" when it
    did).
    """
    args, fault = _arguments(raw)
    if broken:
        fault = broken
    elif not name:
        fault = "The call has no tool name."
    return Call(
        name=name,
        args=args,
        raw_args=raw,
        call_id=call_id,
        index=index,
        incomplete=bool(broken),
        fault=fault,
    )


def _arguments(raw: str) -> tuple[dict[str, Any], str]:
    if not raw.strip():
        return {}, ""
    try:
        value = lenient_loads(raw)
    except ValueError as error:
        return {}, f"The arguments are not valid JSON: {error}."
    if isinstance(value, dict):
        return value, ""
    return {}, f"The arguments must be a JSON object, not {type(value).__name__}."


class _Slot:
    __slots__ = ("done", "id", "index", "name", "pieces")

    def __init__(self, index: int, call_id: str) -> None:
        self.index = index
        self.id = call_id
        self.name = ""
        self.pieces: list[str] = []
        self.done = False

    @property
    def raw(self) -> str:
        return "".join(self.pieces)

    def complete(self) -> bool:
        """Whether the arguments are JSON as they stand; none at all count as complete."""
        return not _arguments(self.raw)[1]


class CallTable:
    """Puts the calls of one response together."""

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._by_index: dict[Any, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}

    def __bool__(self) -> bool:
        """Whether there is any call."""
        return bool(self._slots)

    def add(self, index: Any, call_id: str, name: str, args: str) -> CallDelta | None:
        """Take one fragment; return its delta, or None when it brings nothing new."""
        slot = self._find(index, call_id, name)
        fresh = slot is None
        if slot is None:
            slot = self._open(index, call_id)
        if slot.done:
            return None
        if call_id and not slot.id:
            slot.id = call_id
            self._by_id[call_id] = slot
        if name and name != slot.name and not slot.pieces:
            slot.name += name
        if args:
            slot.pieces.append(args)
        return (
            CallDelta(args, index=slot.index, call_id=slot.id, name=slot.name)
            if args or fresh or name
            else None
        )

    def finish(self) -> list[Call]:
        """The provider says that it is done: return the calls, or none while one is not whole (see
        `close`).
        """
        waiting = [slot for slot in self._slots if not slot.done]
        if not all(slot.complete() for slot in waiting):
            return []
        return [self._call(slot, "") for slot in waiting]

    def close(self, broken: str = "") -> list[Call]:
        """The stream is over: return the calls that are left; `broken` says why they are
        incomplete.
        """
        return [self._call(slot, broken) for slot in self._slots if not slot.done]

    def _call(self, slot: _Slot, broken: str) -> Call:
        slot.done = True
        return call_part(slot.name, slot.raw, call_id=slot.id, index=slot.index, broken=broken)

    def _find(self, index: Any, call_id: str, name: str) -> _Slot | None:
        if index is not None:
            slot = self._by_index.get(index)
            return None if slot is None or _begins(slot, call_id, name) else slot
        if call_id and call_id in self._by_id:
            return self._by_id[call_id]
        last = self._slots[-1] if self._slots else None
        return None if last is None or _begins(last, call_id, name) else last

    def _open(self, index: Any, call_id: str) -> _Slot:
        slot = _Slot(len(self._slots), call_id)
        self._slots.append(slot)
        if index is not None:
            self._by_index[index] = slot
        if call_id:
            self._by_id[call_id] = slot
        return slot


def _begins(slot: _Slot, call_id: str, name: str) -> bool:
    """Whether a fragment addressed to `slot` really begins a new call."""
    if not name or (call_id and call_id == slot.id):
        return False
    if call_id and slot.id:
        return True
    return bool(slot.pieces) and slot.complete()
