"""Secrets leave an exchange before anything of it is stored.

Rules
- Keys in the request's own headers are secrets too, wherever they stand in a body, path or query.
- A key that a stream cuts into pieces is found: the texts at one place of its chunks are one text.
- Signatures and encrypted reasoning keep every byte (`OPAQUE`), since a provider checks them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..wire import Redaction, redact_text, redact_value
from .columns import INDEXES
from .exchange import Body, Exchange

OPAQUE = frozenset({"signature", "thought_signature", "thoughtSignature", "encrypted_content"})
_KEY_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie")
_SHORTEST = 8  # characters of a secret in a header


def _find_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that a request's headers carry, by name."""
    values = {
        name: headers[name].split()[-1] for name in _KEY_HEADERS if headers.get(name, "").strip()
    }
    return {f"header {name}": value for name, value in values.items() if len(value) >= _SHORTEST}


def redact_exchange(
    exchange: Exchange, secrets: Mapping[str, str], headers: Mapping[str, str]
) -> Exchange:
    """Return an exchange without `secrets`, values by name, and those in its `headers`."""
    secrets = {**secrets, **_find_secrets(headers)}
    redaction = Redaction(secrets)
    request, response = exchange.request, exchange.response
    return msgspec.structs.replace(
        exchange,
        request=msgspec.structs.replace(
            request,
            path=redaction.value(request.path),
            query=redaction.value(request.query),
            body=_redact_body(request.body, redaction, secrets),
        ),
        response=msgspec.structs.replace(
            response,
            headers=redaction.value(dict(response.headers)),
            body=_redact_body(response.body, redaction, secrets),
        ),
    )


def _redact_body(body: Body, redaction: Redaction, secrets: Mapping[str, str]) -> Body:
    if body.kind == "stream":
        return Body("stream", _redact_chunks(body.value, redaction, secrets))
    return Body(body.kind, redact_value(body.value, secrets, opaque=OPAQUE))


def _redact_chunks(
    chunks: Sequence[Any], redaction: Redaction, secrets: Mapping[str, str]
) -> list[Any]:
    """Return chunks without secrets; a text without one keeps its pieces as they are."""
    out = [msgspec.to_builtins(chunk) for chunk in chunks]  # a copy, which is changed below
    places: dict[str, list[tuple[Any, Any]]] = {}  # place -> holder and key of each of its texts
    for chunk in out:
        indexes = repr(list(_find_indexes(chunk)))
        pending: list[tuple[Any, Any, str]] = [(chunk, name, str(name)) for name in chunk]
        while pending:
            holder, key, path = pending.pop()
            value = holder[key]
            if isinstance(value, dict | list):
                keys = value.keys() if isinstance(value, dict) else range(len(value))
                pending.extend((value, inner, f"{path}/{inner}") for inner in keys)
            elif isinstance(value, str) and key not in OPAQUE:
                places.setdefault(f"{path} {indexes}", []).append((holder, key))
    for texts in places.values():
        joined = "".join(holder[key] for holder, key in texts)
        if redact_text(joined, secrets) != joined:
            redactor = redaction.stream()
            for holder, key in texts:
                holder[key] = redactor.feed(holder[key])
            holder, key = texts[-1]
            holder[key] += redactor.close()
    # names of fields too
    cleaned: list[Any] = redact_value(out, secrets, opaque=OPAQUE)
    return cleaned


def _find_indexes(chunk: Any) -> Any:
    pending = [chunk]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from (
                (k, v) for k, v in value.items() if k in INDEXES and not isinstance(v, dict | list)
            )
            pending.extend(v for v in value.values() if isinstance(v, dict | list))
        elif isinstance(value, list):
            pending.extend(v for v in value if isinstance(v, dict | list))
