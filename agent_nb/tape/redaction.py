"""Replace the secrets of an exchange before anything of it is stored.

Why: a notebook holds the exchange, and people share notebooks. Only signatures and encrypted
reasoning keep every byte (`OPAQUE`), since a provider checks them.

Rules
- Keys in the request's own headers, query and body are secrets too, wherever else they stand. The
  name of its field replaces each key, so that a request with another key is the same request:
  `?key=abc123def` becomes `?key=[redacted key]`.
- A stream may cut a key into pieces: the texts at the same place of its chunks, under the same
  indexes (`INDEXES`), are searched as one text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any
from urllib.parse import unquote_plus

import msgspec

from ..record import Home
from ..wire import Redaction, Redactor, as_dict, redact_text, redact_value
from .claude_code import list_ids
from .columns import INDEXES
from .exchange import Body, Exchange, Request

OPAQUE = frozenset({"signature", "thought_signature", "thoughtSignature", "encrypted_content"})
_SHORTEST_SECRET = 8  # characters, in a header, a query or a body
_key_header = re.compile(r"auth|token|secret|cookie|password|signature|api[-_]?key|-key$").search
_OAUTH = r"(?:access|refresh|id|subject|actor)[-_]?token"
_KEY = rf"(?:[\w-]*[-_])?(?:api[-_]?key|{_OAUTH}|client[-_]?(?:secret|assertion)|password)"
# fields of a body whose servers may need a key -> further names of keys in them
_WITH_KEYS = {
    "tools": (),
    "mcp_servers": (),
    "data_sources": ("key", "connection_string"),
}
_is_token = re.compile(_OAUTH, re.IGNORECASE).fullmatch
_key_field = re.compile(_KEY, re.IGNORECASE).fullmatch
# keys in the fields of a multipart form, and in those of a query
_FORM = re.compile(rf"(?i)\bname=\"?({_KEY})\"?(?:\r?\n[^\r\n]+)*\r?\n\r?\n([^\r\n]+)")
_QUERY = re.compile(
    rf"(?i)((?:^|&)({_KEY}|assertion|(?:[\w-]*-)?(?:key|token|sig|signature))=)([^&\r\n]+)"
)


def redact_exchange(
    exchange: Exchange, secrets: Mapping[str, str], headers: Mapping[str, str]
) -> Exchange:
    """Return an exchange without `secrets`, values by name, and those that its request carries."""
    request, response = exchange.request, exchange.response
    secrets = {**secrets, **find_secrets(request, headers, response.body)}
    redaction = Redaction(secrets)
    return msgspec.structs.replace(
        exchange,
        request=msgspec.structs.replace(
            request,
            provider=redaction.value(request.provider),
            path=redaction.value(request.path),
            query=redaction.value(_redact_query(request.query)),
            body=_redact_body(request.body, redaction, secrets),
        ),
        response=msgspec.structs.replace(
            response,
            headers=redaction.value(_redact_location(response.headers)),
            body=_redact_body(response.body, redaction, secrets),
        ),
    )


def find_secrets(
    request: Request, headers: Mapping[str, str], answer: Body | None = None
) -> dict[str, str]:
    """Return the secrets that a request or its answer carries, by name, if they are not too short.

    Of several values of one field, the second is named `field password 2`, and so on.
    """
    secrets: dict[str, str] = {}
    keys = [*_list_keys(request, headers), *_list_answer_keys(answer or Body())]
    for name, value in dict.fromkeys(keys):
        # the record of a redirect has redacted keys, and the client sends them on
        if value.startswith("[redacted ") or len(value) < _SHORTEST_SECRET or value.isspace():
            continue
        names = (f"{name} {n}" if n > 1 else name for n in count(1))
        secrets[next(each for each in names if each not in secrets)] = value
    return secrets


def _list_keys(request: Request, headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of what may be a secret in headers, query and body."""
    for name, value in headers.items():
        if _key_header(name) and value.strip():
            # the last word: `Authorization` has a scheme before the key, as in `Bearer KEY`
            yield f"header {name}", value.split()[-1]
            if value.lower().startswith("basic "):
                yield f"header {name} password", _read_basic_password(value)
        if name == "cookie":
            pairs = (pair.partition("=") for pair in value.split(";"))
            yield from ((f"cookie {key.strip()}", text.strip()) for key, _, text in pairs)
    for match in _QUERY.finditer(request.query):
        yield f"query {match[2]}", unquote_plus(match[3])
    yield from _list_body_keys(request.body, headers.get("content-type", "").lower())


def _list_body_keys(body: Body, content_type: str) -> Iterator[tuple[str, str]]:
    is_text = body.kind == "text"
    for match in _FORM.finditer(body.value) if is_text else ():
        yield f"field {match[1]}", match[2]
    yield from _list_field_keys(body, is_form=is_text and "x-www-form-urlencoded" in content_type)
    for field, names in _WITH_KEYS.items():
        for _, text in _list_texts([as_dict(body.value).get(field)]):
            is_key = text.key in names or _key_header(str(text.key).lower())
            if is_key and text.read().strip():
                yield f"field {text.key}", text.read().split()[-1]
    yield from list_ids(body.value)


def _read_basic_password(value: str) -> str:
    """Return the password in the value of an Authorization header, "" if it is not readable."""
    try:
        return base64.b64decode(value.rsplit(maxsplit=1)[-1]).decode().partition(":")[2]
    except ValueError:
        return ""


def _list_answer_keys(body: Body) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of the keys in the answer of a token endpoint (OAuth).

    Some send forms as plain text, so its type does not count; a form has no space.
    """
    is_form = body.kind == "text" and len(body.value.split()) == 1
    keys = list(_list_field_keys(body, is_form=is_form))
    if any(_is_token(name.removeprefix("field ")) for name, _ in keys):
        yield from keys


def _list_field_keys(body: Body, *, is_form: bool) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of the keys in a JSON object or a form of one line."""
    for name, value in as_dict(body.value).items():
        if isinstance(value, str) and _key_field(name):
            yield f"field {name}", value
    for match in _QUERY.finditer(body.value) if is_form else ():
        # encoded as it stands there, and decoded as another place may have it
        yield from ((f"field {match[2]}", v) for v in (match[3], unquote_plus(match[3])))


def _redact_query(query: str) -> str:
    return _QUERY.sub(r"\1[redacted \2]", query)


def _redact_location(headers: Mapping[str, str]) -> dict[str, str]:
    path, mark, query = headers.get("location", "").partition("?")
    return {**headers, "location": f"{path}?{_redact_query(query)}"} if mark else dict(headers)


def _redact_body(body: Body, redaction: Redaction, secrets: Mapping[str, str]) -> Body:
    if body.kind == "stream":
        return Body("stream", _redact_chunks(body.value, redaction, secrets))
    return Body(body.kind, redact_value(body.value, secrets, opaque=OPAQUE))


def _redact_chunks(
    chunks: Sequence[Any], redaction: Redaction, secrets: Mapping[str, str]
) -> list[Any]:
    """Return chunks without secrets; a text without one keeps its pieces as they are."""
    copies = [msgspec.to_builtins(chunk) for chunk in chunks]
    texts_by_field: dict[_FieldKey, list[_Text]] = {}
    for chunk in copies:
        for field_key, text in _list_texts(chunk):
            texts_by_field.setdefault(field_key, []).append(text)
    for texts in texts_by_field.values():
        joined = "".join(text.read() for text in texts)
        if redact_text(joined, secrets) != joined:
            redactor = redaction.stream()
            for text in texts:
                text.write(redactor.feed(text.read()))
            texts[-1].write(texts[-1].read() + redactor.close())
    # the texts of chunks are done; this pass also covers the names of fields
    cleaned: list[Any] = redact_value(copies, secrets, opaque=OPAQUE)
    return cleaned


class _Text(msgspec.Struct, frozen=True):
    """A text of a chunk: `holder[key]`, where `holder` is an object or a list."""

    holder: Any
    key: Any

    def read(self) -> str:
        return str(self.holder[self.key])

    def write(self, text: str) -> None:
        self.holder[self.key] = text


_FieldKey = tuple[str, str]  # the path of a text (`/delta/text`), and the indexes of its chunk


def _list_texts(chunk: Any) -> list[tuple[_FieldKey, _Text]]:
    """Return the texts of a chunk, each with the key of its field."""
    texts, indexes = [], []
    pending: list[tuple[str, Any]] = [("", chunk)]
    while pending:
        above, holder = pending.pop()
        for key, value in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(value, dict | list):
                pending.append((f"{above}/{key}", value))
                continue
            if isinstance(value, str) and key not in OPAQUE:
                texts.append((f"{above}/{key}", _Text(holder, key)))
            if key in INDEXES:
                indexes.append((key, value))
    chunk_indexes = repr(indexes)
    return [((path, chunk_indexes), text) for path, text in texts]


class WholeHomeRedaction(Redaction):
    """A redaction whose streams hand on the path of the home folder whole, so that it is hidden.

    What may be its beginning is held back, since a live stream may end anywhere.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        super().__init__(secrets)
        self._home = Home.of_user()

    def stream(self) -> Redactor:
        """Return a filter for one stream of text."""
        return _WholeHomeStream(self._secrets, self._home)


class _WholeHomeStream(Redactor):
    def __init__(self, secrets: Mapping[str, str] | None, home: Home) -> None:
        super().__init__(secrets)
        self._home = home
        self._tail = ""  # text held back, which may be the beginning of the home folder

    def feed(self, text: str) -> str:
        text = self._tail + super().feed(text)
        end = len(text) - self._home.measure_tail(text)
        self._tail = text[end:]
        return text[:end]

    def close(self) -> str:
        tail, self._tail = self._tail, ""
        return tail + super().close()
