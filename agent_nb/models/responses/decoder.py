"""Responses API of OpenAI and compatible servers: response bytes in, parts out.

This API sends everything several times: in deltas, then as a whole text, then in the whole item,
then in the whole response. Deltas count; the later copies only supply what was not streamed.
`items` decides which item an event is about.

Rules
- An item that is neither a message nor a call is also emitted as a Resend: it goes back unchanged,
  in order. A message sends only its `phase` back in this way.
- If anything was streamed, only messages and calls are taken from the whole response: a Resend
  would come after the call that its item precedes, an order that the API may refuse.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...wire import SurrogatePairs, as_dict, as_list
from ..chat.calls import make_call
from ..http.decoder import CALL_CUT, CUT, EventDecoder
from ..http.values import flatten_text, is_empty, make_usage, to_text
from ..parts import CallDelta, Close, Extra, Finish, Head, Part, Resend, Text, Thought
from .items import CALL, MESSAGE, REASONING, Item, Items, keys_of

PROVIDER = "openai-responses"
# endings of the types of unknown events that are not emitted, because they only report progress
_PROGRESS_ENDINGS = (
    ".in_progress", ".searching", ".completed", ".generating", ".interpreting", ".queued",
    ".failed", ".partial_image", ".done", ".added",
)  # fmt: skip
_FAILED = ("failed", "cancelled")  # statuses of a response that failed, perhaps without words
# type of an item with blocks -> the class of their parts
_PART_CLASSES: dict[str, type[Text | Thought]] = {MESSAGE: Text, REASONING: Thought}


class _BlockType(NamedTuple):
    """One type of block; `number_field` of its events has the block's number within the item."""

    item_type: str
    number_field: str


# beginning of an event's type -> the type of block that it is about
_BLOCK_TYPES = {
    "response.output_text": _BlockType(MESSAGE, "content_index"),
    "response.refusal": _BlockType(MESSAGE, "content_index"),
    "response.reasoning_text": _BlockType(REASONING, "content_index"),
    "response.reasoning_summary_text": _BlockType(REASONING, "summary_index"),
}
_BLOCK_PIECES = {f"{beginning}.delta": block for beginning, block in _BLOCK_TYPES.items()}
_BLOCK_ENDS = {f"{beginning}.done": block for beginning, block in _BLOCK_TYPES.items()}


class ResponsesDecoder(EventDecoder):
    """Decodes one response.

    Most events are about blocks (`_BLOCK_PIECES`, `_BLOCK_ENDS`); the table `events` of the base
    class, at the end of this file, has the others. Methods append their parts to `out`. `item` is
    an item as the server sent it, `entry` is our Item for it.
    """

    def __init__(self, status: int = 200) -> None:
        super().__init__(status)
        self._halves = SurrogatePairs()  # half a character at the end of a piece, by block
        self._head: Head | None = None  # as emitted last
        self._items = Items()
        self._open_blocks: dict[str, Item] = {}  # name of the block -> its entry
        self._unknown_types: set[str] = set()  # of events; each is emitted once, as Extra
        self._call_fault = CUT  # the fault of a call that is still open at the end, "" for none

    def _finish(self, out: list[Part]) -> None:
        """End the body: close open blocks and calls, as incomplete if the response is not done."""
        for block in tuple(self._open_blocks):
            self._close_block(block, out, incomplete=not self.done)
        for entry in self._items.list_open(CALL):
            self._emit_call({}, entry, out, broken=self._call_fault)

    def _read_event(
        self, event_type: str, event: dict[str, Any], out: list[Part], *, failed: bool
    ) -> None:
        """Read an event; a bare response, from a server that does not stream, ends the answer."""
        if event.get("object") == "response" and "output" in event:
            self.on_end({"response": event}, out)
        elif event_type in _BLOCK_PIECES:
            self._emit_piece(_BLOCK_PIECES[event_type], event, to_text(event.get("delta")), out)
        elif event_type in _BLOCK_ENDS:
            self._end_block(_BLOCK_ENDS[event_type], event, out)
        else:
            super()._read_event(event_type, event, out, failed=failed)

    def _read_unknown(self, event_type: str, event: dict[str, Any], out: list[Part]) -> None:
        if event_type not in self._unknown_types and not event_type.endswith(_PROGRESS_ENDINGS):
            self._unknown_types.add(event_type)
            out.append(Extra(PROVIDER, event_type, event))

    def on_begin(self, event: dict[str, Any], out: list[Part]) -> None:
        """Emit the head once, and again if it first names the model later (llama.cpp)."""
        response = event.get("response")
        if isinstance(response, dict):
            head = Head(self._status, to_text(response.get("model")), to_text(response.get("id")))
            if self._head is None or (head.model and not self._head.model):
                self._head = head
                out.append(head)

    def on_item(self, event: dict[str, Any], out: list[Part]) -> None:
        """Begin an item; announce a call."""
        item = as_dict(event.get("item"))
        call_id = to_text(item.get("call_id"))
        entry = self._items.begin(to_text(item.get("type")), keys_of(event, item), call_id)
        if entry.type == CALL and not entry.streamed:
            entry.identify(call_id or to_text(item.get("id")), to_text(item.get("name")))
            self._emit_arguments(entry, to_text(item.get("arguments")), out)

    def on_arguments(self, event: dict[str, Any], out: list[Part]) -> None:
        """Read a fragment of a call's arguments."""
        entry = self._items.find_for_piece(CALL, keys_of(event))
        text = to_text(event.get("delta"))
        if not entry.call_id:
            entry.identify(to_text(event.get("call_id")) or to_text(event.get("item_id")), "")
        if text or not entry.streamed:
            self._emit_arguments(entry, text, out)

    def on_arguments_done(self, event: dict[str, Any], out: list[Part]) -> None:
        """End a call's arguments; emit them if they never streamed."""
        entry = self._items.find_for_end(CALL, keys_of(event))
        if entry is not None and not entry.done and not entry.pieces and event.get("arguments"):
            self._emit_arguments(entry, to_text(event["arguments"]), out)

    def on_item_done(self, event: dict[str, Any], out: list[Part]) -> None:
        """Complete an item."""
        item = as_dict(event.get("item"))
        item_type, keys = to_text(item.get("type")), keys_of(event, item)
        entry = self._items.find_for_end(item_type, keys, to_text(item.get("name")))
        entry = entry or self._items.begin(item_type, keys)
        if not entry.done:
            self._complete_item(item, entry, out)

    def on_end(self, event: dict[str, Any], out: list[Part]) -> None:
        """End the response: emit unstreamed content, the usage and the finish reason."""
        response = as_dict(event.get("response"))
        self.on_begin(event, out)
        output = [item for item in as_list(response.get("output")) if isinstance(item, dict)]
        if self._items:
            self._emit_missing(output, out)
        else:  # nothing was streamed
            for index, item in enumerate(output):
                keys = keys_of({"output_index": index}, item)
                self._complete_item(item, self._items.begin(to_text(item.get("type")), keys), out)
        usage = response.get("usage")
        if isinstance(usage, dict) and not is_empty(usage):
            out.append(make_usage(usage))
        if response.get("incomplete_details"):
            out.append(Extra(PROVIDER, "incomplete_details", response["incomplete_details"]))
        out.append(Finish(to_text(response.get("status")) or "completed"))
        self.done = True
        self._call_fault = CALL_CUT if response.get("incomplete_details") else ""
        failed = event.get("type") == "response.failed" or response.get("status") in _FAILED
        if response.get("error") or failed:
            self._report_error(response.get("error"), out)

    def _emit_missing(self, output: list[dict[str, Any]], out: list[Part]) -> None:
        """Emit the messages and calls of the whole response that were not streamed."""
        # counted, since keys do not show which calls are missing: servers change them in `output`
        calls = sum(item.get("type") == CALL for item in output)
        missing_calls = calls - len(self._items.list_all(CALL))
        no_message = not self._items.list_all(MESSAGE)
        for item in output:
            item_type, keys = to_text(item.get("type")), keys_of({}, item)
            if item_type not in (MESSAGE, CALL):
                continue
            entry = self._items.find_for_end(item_type, keys, to_text(item.get("name")))
            if entry is None and item_type == CALL and missing_calls > 0:
                entry = self._items.begin(item_type, keys)
                missing_calls -= 1
            elif entry is None and item_type == MESSAGE and no_message:
                entry = self._items.begin(item_type, keys)
            if entry is not None and not entry.done:
                self._complete_item(item, entry, out)

    def _complete_item(self, item: dict[str, Any], entry: Item, out: list[Part]) -> None:
        """Close an item and its blocks; emit its content that was not streamed."""
        for block in [b for b, owner in self._open_blocks.items() if owner is entry]:
            self._close_block(block, out)
        entry.done = True
        if entry.type == CALL:
            self._emit_call(item, entry, out)
            return
        self._emit_texts(item, entry, out)
        if entry.type != MESSAGE:
            out.append(Resend(PROVIDER, item))
        elif item.get("phase"):  # the only field of a message that goes back apart from its text
            out.append(Resend(PROVIDER, {"phase": item["phase"]}))

    def _emit_texts(self, item: dict[str, Any], entry: Item, out: list[Part]) -> None:
        """Emit the texts of a message, or of reasoning, that were not streamed."""
        if entry.type not in _PART_CLASSES:
            return
        is_summary = entry.type == REASONING and not item.get("content")
        pieces = item.get("summary" if is_summary else "content")
        texts = {
            _name_block(entry, number, is_summary=is_summary): flatten_text(piece)
            for number, piece in enumerate(as_list(pieces) or [pieces])
        }
        # servers may number blocks wrongly: lengths show whether the streamed texts are these
        streamed = sum(len(text) for block, text in texts.items() if entry.sizes.get(block))
        if streamed != sum(entry.sizes.values()):
            return
        for block, text in texts.items():
            if text and not entry.sizes.get(block):
                entry.stream()
                out += [_PART_CLASSES[entry.type](text, block), Close(block)]

    def _emit_arguments(self, entry: Item, text: str, out: list[Part]) -> None:
        """Emit a piece of a call's arguments; the first, perhaps empty, announces the call."""
        entry.stream(text)
        out.append(CallDelta(text, index=entry.index, call_id=entry.call_id, name=entry.tool))

    def _emit_call(
        self, item: dict[str, Any], entry: Item, out: list[Part], broken: str = ""
    ) -> None:
        """Emit the call of `entry`; `item` is its complete form, {} if that never came.

        `broken`: why the call is incomplete, "" if it is complete.
        """
        raw = to_text(item.get("arguments")) or "".join(entry.pieces)
        entry.identify(to_text(item.get("call_id")), to_text(item.get("name")))
        if not entry.pieces:
            self._emit_arguments(entry, raw, out)
        call_id, index = entry.call_id, entry.index
        out.append(make_call(entry.tool, raw, call_id=call_id, index=index, broken=broken))

    def _emit_piece(
        self, block_type: _BlockType, event: dict[str, Any], piece: str, out: list[Part]
    ) -> None:
        """Emit a piece of the text or reasoning that `event` is about."""
        entry = self._items.find_for_piece(block_type.item_type, keys_of(event))
        block = _find_block(entry, block_type, event)
        text = self._halves.feed(block, piece)
        self._open_blocks[block] = entry
        entry.stream()
        entry.sizes[block] = entry.sizes.get(block, 0) + len(text)
        if text:
            out.append(_PART_CLASSES[entry.type](text, block))

    def _end_block(self, block_type: _BlockType, event: dict[str, Any], out: list[Part]) -> None:
        """Close a block; emit it whole if its item never streamed."""
        item_type, keys = block_type.item_type, keys_of(event)
        entry = self._items.find_known(item_type, keys)
        if entry is None:
            if self._items.list_all(item_type) and not self._items.list_open(item_type):
                return  # all items of this type are done: the event repeats one of them
            entry = self._items.find_for_piece(item_type, keys)
        if not entry.streamed:
            whole = flatten_text(event.get("text") or event.get("refusal"))
            self._emit_piece(block_type, event, whole, out)
        block = _find_block(entry, block_type, event)
        if block in self._open_blocks:
            self._close_block(block, out)

    def _close_block(self, block: str, out: list[Part], *, incomplete: bool = False) -> None:
        """Close a block; emit half a character that waits in it."""
        entry = self._open_blocks.pop(block)
        if half := self._halves.end(block):
            out.append(_PART_CLASSES[entry.type](half, block))
        out.append(Close(block, incomplete=incomplete))


def _find_block(entry: Item, block_type: _BlockType, event: dict[str, Any]) -> str:
    """Return the name of the block that `event` is about."""
    number = event.get(block_type.number_field)
    is_summary = block_type.number_field == "summary_index"
    return _name_block(entry, number if isinstance(number, int) else 0, is_summary=is_summary)


def _name_block(entry: Item, number: int, *, is_summary: bool) -> str:
    """Return the name of a block: `0.1` is content 1 of item 0, `0.s1` its summary 1."""
    return f"{entry.block}.{'s' if is_summary else ''}{number}"


# type of an event -> the method that reads it
ResponsesDecoder.events = {
    "response.created": ResponsesDecoder.on_begin,
    "response.in_progress": ResponsesDecoder.on_begin,
    "response.queued": ResponsesDecoder.on_begin,
    "response.output_item.added": ResponsesDecoder.on_item,
    "response.output_item.done": ResponsesDecoder.on_item_done,
    "response.output_text.annotation.added": lambda _, event, out: out.append(
        Extra(PROVIDER, "annotation", event.get("annotation"))  # such as a source
    ),
    "response.function_call_arguments.delta": ResponsesDecoder.on_arguments,
    "response.function_call_arguments.done": ResponsesDecoder.on_arguments_done,
    "response.completed": ResponsesDecoder.on_end,
    "response.incomplete": ResponsesDecoder.on_end,
    "response.failed": ResponsesDecoder.on_end,
    "response.cancelled": ResponsesDecoder.on_end,
}
