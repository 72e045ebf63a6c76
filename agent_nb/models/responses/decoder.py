"""Responses API of OpenAI and compatible servers: response bytes in, parts out.

Why: this API sends everything several times: in deltas, then as a whole text, then in the whole
item, then in the whole response. Deltas count; the later copies only supply what was not streamed.

Rules
- `items` decides which item an event is about: servers name items badly or not at all.
- A block is named by item and number: `0.1` is content 1 of item 0, `0.s1` its summary 1, `0.c1`
  content 1 of reasoning that came whole.
- Every item except messages and calls is also a Resend: it goes back unchanged, in order. Of a
  message only the `phase` is one.
- `feed` and `close` never raise; a broken stream closes its blocks as incomplete and is a Fault.
"""

from __future__ import annotations

from typing import Any

from ...wire import SurrogatePairs, as_dict, as_list
from ..chat.calls import make_call
from ..http.decoder import CALL_CUT, CUT, EventDecoder
from ..http.values import flatten_text, make_usage, to_text
from ..parts import CallDelta, Close, Extra, Finish, Head, Part, Resend, Text, Thought
from .items import CALL, MESSAGE, REASONING, Item, Items, names_of

PROVIDER = "openai-responses"
# endings of the types of unknown events that are not kept, because they only report progress
_PROGRESS_ENDINGS = (
    ".in_progress", ".searching", ".completed", ".generating", ".interpreting", ".queued",
    ".failed", ".partial_image", ".done", ".added",
)  # fmt: skip

# beginning of an event's type -> the class of its parts, the field that holds the block's number
_BLOCKS: dict[str, tuple[type[Text | Thought], str]] = {
    "response.output_text": (Text, "content_index"),
    "response.refusal": (Text, "content_index"),
    "response.reasoning_text": (Thought, "content_index"),
    "response.reasoning_summary_text": (Thought, "summary_index"),
}
_BLOCK_PIECES = {f"{beginning}.delta": block for beginning, block in _BLOCKS.items()}
_BLOCK_ENDS = {f"{beginning}.done": block for beginning, block in _BLOCKS.items()}


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
        # block -> its entry and the class of its parts
        self._open_blocks: dict[str, tuple[Item, type[Text | Thought]]] = {}
        self._unknown_kinds: set[str] = set()  # kept as Extra, once each
        self._call_fault = CUT  # the fault of a call that is still open at the end, "" for none

    def _finish(self, out: list[Part]) -> None:
        """End the body: close open blocks and calls, as incomplete if the response is not done."""
        for block in tuple(self._open_blocks):
            self._close_block(block, out, incomplete=not self.done)
        for entry in self._items.open(CALL):
            self._end_call({}, entry, out, broken=self._call_fault)

    def _event(self, kind: str, event: dict[str, Any], out: list[Part], *, failed: bool) -> None:
        """Read an event; a bare response, from a server that does not stream, ends the answer."""
        if event.get("object") == "response" and "output" in event:
            self.on_end({"response": event}, out)
        elif kind in _BLOCK_PIECES:
            self._emit_piece(*_BLOCK_PIECES[kind], event, out)
        elif kind in _BLOCK_ENDS:
            self._end_block(*_BLOCK_ENDS[kind], event, out)
        else:
            super()._event(kind, event, out, failed=failed)

    def _unknown(self, kind: str, event: dict[str, Any], out: list[Part]) -> None:
        if kind not in self._unknown_kinds and not kind.endswith(_PROGRESS_ENDINGS):
            self._unknown_kinds.add(kind)
            out.append(Extra(PROVIDER, kind, event))

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
        kind, call_id = to_text(item.get("type")), to_text(item.get("call_id"))
        entry = self._items.begin(kind, names_of(event, item), call_id)
        if kind == CALL and not entry.streamed:
            entry.identify(call_id or to_text(item.get("id")), to_text(item.get("name")))
            self._pass_arguments(entry, to_text(item.get("arguments")), out)

    def on_arguments(self, event: dict[str, Any], out: list[Part]) -> None:
        """Read a fragment of a call's arguments."""
        entry, text = self._items.piece(CALL, names_of(event)), to_text(event.get("delta"))
        if not entry.call_id:
            entry.identify(to_text(event.get("call_id")) or to_text(event.get("item_id")), "")
        if text or not entry.streamed:
            self._pass_arguments(entry, text, out)

    def on_arguments_done(self, event: dict[str, Any], out: list[Part]) -> None:
        """End a call's arguments; pass them on if they never streamed."""
        entry = self._items.end(CALL, names_of(event))
        if entry is not None and not entry.done and not entry.pieces and event.get("arguments"):
            self._pass_arguments(entry, to_text(event["arguments"]), out)

    def on_item_done(self, event: dict[str, Any], out: list[Part]) -> None:
        """Complete an item."""
        item = as_dict(event.get("item"))
        kind, names = to_text(item.get("type")), names_of(event, item)
        tool = to_text(item.get("name"))
        entry = self._items.end(kind, names, tool) or self._items.begin(kind, names)
        if not entry.done:
            self._complete_item(item, entry, out)

    def on_annotation(self, event: dict[str, Any], out: list[Part]) -> None:
        """Keep an annotation of the text, such as a source."""
        out.append(Extra(PROVIDER, "annotation", event.get("annotation")))

    def on_end(self, event: dict[str, Any], out: list[Part]) -> None:
        """End the response: emit unstreamed content, the usage and the finish reason."""
        response = as_dict(event.get("response"))
        self.on_begin(event, out)
        output = [item for item in as_list(response.get("output")) if isinstance(item, dict)]
        if self._items.all:
            self._pass_missing(output, out)
        else:
            self._pass_all(output, out)
        usage = response.get("usage")
        if isinstance(usage, dict) and usage:
            out.append(make_usage(usage))
        if response.get("incomplete_details"):
            out.append(Extra(PROVIDER, "incomplete_details", response["incomplete_details"]))
        out.append(Finish(to_text(response.get("status")) or "completed"))
        self.done = True
        self._call_fault = CALL_CUT if response.get("incomplete_details") else ""
        if response.get("error"):
            self._error(response["error"], out)

    def _pass_all(self, output: list[dict[str, Any]], out: list[Part]) -> None:
        """Pass on the items of a response of which nothing was streamed."""
        for index, item in enumerate(output):
            names = names_of({"output_index": index}, item)
            self._complete_item(item, self._items.begin(to_text(item.get("type")), names), out)

    def _pass_missing(self, output: list[dict[str, Any]], out: list[Part]) -> None:
        """Pass on the messages and calls of the whole response that were not streamed."""
        # counted, since names do not show which calls are missing: servers change them in `output`
        missing_calls = sum(item.get("type") == CALL for item in output) - len(self._items.of(CALL))
        no_message = not self._items.of(MESSAGE)
        for item in output:
            kind, names = to_text(item.get("type")), names_of({}, item)
            if kind not in (MESSAGE, CALL):
                continue
            entry = self._items.end(kind, names, to_text(item.get("name")))
            if entry is None and kind == CALL and missing_calls > 0:
                entry = self._items.begin(kind, names)
                missing_calls -= 1
            elif entry is None and kind == MESSAGE and no_message:
                entry = self._items.begin(kind, names)
            if entry is not None and not entry.done:
                self._complete_item(item, entry, out)

    def _complete_item(self, item: dict[str, Any], entry: Item, out: list[Part]) -> None:
        """Close an item and its blocks; pass on its content if none was streamed."""
        for block in [b for b, (owner, _) in self._open_blocks.items() if owner is entry]:
            self._close_block(block, out)
        entry.done = True
        if entry.kind == CALL:
            self._end_call(item, entry, out)
            return
        if not entry.streamed:
            self._pass_whole(item, entry, out)
        if entry.kind != MESSAGE:
            out.append(Resend(PROVIDER, item))
        elif item.get("phase"):  # the only field of a message that goes back apart from its text
            out.append(Resend(PROVIDER, {"phase": item["phase"]}))

    def _pass_whole(self, item: dict[str, Any], entry: Item, out: list[Part]) -> None:
        """Pass on the texts of a message, or of reasoning, that was not streamed."""
        if entry.kind == MESSAGE:
            parts: list[Text | Thought] = [
                Text(text, f"{entry.block}.{n}")
                for n, text in enumerate(_piece_texts(item, "content"))
            ]
        elif entry.kind == REASONING:
            field = "content" if item.get("content") else "summary"
            parts = [
                Thought(text, f"{entry.block}.{field[0]}{n}")
                for n, text in enumerate(_piece_texts(item, field))
            ]
        else:
            return
        for part in parts:
            entry.stream()
            out += [part, Close(part.block)]

    def _pass_arguments(self, entry: Item, text: str, out: list[Part]) -> None:
        """Emit a piece of a call's arguments; the first, perhaps empty, announces the call."""
        entry.stream(text)
        out.append(CallDelta(text, index=entry.index, call_id=entry.call_id, name=entry.name))

    def _end_call(
        self, item: dict[str, Any], entry: Item, out: list[Part], broken: str = ""
    ) -> None:
        """Emit the call of `entry`; `item` is its complete form, {} if that never came.

        `broken`: why the call is incomplete, "" if it is complete.
        """
        raw = to_text(item.get("arguments")) or "".join(entry.pieces)
        entry.identify(to_text(item.get("call_id")), to_text(item.get("name")))
        if not entry.pieces:
            self._pass_arguments(entry, raw, out)
        call_id, index = entry.call_id, entry.index
        out.append(make_call(entry.name, raw, call_id=call_id, index=index, broken=broken))

    def _emit_piece(
        self, kind: type[Text | Thought], number_field: str, event: dict[str, Any], out: list[Part]
    ) -> None:
        """Emit a piece of text or reasoning; `number_field` has the number of its block."""
        entry = self._items.piece(MESSAGE if kind is Text else REASONING, names_of(event))
        block = _block_name(entry, event, number_field)
        text = self._halves.feed(block, to_text(event.get("delta")))
        self._open_blocks[block] = (entry, kind)
        entry.stream()
        if text:
            out.append(kind(text, block))

    def _end_block(
        self, kind: type[Text | Thought], number_field: str, event: dict[str, Any], out: list[Part]
    ) -> None:
        """Close a block; pass it on whole if its item never streamed."""
        item_kind, names = (MESSAGE if kind is Text else REASONING), names_of(event)
        entry = self._items.known(item_kind, names)
        if entry is None:
            if self._items.of(item_kind) and not self._items.open(item_kind):
                return  # all items of this kind are done: the event repeats one of them
            entry = self._items.piece(item_kind, names)
        if not entry.streamed:
            whole = {**event, "delta": flatten_text(event.get("text") or event.get("refusal"))}
            self._emit_piece(kind, number_field, whole, out)
        block = _block_name(entry, event, number_field)
        if block in self._open_blocks:
            self._close_block(block, out)

    def _close_block(self, block: str, out: list[Part], *, incomplete: bool = False) -> None:
        """Close a block; emit half a character that waits in it."""
        kind = self._open_blocks.pop(block)[1]
        if half := self._halves.end(block):
            out.append(kind(half, block))
        out.append(Close(block, incomplete=incomplete))


def _block_name(entry: Item, event: dict[str, Any], number_field: str) -> str:
    """Return the name of the block that `event` is about; `number_field` has its number."""
    number = event.get(number_field)
    if not isinstance(number, int):
        number = 0
    return f"{entry.block}.{'s' if number_field == 'summary_index' else ''}{number}"


def _piece_texts(item: dict[str, Any], field: str) -> list[str]:
    """Return the texts in a field of an item, a list or one piece, without empty ones."""
    pieces = item.get(field)
    texts = map(flatten_text, pieces if isinstance(pieces, list) else [pieces])
    return [text for text in texts if text]


# type of an event -> the method that reads it
ResponsesDecoder.events = {
    "response.created": ResponsesDecoder.on_begin,
    "response.in_progress": ResponsesDecoder.on_begin,
    "response.queued": ResponsesDecoder.on_begin,
    "response.output_item.added": ResponsesDecoder.on_item,
    "response.output_item.done": ResponsesDecoder.on_item_done,
    "response.output_text.annotation.added": ResponsesDecoder.on_annotation,
    "response.function_call_arguments.delta": ResponsesDecoder.on_arguments,
    "response.function_call_arguments.done": ResponsesDecoder.on_arguments_done,
    "response.completed": ResponsesDecoder.on_end,
    "response.incomplete": ResponsesDecoder.on_end,
    "response.failed": ResponsesDecoder.on_end,
}
