"""Chat completions (`/v1/chat/completions`) of any compatible server: response bytes in, parts out.

A plain chunk is `{"choices": [{"index": 0, "delta": {"content": "High water is "}}]}`, but dozens
of servers speak this API and no two alike. Reasoning comes as `reasoning_content`,
`reasoning`, `reasoning_details` or in a list of content. Usage comes in the last chunk, in every
chunk, in `x_groq` or not at all. Errors come in mid-stream. Only some servers send `[DONE]`.

Rule: some data must go back with the next request. The first Thought holds in `opaque` the field
that reasoning came in; a Resend holds reasoning details and further fields of calls.
"""

from __future__ import annotations

from typing import Any

from ...wire import Frame, SurrogatePairs, as_dict, as_list
from ..http.decoder import CALL_CUT, CUT, FrameDecoder
from ..http.errors import error_object
from ..http.values import flatten_text, is_empty, make_usage, to_json, to_text
from ..parts import Extra, Finish, Head, Part, Resend, Text, Thought
from .calls import CallTable
from .extras import Extras
from .fast_path import Choice, read_plain_choice
from .reasoning_details import Details

PROVIDER = "openai"
# fields of a call that are read here; a Resend returns the others to the server
_CALL_FIELDS = frozenset({"index", "id", "type", "function", "name", "arguments"})
# chunks in a row that the fast path cannot read until it is given up: each attempt parses the chunk
# once more
_MOST_MISSES = 3
_ABORTED = "abort"  # the finish reason of vLLM for an answer that it broke off


class ChatDecoder(FrameDecoder):
    """Decodes one response; `status` is its HTTP status. Methods append their parts to `out`.

    Unknown fields become Extra parts (`extras`).
    """

    def __init__(self, status: int = 200) -> None:
        super().__init__(status)
        self._calls = CallTable()
        self._details = Details()
        self._halves = SurrogatePairs()  # half a character waits for the next piece
        self._head_emitted = False
        self._last_chunk_came = False  # the one that holds only usage
        self._choice_index: Any = None  # index of the one choice that is read
        self._finish_reason = ""
        self._latest_usage: dict[str, Any] | None = None  # as emitted last
        self._reasoning_field = ""  # name of the field that reasoning comes in
        self._misses = 0  # chunks in a row that were not plain
        self._extras = Extras(PROVIDER)
        self._call_extras: dict[str, dict[str, Any]] = {}  # call id -> its other fields

    @property
    def complete(self) -> bool:
        """Whether the whole answer has come: its usage may still follow."""
        if self._finish_reason == _ABORTED:
            return False
        return self.done or bool(self._finish_reason) or self._last_chunk_came

    def _finish(self, out: list[Part]) -> None:
        """Emit half characters that wait, the Resend and the open calls.

        The calls are incomplete if the stream broke off or the token limit was reached.
        """
        self._release(out)
        self._emit_resend(out)
        if self._finish_reason == "error":  # without effect if the server has named its error
            self._report_error(None, out)
        broken = ""
        if self.failed or not self.complete:
            broken = CUT
        elif self._finish_reason == "length":
            broken = CALL_CUT
        out.extend(self._calls.close(broken))

    def _read_plain(self, choice: Choice, out: list[Part]) -> bool:
        """Read a plain chunk on the fast path; return False if it needs the general one."""
        delta = choice.delta
        thought = delta.reasoning_content or delta.reasoning
        # the first piece of reasoning names its field, and the first chunk its choice
        if choice.index != self._choice_index or (thought and not self._reasoning_field):
            return False
        if thought:
            out.append(Thought(thought))
        if delta.content:
            out.append(Text(delta.content))
        for call in delta.tool_calls or ():
            part = self._calls.add(call.index, "", "", call.function.arguments)
            if part is not None:
                out.append(part)
        return True

    def _read_frame(self, frame: Frame, out: list[Part]) -> None:
        """Read a frame: a plain chunk on the fast path, `[DONE]`, any other chunk, or an error."""
        data = frame.data
        # not the first chunk, which is the head, nor one that may continue half a character
        fast = self._head_emitted and not self._halves and self._misses < _MOST_MISSES
        if fast and frame.event == "message":
            choice = read_plain_choice(data)
            if choice is not None and self._read_plain(choice, out):
                self._misses = 0
                return
            self._misses += 1
        if data == "[DONE]" or data.strip() == "[DONE]":
            self.done = True
            return
        chunk = self._load_json(frame, out)
        if isinstance(chunk, dict):
            self._read_chunk(chunk, out, failed=frame.event == "error")
        elif error := error_object(chunk):
            self._report_error(error, out)

    def _read_chunk(self, chunk: dict[str, Any], out: list[Part], *, failed: bool) -> None:
        """Read any chunk; with `failed` it came in a frame named `error`."""
        choices, groq = chunk.get("choices"), as_dict(chunk.get("x_groq"))
        if not self._head_emitted and (chunk.get("model") or chunk.get("id") or choices):
            self._head_emitted = True
            out.append(Head(self._status, to_text(chunk.get("model")), to_text(chunk.get("id"))))
        choice_error = None
        for choice in as_list(choices):
            if isinstance(choice, dict):
                choice_error = self._read_choice(choice, out) or choice_error
        for usage in (groq.get("usage"), chunk.get("usage")):
            self._emit_usage(usage, out)
            if usage and not choices:  # with choices it may be a running count
                self._last_chunk_came = True
        # an error ends the answer, so the other parts of its chunk come first
        error = choice_error or error_object(chunk) or (chunk if failed else groq.get("error"))
        if error:
            self._report_error(error, out)
        else:
            out.extend(self._extras.collect_new(chunk))

    def _read_choice(self, choice: dict[str, Any], out: list[Part]) -> Any:
        """Read one choice (only the first of several alternatives); return its error or None."""
        index = choice.get("index")
        if self._choice_index is None:
            self._choice_index = index
        elif index != self._choice_index and index is not None:
            return None
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._read_delta(delta, out)
        message = choice.get("message")
        if isinstance(message, dict) and delta is None:
            self._read_delta(message, out, whole=True)
        if isinstance(choice.get("text"), str):
            self._emit_text(choice["text"], out)
        self._emit_usage(choice.get("usage"), out)
        out.extend(self._extras.collect_new(choice))
        if reason := choice.get("finish_reason"):
            self._emit_finish(to_text(reason), out)
        return choice.get("error")

    def _read_delta(self, delta: dict[str, Any], out: list[Part], *, whole: bool = False) -> None:
        """Read a delta, or with `whole` a message that was not streamed."""
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        details = delta.get("reasoning_details")
        if details:
            readable = self._details.add(details)
            thought = thought or readable
        if thought:
            self._emit_thought(thought, delta, out)
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                self._emit_text(content, out)
        elif content:
            self._read_content(content, out)
        if delta.get("refusal"):
            self._emit_text(to_text(delta["refusal"]), out)
        if calls := delta.get("tool_calls"):
            self._read_calls(calls, out, whole=whole)
        # the older form of a call, one for each answer
        if isinstance(legacy := delta.get("function_call"), dict):
            self._read_calls([{"index": 0, "function": legacy}], out, whole=False)
        out.extend(self._extras.collect_new(delta))

    def _emit_text(self, text: str, out: list[Part]) -> None:
        """Emit text; half a character at its end waits for the next piece."""
        text = self._halves.feed("text", text)
        if text:
            out.append(Text(text))

    def _emit_thought(self, thought: Any, delta: dict[str, Any], out: list[Part]) -> None:
        """Emit reasoning; the first piece names the field of `delta` that it came in."""
        text = self._halves.feed("thought", flatten_text(thought))
        if not text:
            return
        field = next((name for name in ("reasoning_content", "reasoning") if delta.get(name)), "")
        if field and not self._reasoning_field:
            self._reasoning_field = field
            out.append(Thought(text, opaque={"provider": PROVIDER, "field": field}))
        else:
            out.append(Thought(text))

    def _read_content(self, content: Any, out: list[Part]) -> None:
        """Read content that is a list of pieces (Mistral and others), or one piece."""
        for piece in content if isinstance(content, list) else [content]:
            kind = piece.get("type") if isinstance(piece, dict) else "text"
            if kind in ("thinking", "reasoning"):
                thought = piece.get("thinking") or piece.get("reasoning") or piece.get("text")
                self._emit_thought(thought or "", {}, out)
            elif kind in ("text", "output_text", "refusal"):
                self._emit_text(flatten_text(piece), out)
            else:
                out.append(Extra(PROVIDER, "content", piece))

    def _read_calls(self, calls: Any, out: list[Part], *, whole: bool) -> None:
        """Read fragments of calls.

        `whole`: the calls are complete, as in a message that was not streamed. A call without an
        index then gets its position as index.
        """
        for position, call in enumerate(calls if isinstance(calls, list) else [calls]):
            if not isinstance(call, dict):
                continue
            function = as_dict(call.get("function")) or call
            args = function.get("arguments")
            if not isinstance(args, str):
                args = "" if args is None else to_json(args)
            index = call.get("index")
            if not isinstance(index, int | str):
                index = position if whole else None
            call_id = to_text(call.get("id"))
            delta = self._calls.add(index, call_id, to_text(function.get("name")), args)
            if delta is not None:
                out.append(delta)
            if call.keys() - _CALL_FIELDS:
                self._keep_call_fields(call, delta.call_id if delta is not None else call_id)

    def _keep_call_fields(self, call: dict[str, Any], call_id: str) -> None:
        """Keep the other fields of a call (thought signatures), which go back with the call."""
        extras = {k: v for k, v in call.items() if k not in _CALL_FIELDS and v is not None}
        if extras and call_id:
            self._call_extras.setdefault(call_id, {}).update(extras)

    def _emit_finish(self, reason: str, out: list[Part]) -> None:
        """Emit the finish reason, and before it the open calls if all are complete.

        Otherwise they stay open until the body ends: some servers send fragments after the reason.
        """
        complete_calls = [] if reason == _ABORTED else self._calls.close_complete()
        if complete_calls:
            self._release(out)
            self._emit_resend(out)
            out.extend(complete_calls)
        if reason != self._finish_reason:
            self._finish_reason = reason
            out.append(Finish(reason))

    def _emit_resend(self, out: list[Part]) -> None:
        """Emit a Resend of the fields that must go back with the calls, each field once."""
        payload: dict[str, Any] = {}
        if self._calls and (details := self._details.take_items()):
            payload["message"] = {"reasoning_details": details}
        if self._call_extras:
            payload["tool_calls"], self._call_extras = self._call_extras, {}
        if payload:
            out.append(Resend(PROVIDER, payload))

    def _emit_usage(self, usage: Any, out: list[Part]) -> None:
        """Emit usage, unless it has no amount or equals the one before."""
        if isinstance(usage, dict) and not is_empty(usage) and usage != self._latest_usage:
            self._latest_usage = usage
            out.append(make_usage(usage))

    def _release(self, out: list[Part]) -> None:
        """Emit the halves of characters that still wait, as no other half can follow."""
        for kind, text in self._halves.close():
            out.append(Text(text) if kind == "text" else Thought(text))
