"""Packs an exchange into the form in which a record holds it, and unpacks it.

    {"request": {"method": …, "provider": …, "path": …, "query": …, "body": …},
     "response": {"status": …, "headers": …, "body": …}, "attempts": n}

A body is `{"json": …}`, `{"text": …}`, `{"digest": …}` or `{"stream": columns}`; an empty one is
`{}`. A JSON object in a request is `{"object": …}` (`conversations`), JSON in an answer `{"value":
…, "seen": […]}`. A large answer is compressed: `{"zip": base64}`. A response that broke off has
`"complete": false`, too.

Rule: a packed exchange is unpacked at once. If the result differs, or the packed form exceeds
`_LARGEST_PACKED` bytes, only the digests of the bodies are stored, and nothing is replayed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ..errors import UsageError
from ..events import Call, Event, Respond, Think
from ..record import Home, PackedExchange, Packer, Payloads, Unpacker, events_of
from ..wire import as_dict, dumps, encode_canonical
from .columns import pack_columns, unpack_columns
from .conversations import Conversations, unpack_body
from .exchange import Body, Exchange, Request, Response
from .references import Dereferencer, References, damaged_error, unzip_json, zip_text

_LARGEST_PLAIN = 16 * 1024  # bytes of an answer that is not compressed
_LARGEST_UNZIPPED = 1 << 24  # bytes that an answer may decompress to
_LARGEST_PACKED = 2 << 20  # bytes of a packed exchange; above, its bodies are kept as digests
_NO_PAYLOADS = 1 << 62  # bytes above which a packer makes payloads: an answer has none


def texts_of(log: Sequence[Event]) -> list[str]:
    """Return the texts of the blocks of a log, in order; an answer refers to them."""
    return [
        event.raw_args if isinstance(event, Call) else event.content
        for event in log
        if isinstance(event, Think | Respond | Call)
    ]


class ExchangePacker:
    """Packs the exchanges of one kernel: messages that its requests repeat are stored once."""

    def __init__(self, home: Home) -> None:
        self._home, self._conversations = home, Conversations(home)

    def pack(self, exchange: Exchange, log: Sequence[Event]) -> PackedExchange:
        """Return the packed form of an exchange whose answer `log` holds."""
        texts = texts_of(log)
        # a body that is nested too deeply makes one of the steps raise one of the three
        with suppress(UsageError, ValueError, RecursionError):
            packed = _pack(exchange, texts, self._conversations, self._home)
            unpacked = unpack_exchange(packed.value, packed.payloads, texts, self._home)
            if _is_equal(unpacked, exchange) and len(dumps(packed.value)) <= _LARGEST_PACKED:
                return packed
        return _pack(_without_bodies(exchange), texts, self._conversations, self._home)


def _is_equal(one: Exchange, other: Exchange) -> bool:
    one_text, other_text = map(encode_canonical, map(msgspec.to_builtins, (one, other)))
    return one_text == other_text


def _without_bodies(exchange: Exchange) -> Exchange:
    """Return the exchange with digests in place of its bodies."""
    request, response = exchange.request, exchange.response
    return msgspec.structs.replace(
        exchange,
        request=msgspec.structs.replace(request, body=digest_body(request.body)),
        response=msgspec.structs.replace(response, body=digest_body(response.body)),
    )


def digest_body(body: Body) -> Body:
    """Return what a record holds of a body that is too large."""
    data = b"".join(body.pieces())
    return Body("digest", {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)})


def _pack(
    exchange: Exchange, texts: Sequence[str], conversations: Conversations, home: Home
) -> PackedExchange:
    request, response = exchange.request, exchange.response
    packer = Packer(home, _NO_PAYLOADS)
    value = {
        "request": {
            "method": request.method,
            "provider": packer.pack(request.provider),
            "path": packer.pack(request.path),
            **({"query": packer.pack(request.query)} if request.query else {}),
            "body": _pack_request(request.body, conversations, packer),
        },
        "response": {
            "status": response.status,
            "headers": packer.pack(dict(response.headers)),
            "body": _zip_large(
                _pack_response(response.body, texts, _list_fields(request.body), packer)
            ),
            **({} if response.complete else {"complete": False}),
        },
        **({"attempts": exchange.attempts} if exchange.attempts > 1 else {}),
    }
    known = conversations.payloads
    needed = Payloads.find_needed_keys(value, known)
    return PackedExchange(value, {key: known[key] for key in sorted(needed) if key in known})


def _list_fields(body: Body) -> Mapping[str, Any]:
    """Return the fields of a request's body, to which its answer may refer."""
    return as_dict(body.value) if body.kind == "json" else {}


def _pack_request(body: Body, conversations: Conversations, packer: Packer) -> dict[str, Any]:
    if body.kind == "json" and isinstance(body.value, dict):
        return {"object": conversations.pack(body.value)}
    return {} if body.kind == "none" else {body.kind: packer.pack(body.value)}


def _pack_response(
    body: Body, texts: Sequence[str], fields: Mapping[str, Any], packer: Packer
) -> dict[str, Any]:
    references = References(texts, fields)
    packed: dict[str, Any] = {}
    if body.kind == "stream":
        packed["stream"] = pack_columns(body.value, references, texts)
    elif body.kind == "json":
        references.count([body.value])
        packed["value"] = references.pack(body.value)
        if references.seen:
            packed["seen"] = references.seen
    elif body.kind != "none":
        packed[body.kind] = body.value
    return {name: packer.pack_inside(value) for name, value in packed.items()}


def _zip_large(packed: dict[str, Any]) -> dict[str, Any]:
    """Return a packed answer, compressed if it is large."""
    text = dumps(packed)
    return packed if len(text.encode()) <= _LARGEST_PLAIN else {"zip": zip_text(text)}


def read_exchange(
    record: Mapping[str, Any], payloads: Mapping[str, Any] | None = None
) -> Exchange | None:
    """Return the exchange of a record, None if it holds none or the record was cut.

    `payloads`: those beside the record. Raises UsageError if the record is damaged.
    """
    value = PackedExchange.find(record)
    if not value or record.get("cut"):
        return None
    known = Payloads.of(payloads, record.get("payloads"))
    return unpack_exchange(value, known, texts_of(events_of(record, known)))


def unpack_exchange(
    value: Mapping[str, Any],
    payloads: Mapping[str, Any],
    texts: Sequence[str],
    home: Home | None = None,
) -> Exchange:
    """Return an exchange from its packed form; `texts` are those of its log. Raises UsageError."""
    known = Payloads.of(payloads)
    faults = Payloads.list_faults({"events": [value]}, known)
    if faults:
        raise damaged_error(faults[0])
    home = home or Home.of_user()
    plain = Unpacker({}, home)
    request, response = dict(as_dict(value.get("request"))), dict(as_dict(value.get("response")))
    body = _unpack_request(as_dict(request.pop("body", None)), known, home)
    packed_answer = as_dict(response.pop("body", None))
    try:
        answer = _unpack_response(packed_answer, texts, _list_fields(body), plain)
        return Exchange(
            request=msgspec.convert({**plain.unpack(request), "body": body}, Request),
            response=msgspec.convert({**plain.unpack(response), "body": answer}, Response),
            attempts=msgspec.convert(value.get("attempts", 1), int),
        )
    # a ValidationError is a ValueError; so is the error of a number that JSON cannot hold
    except (ValueError, RecursionError):
        raise damaged_error("its fields are malformed") from None


def _unpack_request(packed: dict[str, Any], payloads: Payloads, home: Home) -> Body:
    if "object" in packed:
        return Body("json", unpack_body(packed["object"], payloads, home))
    return _unpack_plain(Unpacker(payloads, home).unpack(packed))


def _unpack_plain(packed: dict[str, Any]) -> Body:
    for kind in ("json", "text", "digest"):
        if kind in packed:
            return Body(kind, packed[kind])
    return Body()


def _unpack_response(
    packed: dict[str, Any], texts: Sequence[str], fields: Mapping[str, Any], plain: Unpacker
) -> Body:
    if "zip" in packed:
        packed = as_dict(unzip_json(packed["zip"], _LARGEST_UNZIPPED))
    packed = {name: plain.unpack(value) for name, value in packed.items()}
    if "stream" in packed:
        columns = as_dict(packed["stream"])
        chunks = unpack_columns(columns, Dereferencer(texts, fields, columns.get("seen")))
        if not all(isinstance(chunk, dict) for chunk in chunks):
            raise damaged_error("a chunk of its answer is not an object")
        return Body("stream", chunks)
    if "value" in packed:
        references = Dereferencer(texts, fields, packed.get("seen"))
        return Body("json", references.unpack(packed["value"]))
    return _unpack_plain(packed)
