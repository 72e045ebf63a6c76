"""Joins the calls of a model from the fragments in which they arrive.

Providers send fragments whatever the dialect is, and the text dialects share `cut_calls`, which
reads a block that was cut off. A call that the stream cut off, or whose arguments are not a JSON
object, is still a Call, with a `fault`; it does not run.
"""

from __future__ import annotations

from typing import Any

from ..models import Call, CallDelta, Fault, Part
from .call_scan import CallScan
from .calls import read_args

CUT_OFF = "The call was cut off before its arguments were complete."
NAMELESS = "The call has no tool name."
CUT_IN_CALL = "The model was stopped while it wrote a call. Nothing of it ran."


class _PartialCall:
    """A call that streams in."""

    def __init__(self, delta: CallDelta) -> None:
        self.index = delta.index
        self.call_id = ""
        self.name = ""
        self.pieces: list[str] = []

    def add(self, delta: CallDelta) -> None:
        self.call_id = self.call_id or delta.call_id
        self.name = self.name or delta.name
        if delta.text:
            self.pieces.append(delta.text)

    def make_call(self, *, incomplete: bool) -> Call:
        raw, args = "".join(self.pieces), dict[str, Any]()
        fault = "" if self.name else NAMELESS
        try:
            args = read_args(raw)
        except ValueError as error:
            fault = f"The arguments are not a JSON object: {error}."
        if incomplete:
            fault = CUT_OFF
        return Call(self.name, args, raw, self.call_id, self.index, incomplete, fault)


class CallAssembler:
    """Assembles the calls of one response."""

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []
        self._open: dict[int, _PartialCall] = {}  # index -> its newest call

    def feed(self, delta: CallDelta) -> None:
        """Take one fragment."""
        partial = self._open.get(delta.index)
        if partial is None or (
            delta.call_id and partial.call_id and delta.call_id != partial.call_id
        ):
            partial = self._open[delta.index] = _PartialCall(delta)
            self._calls.append(partial)
        partial.add(delta)

    def drop(self, index: int) -> bool:
        """Forget the call at `index`, which has come as a whole; return whether it had begun."""
        partial = self._open.pop(index, None)
        if partial is not None:
            self._calls.remove(partial)
        return partial is not None

    def close(self, incomplete: bool = False) -> list[Call]:
        """Return the calls in order of first appearance; `incomplete`: the stream was cut off."""
        calls, self._calls, self._open = self._calls, [], {}
        return [partial.make_call(incomplete=incomplete) for partial in calls]


def cut_calls(text: str, scan: CallScan, raw: str, position: int) -> list[Call] | list[Fault]:
    """Return the calls in the JSON `text` of a cut block as incomplete Calls; without any, a Fault.

    `scan`: a new CallScan, which reads `text` again. The `raw` of the Fault is the text with its
    marker, its `position` the offset of the block in the turn.
    """
    assembler, out = CallAssembler(), list[Part]()
    stop, pos = scan.run(text, 0, out)
    while stop == "sigil":  # the caller has found no marker in `text`: skip the character
        stop, pos = scan.run(text, pos + 1, out)
    for part in out:
        if isinstance(part, CallDelta):
            assembler.feed(part)
    return assembler.close(incomplete=True) or [Fault("incomplete", CUT_IN_CALL, raw, position)]
