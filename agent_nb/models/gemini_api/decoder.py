"""Google's Gemini API (`generateContent`, `streamGenerateContent`): response bytes in, parts out.

Our own requests go to Google's chat completions, but libraries whose calls a tape records speak
this API. Each chunk, such as `{"candidates": [{"content": {"parts": [{"text": "High "}]}}]}`, has
the form of a whole answer; its `parts` continue those of the chunk before. Without `alt=sse` in the
URL a stream is one JSON list of chunks.

Rule: a chunk may follow the one with the reason to finish, so only the end of the body ends an
answer.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...wire import Frame, as_dict, as_list
from ..chat.calls import make_call
from ..http.decoder import CUT, FrameDecoder
from ..http.errors import error_object
from ..http.values import count_tokens, is_empty, to_json, to_text
from ..parts import Call, CallDelta, Extra, Finish, Head, Part, Text, Thought, Usage
from .partial_args import PartialArgs

PROVIDER = "gemini"
# fields of a chunk, a candidate and a part that are read or left out; others become Extra parts
_CHUNK = frozenset({
    "candidates", "error", "usageMetadata", "modelVersion", "responseId", "createTime",
})  # fmt: skip
_CANDIDATE = frozenset({
    "content", "finishReason", "index", "tokenCount", "avgLogprobs", "logprobsResult",
})  # fmt: skip
_PART = frozenset({"text", "thought", "thoughtSignature", "functionCall"})


class GeminiDecoder(FrameDecoder):
    """Decodes one response; `status` is its HTTP status."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(status)
        self._head_emitted = False
        self._candidate: Any = None  # index of the one candidate that is read
        self._calls = 0
        self._open: list[_OpenCall] = []  # calls that are being written
        self._finish_reason = ""
        self._extras: dict[str, Any] = {}  # name of another field -> its newest value

    @property
    def complete(self) -> bool:
        """Whether the whole answer has come: its usage may still follow."""
        return self.done or bool(self._finish_reason)

    def _finish(self, out: list[Part]) -> None:
        self._release(out)

    def _release(self, out: list[Part]) -> None:
        broken = "" if self.complete and not self.failed else CUT
        out += [call.close(broken) for call in self._open]
        self._open = []
        out += [Extra(PROVIDER, name, value) for name, value in self._extras.items()]
        self._extras = {}

    def _read_frame(self, frame: Frame, out: list[Part]) -> None:
        value = self._load_json(frame, out)
        for chunk in value if isinstance(value, list) else [value]:
            if isinstance(chunk, dict):
                self._read_chunk(chunk, out, failed=frame.event == "error")

    def _read_chunk(self, chunk: dict[str, Any], out: list[Part], *, failed: bool) -> None:
        """Read a chunk; with `failed` it came in a frame named `error`."""
        if not self._head_emitted and (chunk.get("modelVersion") or chunk.get("candidates")):
            self._head_emitted = True
            model, response = to_text(chunk.get("modelVersion")), to_text(chunk.get("responseId"))
            out.append(Head(self._status, model, response))
        for candidate in map(as_dict, as_list(chunk.get("candidates"))):
            self._read_candidate(candidate, out)
        usage = as_dict(chunk.get("usageMetadata"))
        if not is_empty(usage):
            out.append(make_usage(usage))
        self._emit_finish(to_text(as_dict(chunk.get("promptFeedback")).get("blockReason")), out)
        self._keep_extras(chunk, _CHUNK)
        error = error_object(chunk) or (chunk if failed else None)
        if error:
            self._report_error(error, out)

    def _read_candidate(self, candidate: dict[str, Any], out: list[Part]) -> None:
        index = candidate.get("index", 0)
        if self._candidate is None:
            self._candidate = index
        if index != self._candidate:
            return
        for part in map(as_dict, as_list(as_dict(candidate.get("content")).get("parts"))):
            self._read_part(part, out)
        self._keep_extras(candidate, _CANDIDATE)
        self._emit_finish(to_text(candidate.get("finishReason")), out)

    def _read_part(self, part: dict[str, Any], out: list[Part]) -> None:
        text, call = to_text(part.get("text")), part.get("functionCall")
        if text:
            out.append(Thought(text) if part.get("thought") is True else Text(text))
        if isinstance(call, dict):
            self._read_call(call, out)
        for name, value in part.items():
            if name not in _PART and not is_empty(value):
                media = name == "inlineData" and isinstance(value, dict)
                extra = {k: v for k, v in value.items() if k != "data"} if media else value
                out.append(Extra(PROVIDER, name, extra))

    def _read_call(self, fields: dict[str, Any], out: list[Part]) -> None:
        """Read a whole call or, from Vertex AI, a piece of one (`partial_args`).

        A piece with `willContinue` has a successor; one without it, perhaps empty, ends the call.
        """
        name, call_id = to_text(fields.get("name")), to_text(fields.get("id"))
        pieces, goes_on = as_list(fields.get("partialArgs")), fields.get("willContinue") is True
        call = next((c for c in reversed(self._open) if c.takes(name, call_id)), None)
        if call is None and not pieces and not goes_on:
            if fields:  # a whole call
                raw = to_json(fields["args"]) if fields.get("args") else ""
                out.append(make_call(name, raw, call_id=call_id, index=self._calls))
                self._calls += 1
            return
        call = call or self._open_call(name, call_id, as_dict(fields.get("args")), out)
        out += [call.make_delta(text) for text in map(call.args.add, pieces) if text]
        if not goes_on:
            self._open.remove(call)
            out.append(call.close(""))

    def _open_call(
        self, name: str, call_id: str, args: dict[str, Any], out: list[Part]
    ) -> _OpenCall:
        """Begin a call that comes in pieces, with the arguments that came whole."""
        call = _OpenCall(name, call_id, self._calls, PartialArgs(args))
        self._calls += 1
        self._open.append(call)
        out.append(call.make_delta(call.args.text))
        return call

    def _emit_finish(self, reason: str, out: list[Part]) -> None:
        if reason and not self._finish_reason:
            self._finish_reason = reason
            out.append(Finish(reason))

    def _keep_extras(self, holder: dict[str, Any], read: frozenset[str]) -> None:
        self._extras |= {k: v for k, v in holder.items() if k not in read and not is_empty(v)}


class _OpenCall(msgspec.Struct, eq=False):
    """A call that is being written."""

    name: str
    call_id: str
    index: int
    args: PartialArgs

    def takes(self, name: str, call_id: str) -> bool:
        """Return whether a piece with this name and id is one of this call."""
        if call_id and self.call_id:
            return call_id == self.call_id
        return name in ("", self.name)

    def make_delta(self, text: str) -> CallDelta:
        """Return a piece of the arguments."""
        return CallDelta(text, index=self.index, call_id=self.call_id, name=self.name)

    def close(self, broken: str) -> Call:
        """Return the call; `broken` says why it is incomplete, if it is."""
        raw = self.args.text if broken else self.args.close()
        return make_call(self.name, raw, call_id=self.call_id, index=self.index, broken=broken)


def make_usage(usage: dict[str, Any]) -> Usage:
    """Return the Usage of a `usageMetadata` object.

    Thoughts are added to the output, what Google's own tools read to the input.
    """
    sent = count_tokens(usage.get("promptTokenCount"))
    sent += count_tokens(usage.get("toolUsePromptTokenCount"))
    thoughts = count_tokens(usage.get("thoughtsTokenCount"))
    return Usage(
        input=sent,
        output=count_tokens(usage.get("candidatesTokenCount")) + thoughts,
        cached=count_tokens(usage.get("cachedContentTokenCount")),
        reasoning=thoughts,
        raw=usage,
    )
