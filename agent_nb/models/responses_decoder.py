"""OpenAI's Responses API, and the servers that speak it: response bytes in, parts out.

Why: this API tells everything several times (deltas, then the whole text, then the item, then the response). Deltas are what counts; the
wholes only fill in what a server did not stream.

Rules
- A text or a piece of reasoning is a block named by its place (`0.0`, `0.s1`), closed when it is told to be done or its item is.
- A call is complete with its item. Every other item (reasoning with its encrypted content, server tools) is a Resend: it goes back
  unchanged, in order.
- `feed` and `close` never raise; a broken stream closes its blocks as incomplete and is a Fault.
"""

from __future__ import annotations

from typing import Any

from ..parts import CallDelta, Close, Extra, Finish, Head, Part, Resend, Text, Thought
from .calls import call_part
from .decoder import CUT, EventDecoder
from .halves import Halves
from .values import flat, usage_part, word

PROVIDER = "openai-responses"
_SIGNS = (
    ".in_progress",
    ".searching",
    ".completed",
    ".generating",
    ".interpreting",
    ".queued",
    ".failed",
    ".partial_image",
    ".done",
    ".added",
)


class _Call:
    __slots__ = ("id", "index", "name", "pieces")

    def __init__(self, index: int, item: dict[str, Any]) -> None:
        self.index = index
        self.id = word(item.get("call_id")) or word(item.get("id"))
        self.name = word(item.get("name"))
        self.pieces: list[str] = []


class ResponsesDecoder(EventDecoder):
    """Decodes one response."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(status)
        self._halves = Halves()
        self._head = False
        self._open: dict[str, tuple[str, type[Text | Thought]]] = {}  # block -> its item and kind
        self._told: set[str] = set()  # items that were streamed
        self._calls: dict[str, _Call] = {}
        self._count = 0
        self._seen: set[str] = set()

    def _finish(self, out: list[Part]) -> bool:
        for block in tuple(self._open):
            self._shut(block, out, incomplete=not self.done)
        for call in self._calls.values():
            out.append(call_part(call.name, "".join(call.pieces), call_id=call.id, index=call.index, broken=CUT))
        self._calls = {}
        return self.done

    def _event(self, kind: str, event: dict[str, Any], out: list[Part], *, failed: bool) -> None:
        if event.get("object") == "response" and "output" in event:
            self.on_end({"response": event}, out)
        else:
            super()._event(kind, event, out, failed=failed)

    def _unknown(self, kind: str, event: dict[str, Any], out: list[Part]) -> None:
        if kind not in self._seen and not kind.endswith(_SIGNS):
            self._seen.add(kind)
            out.append(Extra(PROVIDER, kind, event))

    def on_begin(self, event: dict[str, Any], out: list[Part]) -> None:
        """The head, once."""
        response = event.get("response")
        if isinstance(response, dict) and not self._head:
            self._head = True
            out.append(Head(self._status, word(response.get("model")), word(response.get("id"))))

    def on_item(self, event: dict[str, Any], out: list[Part]) -> None:
        """An item begins; a call is announced."""
        item = _dict(event.get("item"))
        if item.get("type") == "function_call":
            key = _place(event)
            call = self._calls[key] = _Call(self._count, item)
            self._count += 1
            raw = word(item.get("arguments"))
            call.pieces += [raw] if raw else []
            out.append(CallDelta(raw, index=call.index, call_id=call.id, name=call.name))

    def on_text(self, event: dict[str, Any], out: list[Part]) -> None:
        """A piece of text, or of a refusal."""
        self._say(Text, f"{_place(event)}.{_number(event, 'content_index')}", event, out)

    def on_reasoning(self, event: dict[str, Any], out: list[Part]) -> None:
        """A piece of reasoning as it is."""
        self._say(Thought, f"{_place(event)}.{_number(event, 'content_index')}", event, out)

    def on_summary(self, event: dict[str, Any], out: list[Part]) -> None:
        """A piece of a summary of reasoning."""
        self._say(Thought, f"{_place(event)}.s{_number(event, 'summary_index')}", event, out)

    def on_text_done(self, event: dict[str, Any], out: list[Part]) -> None:
        """A text is complete."""
        self._done(Text, f"{_place(event)}.{_number(event, 'content_index')}", event, out)

    def on_reasoning_done(self, event: dict[str, Any], out: list[Part]) -> None:
        """A piece of reasoning is complete."""
        self._done(Thought, f"{_place(event)}.{_number(event, 'content_index')}", event, out)

    def on_summary_done(self, event: dict[str, Any], out: list[Part]) -> None:
        """A summary is complete."""
        self._done(Thought, f"{_place(event)}.s{_number(event, 'summary_index')}", event, out)

    def on_arguments(self, event: dict[str, Any], out: list[Part]) -> None:
        """A fragment of a call's arguments."""
        text, key = word(event.get("delta")), _place(event)
        if key not in self._calls:
            self.on_item({**event, "item": {"type": "function_call", "id": event.get("item_id")}}, out)
        call = self._calls[key]
        if text:
            call.pieces.append(text)
            out.append(CallDelta(text, index=call.index, call_id=call.id, name=call.name))

    def on_item_done(self, event: dict[str, Any], out: list[Part]) -> None:
        """An item is complete."""
        item, key = _dict(event.get("item")), _place(event)
        for block in [b for b, (owner, _) in self._open.items() if owner == key]:
            self._shut(block, out)
        self._item(item, key, out)
        self._told.add(key)

    def on_annotation(self, event: dict[str, Any], out: list[Part]) -> None:
        """A source of the text."""
        out.append(Extra(PROVIDER, "annotation", event.get("annotation")))

    def on_end(self, event: dict[str, Any], out: list[Part]) -> None:
        """The response is over: what was never streamed, the usage, and how it ended."""
        response = _dict(event.get("response"))
        self.on_begin(event, out)
        output = response.get("output")
        for place, item in enumerate(output if isinstance(output, list) else []):
            if not self._told and isinstance(item, dict):
                self.on_item({"output_index": place, "item": {**item, "arguments": ""}}, out)
                self._item(item, str(place), out)
        usage = response.get("usage")
        if isinstance(usage, dict) and usage:
            out.append(usage_part(usage))
        if response.get("incomplete_details"):
            out.append(Extra(PROVIDER, "incomplete_details", response["incomplete_details"]))
        out.append(Finish(word(response.get("status")) or "completed"))
        self.done = True
        if response.get("error"):
            self._error(response["error"], out)

    def _item(self, item: dict[str, Any], key: str, out: list[Part]) -> None:
        kind = item.get("type")
        if kind == "function_call":
            self._call(item, key, out)
            return
        if key not in self._told:
            self._whole(item, key, out)
        if kind != "message":
            out.append(Resend(PROVIDER, item))
        elif item.get("phase"):
            out.append(Resend(PROVIDER, {"phase": item["phase"]}))

    def _whole(self, item: dict[str, Any], key: str, out: list[Part]) -> None:
        """Tell the texts of an item that was not streamed."""
        if item.get("type") == "message":
            told: list[Text | Thought] = [Text(text, f"{key}.{n}") for n, text in enumerate(_pieces(item, "content"))]
        elif item.get("type") == "reasoning":
            name = "content" if item.get("content") else "summary"
            told = [Thought(text, f"{key}.{name[0]}{n}") for n, text in enumerate(_pieces(item, name))]
        else:
            return
        for part in told:
            out += [part, Close(part.block)]

    def _call(self, item: dict[str, Any], key: str, out: list[Part]) -> None:
        call = self._calls.pop(key, None)
        if call is None:
            call = _Call(self._count, item)
            self._count += 1
        raw = word(item.get("arguments")) or "".join(call.pieces)
        name, call_id = word(item.get("name")) or call.name, word(item.get("call_id")) or call.id
        if not call.pieces:
            out.append(CallDelta(raw, index=call.index, call_id=call_id, name=name))
        out.append(call_part(name, raw, call_id=call_id, index=call.index))

    def _say(self, kind: type[Text | Thought], block: str, event: dict[str, Any], out: list[Part]) -> None:
        text = self._halves.feed(block, word(event.get("delta")))
        self._open[block] = (_place(event), kind)
        self._told.add(_place(event))
        if text:
            out.append(kind(text, block))

    def _done(self, kind: type[Text | Thought], block: str, event: dict[str, Any], out: list[Part]) -> None:
        if block not in self._open and _place(event) not in self._told:
            self._say(kind, block, {**event, "delta": flat(event.get("text") or event.get("refusal"))}, out)
        if block in self._open:
            self._shut(block, out)

    def _shut(self, block: str, out: list[Part], *, incomplete: bool = False) -> None:
        kind = self._open.pop(block)[1]
        if half := self._halves.end(block):
            out.append(kind(half, block))
        out.append(Close(block, incomplete=incomplete))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _place(event: dict[str, Any]) -> str:
    """Return the place of an event's item, by which its parts find each other."""
    index = event.get("output_index")
    return str(index) if isinstance(index, int | str) else word(event.get("item_id"))


def _number(event: dict[str, Any], name: str) -> int:
    value = event.get(name)
    return value if isinstance(value, int) else 0


def _pieces(item: dict[str, Any], name: str) -> list[str]:
    pieces = item.get(name)
    return [text for piece in (pieces if isinstance(pieces, list) else [pieces]) if (text := flat(piece))]


ResponsesDecoder.events = {
    "response.created": ResponsesDecoder.on_begin,
    "response.in_progress": ResponsesDecoder.on_begin,
    "response.queued": ResponsesDecoder.on_begin,
    "response.output_item.added": ResponsesDecoder.on_item,
    "response.output_item.done": ResponsesDecoder.on_item_done,
    "response.output_text.delta": ResponsesDecoder.on_text,
    "response.output_text.done": ResponsesDecoder.on_text_done,
    "response.output_text.annotation.added": ResponsesDecoder.on_annotation,
    "response.refusal.delta": ResponsesDecoder.on_text,
    "response.refusal.done": ResponsesDecoder.on_text_done,
    "response.reasoning_text.delta": ResponsesDecoder.on_reasoning,
    "response.reasoning_text.done": ResponsesDecoder.on_reasoning_done,
    "response.reasoning_summary_text.delta": ResponsesDecoder.on_summary,
    "response.reasoning_summary_text.done": ResponsesDecoder.on_summary_done,
    "response.function_call_arguments.delta": ResponsesDecoder.on_arguments,
    "response.completed": ResponsesDecoder.on_end,
    "response.incomplete": ResponsesDecoder.on_end,
    "response.failed": ResponsesDecoder.on_end,
}
