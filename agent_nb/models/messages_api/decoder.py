"""Anthropic's Messages API: response bytes in, parts out.

    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "High"}}

A signed thought must go back unchanged, and the API grows by new kinds of blocks. So each block is
put together again from its deltas: signatures and redacted thoughts travel as `opaque`, blocks of
server tools and unknown kinds, whole, as Resend.

Rule: usage is cumulative: fields of `message_start` hold until `message_delta` repeats them.
"""

from __future__ import annotations

from typing import Any

from ...wire import as_dict, as_list, lenient_loads
from ..chat.calls import make_call
from ..http.decoder import CUT, EventDecoder
from ..http.values import count_tokens, is_empty, to_json, to_text
from ..parts import Call, CallDelta, Close, Extra, Finish, Head, Part, Resend, Text, Thought, Usage

PROVIDER = "anthropic"
# fields of `message_delta` that are read
_READ = frozenset({"type", "delta", "usage", "stop_reason", "stop_sequence"})
_PIECES_KEY = "_pieces"  # our own entry in a block in progress: the pieces of its text or input
_LOST_INPUT = "input_json"  # our own type of a block of input that never began
# type of a delta -> the field that holds its text, the class of its part
_TEXTS: dict[str, tuple[str, type[Text | Thought]]] = {
    "text_delta": ("text", Text),
    "thinking_delta": ("thinking", Thought),
}


class AnthropicDecoder(EventDecoder):
    """Decodes one response.

    `prefix` precedes the block ids, `first_call` is the index of the first call. Afterwards `calls`
    is the index of the next call, and `content` the turn as a request after `pause_turn` needs it.
    """

    def __init__(self, status: int = 200, *, prefix: str = "", first_call: int = 0) -> None:
        super().__init__(status)
        self.calls = first_call
        self.stop_reason = ""
        self.content: list[dict[str, Any]] = []
        self._prefix = prefix
        self._open: dict[Any, dict[str, Any]] = {}  # index -> block in progress
        self._call_indexes: dict[Any, int] = {}  # index of an open block -> index of its call
        self._usage: dict[str, Any] = {}

    def usage_after(self, spent: Usage) -> Usage:
        """Return the usage of this response plus `spent`, the usage of the requests before it."""
        return make_usage(self._usage).with_tokens_of(spent)

    @property
    def complete(self) -> bool:
        """Whether the whole answer has come: it is done, or its stop reason has come."""
        return self.done or bool(self.stop_reason)

    def _finish(self, out: list[Part]) -> None:
        for index in tuple(self._open):
            self._end_block(index, out, broken=CUT)

    def _read_unknown(self, event_type: str, event: dict[str, Any], out: list[Part]) -> None:
        out.append(Extra(PROVIDER, event_type, event))

    def on_message_start(self, event: dict[str, Any], out: list[Part]) -> None:
        """Emit the head and the usage so far."""
        message = as_dict(event.get("message"))
        out.append(Head(self._status, to_text(message.get("model")), to_text(message.get("id"))))
        self._update_usage(message.get("usage"), out)

    def on_message(self, event: dict[str, Any], out: list[Part]) -> None:
        """Read a whole answer that was not streamed."""
        if not (event.get("type") or "content" in event):  # such a frame may hold an error
            self._read_event("", event, out, failed=False)
            return
        self.on_message_start({"message": event}, out)
        content = event.get("content")
        # other servers write the text itself, as requests may
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for index, block in enumerate(as_list(blocks)):
            self.on_block_start({"index": index, "content_block": block}, out)
            self._end_block(index, out)
        self.on_message_delta({"delta": {"stop_reason": event.get("stop_reason")}}, out)
        self.done = True

    def on_block_start(self, event: dict[str, Any], out: list[Part]) -> None:
        """Begin a block: emit the text that it starts with, or announce its call."""
        start, index = event.get("content_block"), _index_of(event)
        block = dict(start) if isinstance(start, dict) else {"type": "text", "text": ""}
        if index in self._open:
            self._end_block(index, out)
        self._open[index] = block
        kind, block_id = block.get("type"), self._block_id(index)
        if kind == "text" and block.get("text"):
            out.append(Text(to_text(block["text"]), block_id))
        elif kind == "thinking" and block.get("thinking"):
            out.append(Thought(to_text(block["thinking"]), block_id))
        elif kind == "tool_use":
            self._call_indexes[index] = self.calls
            self.calls += 1
            self._emit_call_delta(index, "", out)

    def on_block_delta(self, event: dict[str, Any], out: list[Part]) -> None:
        """Read a piece of a block and add it to the block."""
        delta, index = event.get("delta"), _index_of(event)
        if not isinstance(delta, dict):
            return
        kind = to_text(delta.get("type"))
        if index not in self._open:
            self.on_block_start({"index": index, "content_block": _make_implied_block(kind)}, out)
        block = self._open[index]
        if kind in _TEXTS:
            field, part = _TEXTS[kind]
            text = to_text(delta.get(field))
            if text:
                block.setdefault(_PIECES_KEY, []).append(text)
                out.append(part(text, self._block_id(index)))
        elif kind == "input_json_delta":
            text = to_text(delta.get("partial_json"))
            block.setdefault(_PIECES_KEY, []).append(text)
            if text and index in self._call_indexes:  # the input of the server's tools is not ours
                self._emit_call_delta(index, text, out)
        elif kind == "citations_delta":
            block["citations"] = [*as_list(block.get("citations")), delta.get("citation")]
            out.append(Extra(PROVIDER, "citation", delta.get("citation")))
        else:
            _merge_delta(block, delta)

    def _emit_call_delta(self, index: Any, text: str, out: list[Part]) -> None:
        """Emit a fragment of the input of the call whose block has this index."""
        block, call_index = self._open[index], self._call_indexes[index]
        call_id, tool = to_text(block.get("id")), to_text(block.get("name"))
        out.append(CallDelta(text, index=call_index, call_id=call_id, name=tool))

    def on_message_delta(self, event: dict[str, Any], out: list[Part]) -> None:
        """Read the stop reason and the usage."""
        delta = as_dict(event.get("delta"))
        self._update_usage(event.get("usage"), out)
        for holder in (event, delta):
            unread = {k: v for k, v in holder.items() if k not in _READ and not is_empty(v)}
            out += [Extra(PROVIDER, name, value) for name, value in unread.items()]
        if delta.get("stop_reason"):
            self.stop_reason = to_text(delta["stop_reason"])
            out.append(Finish(self.stop_reason))

    def on_message_stop(self, event: dict[str, Any], out: list[Part]) -> None:
        """End the answer."""
        self.done = True

    def _end_block(self, index: Any, out: list[Part], broken: str = "") -> None:
        """Close a block; `broken` says why it is incomplete, if it is."""
        block = self._open.pop(index, None)
        if block is None:
            return
        kind, block_id = block.get("type"), self._block_id(index)
        goes_back = not broken and kind != _LOST_INPUT
        raw = "".join(block.pop(_PIECES_KEY, []))
        if kind == "tool_use":
            call_index = self._call_indexes.pop(index)
            out.append(_complete_call(block, raw, index=call_index, broken=broken))
        elif kind in ("text", "thinking"):  # the text is in the field of the same name
            block[kind] = to_text(block.get(kind)) + raw
            if kind == "thinking" and block.get("signature"):
                opaque = {"provider": PROVIDER, "signature": block["signature"]}
                out.append(Thought("", block_id, opaque=opaque))
            out.append(Close(block_id, incomplete=bool(broken)))
        elif kind == "redacted_thinking":
            opaque = {"provider": PROVIDER, "block": block}
            out.append(Thought("", block_id, {"redacted": True}, opaque))
            out.append(Close(block_id, incomplete=bool(broken)))
        else:
            if raw:
                block["input"] = _parse_input(raw)
            extra = Extra(PROVIDER, to_text(kind), block)
            out.append(Resend(PROVIDER, block) if goes_back else extra)
        if goes_back and (kind != "text" or block.get("text")):
            self.content.append(block)

    def _update_usage(self, usage: Any, out: list[Part]) -> None:
        counts = {key: value for key, value in as_dict(usage).items() if value is not None}
        self._usage = {**self._usage, **counts}
        if counts and not is_empty(self._usage):
            out.append(make_usage(self._usage))

    def _block_id(self, index: Any) -> str:
        return f"{self._prefix}{index}"


def _index_of(event: dict[str, Any]) -> Any:
    index = event.get("index")
    return index if isinstance(index, int | str) else 0


def _make_implied_block(delta: str) -> dict[str, Any]:
    """Return a block for a delta that came without a start."""
    if delta in ("thinking_delta", "signature_delta"):
        return {"type": "thinking", "thinking": ""}
    if delta == "text_delta":
        return {"type": "text", "text": ""}
    return {"type": delta.removesuffix("_delta")}  # `_LOST_INPUT`, or a new kind


def _complete_call(block: dict[str, Any], raw: str, *, index: int, broken: str) -> Call:
    """Put the arguments (`raw`: as JSON text) into their block, and return the block's call."""
    if not raw and block.get("input"):
        raw = to_json(block["input"])
    name, call_id = to_text(block.get("name")), to_text(block.get("id"))
    call = make_call(name, raw, call_id=call_id, index=index, broken=broken)
    block["input"] = call.args
    return call


def _merge_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    """Merge a piece such as a signature into its block: texts are joined, other values replaced."""
    for key, value in delta.items():
        if key != "type":
            joined = isinstance(value, str) and isinstance(block.get(key), str)
            block[key] = block[key] + value if joined else value


def _parse_input(raw: str) -> Any:
    try:
        return lenient_loads(raw)
    except ValueError:
        return {"raw": raw}


def make_usage(usage: dict[str, Any]) -> Usage:
    """Return the Usage of a usage object of this API, whose input tokens exclude the cache's."""
    details = as_dict(usage.get("output_tokens_details"))
    cached = count_tokens(usage.get("cache_read_input_tokens"))
    written = count_tokens(usage.get("cache_creation_input_tokens"))
    return Usage(
        input=count_tokens(usage.get("input_tokens")) + cached + written,
        output=count_tokens(usage.get("output_tokens")),
        cached=cached,
        cache_written=written,
        reasoning=count_tokens(details.get("thinking_tokens")),
        raw=usage,
    )


# type of an event -> the method that reads it
AnthropicDecoder.events = {
    "message_start": AnthropicDecoder.on_message_start,
    "message": AnthropicDecoder.on_message,
    "content_block_start": AnthropicDecoder.on_block_start,
    "content_block_delta": AnthropicDecoder.on_block_delta,
    "content_block_stop": lambda self, event, out: self._end_block(_index_of(event), out),
    "message_delta": AnthropicDecoder.on_message_delta,
    "message_stop": AnthropicDecoder.on_message_stop,
    "ping": lambda *_: None,
}
