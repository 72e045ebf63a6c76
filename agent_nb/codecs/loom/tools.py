"""Reads the frames of tools in one Loom session: a call comes in one frame, or in chunks.

Rules
- Arguments that come in chunks wait for their `tool_call`. Without it they become a call when
  another frame of the call comes (approval, start, output, end), a node exits or the run ends. This
  frame may add the id that the chunks lacked; an approval may also complete the arguments.
- The model reads `result`, an excerpt of `raw_result`; people see `raw_result`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...events import Approval, Call, Event, Progress, Result, Started
from ...wire import as_dict
from ..blocks import Blocks, OpenBlock
from ..call_matching import CallMatcher
from ..foreign_values import parse_json, text_of
from ..passthrough import note_difference
from ..run_builder import LineHandlers, RunBuilder
from .arguments import ArgumentBlocks, call_id_of
from .lines import Obj, draw_chunk, draw_frame


class ToolFrames:
    """Reads the tool frames of one session."""

    def __init__(self, run: RunBuilder, blocks: Blocks) -> None:
        self._run, self._blocks = run, blocks
        self._arguments = ArgumentBlocks(blocks)
        self._calls = CallMatcher()

    def clear(self) -> None:
        """Begin another run."""
        self._calls.clear()

    def close_unfinished_calls(self) -> list[Event]:
        """Close the calls whose arguments came in chunks but never whole; return them."""
        return [self._call_from_chunks(block) for block in self._blocks.list_open()]

    def _close_chunked_call(self, name: str, call_id: str, args: Any = None) -> list[Event]:
        """Close and return the call in chunks with this id or tool; all such, if both are empty."""
        if not name and not call_id:
            return self.close_unfinished_calls()
        if call_id and self._calls.state_of(call_id):
            return []
        block = self._arguments.take(name, call_id)
        return [self._call_from_chunks(block, name, call_id, args)] if block is not None else []

    def _call_from_chunks(
        self, block: OpenBlock, name: str = "", call_id: str = "", args: Any = None
    ) -> Event:
        """Return the call of a block; `name`, `call_id` and `args` fill in what its chunks lack."""
        self._blocks.take_block(block.key)
        block.set_name(name)
        call_id, synthetic = self._calls.open_call(block.name, call_id_of(block) or call_id)
        parsed = parse_json(block.text)
        if parsed is None:
            parsed = args
        fields: Obj = {"call_id": call_id, "synthetic": synthetic, "name": block.name}
        fields |= {"args": as_dict(parsed), "incomplete": parsed is None}
        return self._blocks.complete_call(block, {"form": "chunks"}, **fields)

    def _chunk(self, frame: Obj) -> list[Event]:
        """Read a piece of the arguments of a call that is not open yet."""
        text, closing = frame.get("arguments_delta"), self._blocks.close_text()
        name, wire_id = text_of(frame, "name"), text_of(frame, "call_id")
        if not isinstance(text, str) or self._calls.state_of(wire_id) == "open":
            return [*closing, *self._run.unknown(frame)]
        key, drawn = self._arguments.find_key(name, wire_id, text), draw_chunk("call", text)
        return [*closing, *self._blocks.add_arguments(key, name, text, frame, drawn)]

    def _call(self, frame: Obj) -> list[Event]:
        """Read a whole call; chunks that came before hold the text of its arguments."""
        name, wire_id = text_of(frame, "name"), text_of(frame, "call_id")
        if self._calls.state_of(wire_id) == "open":
            return self._run.unknown(frame)
        block = self._arguments.take(name, wire_id)
        wire = wire_id or (call_id_of(block) if block is not None else "")
        fields = self._calls.begin_call(name, wire, frame.get("arguments"))
        if block is None:
            return [self._run.line(Call, frame, **fields)]
        event = self._blocks.complete_call(block, **fields)
        return [self._run.add_note(event, {"call": note_difference(frame, draw_frame(event))})]

    def _about_call(
        self,
        cls: type[Event],
        frame: Obj,
        *,
        arguments: Any = None,
        ends: bool = False,
        **fields: Any,
    ) -> list[Event]:
        """Return the event of a frame about a call, after the call itself if that is new.

        `arguments`: the arguments in the frame, if it has any. `ends`: the frame ends the call.
        """
        name, wire_id = text_of(frame, "name"), text_of(frame, "call_id")
        # output without an id belongs to a running call before open chunks
        running = cls is Progress and not wire_id and self._calls.is_open(name)
        out = [] if running else self._close_chunked_call(name, wire_id, arguments)
        find_call = self._calls.match_result if ends else self._calls.match_line
        match = find_call(name, wire_id)
        call = {**self._run.envelope(frame), "name": name, "args": as_dict(arguments)}
        out += self._run.implicit_call(match, wire_id, **call)
        return [*out, self._run.line(cls, frame, match.note, call_id=match.call_id, **fields)]

    def _started(self, frame: Obj) -> list[Event]:
        return self._about_call(Started, frame, name=text_of(frame, "name"))

    def _output(self, frame: Obj) -> list[Event]:
        if not isinstance(frame.get("content"), str):
            return self._run.unknown(frame)
        return self._about_call(Progress, frame, text=frame["content"])

    def _ended(self, frame: Obj) -> list[Event]:
        """Read the result of a tool; a second one is an extension."""
        if self._calls.state_of(text_of(frame, "call_id")) == "over":
            return self._run.unknown(frame)
        text, raw = frame.get("result", ""), frame.get("raw_result")
        fields: Obj = {
            "name": text_of(frame, "name"),
            "content": text,
            "status": "error" if frame.get("is_error") is True else "ok",
            "display": {"text/plain": raw} if isinstance(raw, str) and raw != text else None,
        }
        return self._about_call(Result, frame, ends=True, **fields)

    def _approval(self, frame: Obj) -> list[Event]:
        """Read the question whether a call may run; it may complete the call's arguments."""
        arguments = frame.get("arguments")
        return self._about_call(Approval, frame, arguments=arguments, args=as_dict(arguments))

    #: Type of an object -> the method that reads it.
    HANDLERS: ClassVar[LineHandlers] = {
        "tool_call_chunk": _chunk,
        "tool_call": _call,
        "tool_start": _started,
        "tool_output": _output,
        "tool_end": _ended,
        "tool_approval": _approval,
    }


KINDS = frozenset(ToolFrames.HANDLERS)
