"""One HTTP exchange with a model's server: request and response, as JSON values.

Why values and not bytes: a replay must give an SDK the same objects, not the same packets, and JSON
can be searched, compared and redacted. JSON that is nested deeper than `_DEEPEST` levels counts as
a text, which a record holds whole.

Rule: a chunk of a stream is `{"data": JSON}` or `{"text": …}`, with `event` if its frame names one.
Random padding in it (`PADDING`) is emptied.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal

import msgspec

from ..errors import WireError
from ..wire import SSEDecoder, as_dict, as_list, dumps

LARGEST_TEXT = 64 * 1024  # bytes of a text that is kept
LARGEST_BODY = 16 * 1024 * 1024  # bytes of JSON or of a stream that is kept
PADDING = "obfuscation"  # the field of a chunk that OpenAI fills at random
RETRIED = (408, 409, 429, *range(500, 600))  # statuses after which an SDK sends a request again

_DEEPEST = 150  # levels of JSON: records keep 200 levels of a value, with those around a body

# types of the last chunk of a stream
_LAST_TYPES = ("message_stop", "response.completed", "response.incomplete", "response.failed")

_find_google_model = re.compile(r"models/([^/:]+):").search  # the path of a request names the model

# an escape of half a character; decoded UTF-8 has half characters nowhere else
_find_half = re.compile(r"\\u[dD][89a-fA-F]").search

BodyKind = Literal["none", "json", "stream", "text", "digest"]


class Body(msgspec.Struct, frozen=True):
    """The body of a request or a response."""

    kind: BodyKind = "none"
    value: Any = None  # JSON, the chunks of a stream, a text, or `sha256` and size in `bytes`

    @classmethod
    def read(cls, data: bytes, content_type: str = "") -> Body:
        """Return the body that `data` holds; a digest if it is too large or not text."""
        if not data:
            return cls()
        if len(data) <= LARGEST_BODY:
            with suppress(ValueError, RecursionError, WireError):
                is_stream = "text/event-stream" in content_type.lower()
                # some servers answer with JSON under the type of a stream
                if is_stream and (chunks := list(_read_stream(data))):
                    return cls("stream", chunks)
                return cls("json", _read_json(data.decode("utf-8")))
        if len(data) <= LARGEST_TEXT:
            with suppress(ValueError):
                return cls("text", data.decode("utf-8"))
        digest = hashlib.sha256(data).hexdigest()
        return cls("digest", {"sha256": digest, "bytes": len(data)})

    @property
    def is_ended(self) -> bool:
        """Whether the last chunk of a stream says that no other follows."""
        last = self.value[-1] if self.kind == "stream" and self.value else {}
        data = as_dict(last.get("data"))
        reasons = [as_dict(c).get("finishReason") for c in as_list(data.get("candidates"))]
        return last.get("text") == "[DONE]" or data.get("type") in _LAST_TYPES or any(reasons)

    @property
    def is_answered(self) -> bool:
        """Whether a stream gives the reason why its answer ends; further chunks may follow."""
        chunks = [as_dict(c.get("data")) for c in self.value] if self.kind == "stream" else []
        choices = [as_dict(choice) for c in chunks for choice in as_list(c.get("choices"))]
        finished = [choice.get("index") for choice in choices if choice.get("finish_reason")]
        if finished:
            return all(choice.get("index") in finished for choice in choices)
        return any(as_dict(c.get("delta")).get("stop_reason") for c in chunks)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes of the body, a stream chunk by chunk; nothing for a digest."""
        if self.kind == "stream":
            yield from map(_write_chunk, self.value)
        elif self.kind == "json":
            yield dumps(self.value).encode()
        elif self.kind == "text":
            yield str(self.value).encode("utf-8", "replace")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request; `provider` is the name under which the relay has the server's address."""

    method: str = "POST"
    provider: str = ""
    path: str = ""
    query: str = ""
    body: Body = Body()

    @property
    def model(self) -> str:
        """The model that is asked, "" if the request names none."""
        in_path = _find_google_model(self.path)
        return str(as_dict(self.body.value).get("model") or (in_path[1] if in_path else ""))


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """An answer; `headers`: the few that a replay sends again. `complete`: its end was received."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: Body = Body()
    complete: bool = True

    @property
    def is_retried(self) -> bool:
        """Whether an SDK sends the request again after this answer."""
        return self.status in RETRIED


class Refusal(msgspec.Struct, frozen=True):
    """The relay's own answer to a request that it refuses: an error in the provider's form."""

    message: str  # the reason
    status: int = 400
    passing: bool = False  # an SDK may send the request again


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request, its answer, and how many times the request was sent until this answer came."""

    request: Request
    response: Response
    attempts: int = 1

    @property
    def is_replayable(self) -> bool:
        """Whether the request and the whole answer are known."""
        known = "digest" not in (self.request.body.kind, self.response.body.kind)
        return known and self.response.complete


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _read_json(text: str) -> Any:
    value = json.loads(text, parse_constant=_refuse_constant)
    if text.count("[") + text.count("{") > _DEEPEST and _is_deep(value):
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels")
    if _find_half(text):
        # raises ValueError for half a character, which cannot be saved
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _is_deep(value: Any) -> bool:
    """Return whether lists and objects are nested deeper than `_DEEPEST` levels."""
    level = [value]
    for _ in range(_DEEPEST):
        parts = (part.values() if isinstance(part, dict) else as_list(part) for part in level)
        level = [inner for part in parts for inner in part]
        if not level:
            return False
    return any(isinstance(inner, dict | list) for inner in level)


def _read_stream(data: bytes) -> Iterator[dict[str, Any]]:
    decoder = SSEDecoder()
    for frame in [*decoder.feed(data), *decoder.close(lenient=True)]:
        name = {"event": frame.event} if frame.event != "message" else {}
        try:
            value = _read_json(frame.data)
        except ValueError:
            yield {**name, "text": frame.data}
            continue
        if isinstance(as_dict(value).get(PADDING), str):
            value[PADDING] = ""
        yield {**name, "data": value}


def _write_chunk(chunk: Mapping[str, Any]) -> bytes:
    name = f"event: {chunk['event']}\n" if "event" in chunk else ""
    if "data" in chunk:  # JSON is one line
        return f"{name}data: {dumps(chunk['data'])}\n\n".encode("utf-8", "replace")
    lines = "".join(f"data: {line}\n" for line in str(chunk.get("text", "")).split("\n"))
    return f"{name}{lines}\n".encode("utf-8", "replace")
