"""Signed messages between servers and the kernel of a run: stop, an answer, "I have readers".

Why signed: otherwise anyone who can write to Redis could approve calls. Redis never holds the key:
it comes from AGENT_NB_HUB_KEY, else from the user's Jupyter secret, which machines do not share.
Without a key, clients can only follow runs.

Rule: a message is valid once, for one run, for `LIFE` seconds; clocks may differ by `SKEW` seconds.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from ...errors import UsageError
from ...events import Approval, Call, Event
from ...models import hide_secret
from ...record import UserKey
from .entries import encode_bounded
from .link import LOG

VARIABLE = "AGENT_NB_HUB_KEY"
SHORTEST = 16  # characters
LIFE, SKEW = 30.0, 30.0  # s
LARGEST = 1 << 20  # bytes
MOST_LOGGED = 20  # rejections
_PURPOSE = b"agent_nb hub control 1\n"


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message.

    kind: `cancel` stops the run, `approve` answers a question, `listening` and `gone` say whether
        the sender's server has readers of the run, `said` is the kernel's reply.
    nonce: a random text that marks the message. expires: epoch seconds.
    back: the inbox in Redis for the reply.
    call, question: the id of the call and its `question_hash`.
    allow, args, scope, reason: the answer to a question, as in `Decision`.
    A reply has the nonce of the message that it answers. `done`: that message had an effect;
    `failure`: why the kernel did not obey it.
    """

    kind: Literal["cancel", "approve", "listening", "gone", "said"]
    run: str
    nonce: str
    expires: float
    back: str = ""
    call: str = ""
    question: str = msgspec.field(default="", name="asked")
    allow: bool = False
    args: dict[str, Any] | None = None
    scope: Literal["once", "args", "tool", "run"] = "once"
    reason: str = ""
    done: bool = False
    failure: str = msgspec.field(default="", name="words")


class Refused(Exception):  # noqa: N818  (a message, not a fault)
    """The rejection of a message; the text is the reason."""


def hub_key() -> bytes:
    """Return the key of control messages, b"" without one. Raises UsageError if it is too short."""
    variable = os.environ.get(VARIABLE, "")
    if not variable:
        secret: bytes = UserKey.read()
    elif len(variable) < SHORTEST:
        raise UsageError(f"{VARIABLE} is too short: take at least {SHORTEST} random characters.")
    else:
        hide_secret(variable)
        secret = os.fsencode(variable)
    return hmac.new(secret, _PURPOSE, hashlib.sha256).digest() if secret else b""


def seal_message(message: Message, key: bytes) -> list[bytes]:
    """Return a signed message as the fields of a stream's entry."""
    data = msgspec.json.encode(message)
    return [b"m", data, b"s", _signature(data, key)]


class Gate:
    """Checks and decodes messages for the run `run`, None: for any run; rejects repeats."""

    def __init__(self, run: str | None, key: bytes) -> None:
        self._run, self._key = run, key
        self._seen: dict[str, float] = {}  # nonce of a valid message -> when it expires
        self._rejections = 0

    def open(self, fields: list[bytes]) -> Message:
        """Return the message in the fields of a stream's entry. Raises Refused."""
        try:
            values = dict(zip(fields[::2], fields[1::2], strict=True))
            data, signature = values[b"m"], values[b"s"]
        except (ValueError, KeyError):
            raise Refused("it is not a message") from None
        if len(data) > LARGEST:
            raise Refused("it is too large")
        if not self._key or not hmac.compare_digest(signature, _signature(data, self._key)):
            raise Refused("its signature is wrong: it was forged or altered, or the keys differ")
        try:
            message = msgspec.json.decode(data, type=Message)
        except (msgspec.DecodeError, RecursionError):
            raise Refused("it cannot be read: its sender is of another version") from None
        now = time.time()
        if self._run is not None and message.run != self._run:
            raise Refused("it is for another run")
        if not now - SKEW < message.expires < now + LIFE + SKEW:
            raise Refused("it has expired, or the clocks of the machines differ")
        self._seen = {n: end for n, end in self._seen.items() if end > now - SKEW}
        if message.nonce in self._seen:
            raise Refused("it came before")
        self._seen[message.nonce] = message.expires
        return message

    def log_rejection(self, why: Refused) -> None:
        """Log why a message does not count, at most `MOST_LOGGED` times."""
        self._rejections += 1
        if self._rejections <= MOST_LOGGED:
            whose = self._run or "this server"
            LOG.warning("a control message for %s does not count: %s", whose, why)


def new_message(kind: Any, run: str, **values: Any) -> Message:
    """Return a new message, valid from now for `LIFE` seconds."""
    nonce = values.pop("nonce", "") or secrets.token_urlsafe(18)
    return Message(kind=kind, run=run, nonce=nonce, expires=time.time() + LIFE, **values)


def question_hash(events: Iterable[Event], call_id: str) -> str:
    """Return the hash of the newest question about a call, "" if no question was asked.

    The hash covers the call with its arguments, and the approval with its preview.
    """
    call = question = None
    for event in events:
        if isinstance(event, Call) and event.call_id == call_id:
            call = event
        elif isinstance(event, Approval) and (event.call_id, event.stage) == (call_id, "requested"):
            question = event
    if question is None:
        return ""
    content = b"\n".join(encode_bounded(event) for event in (call, question) if event is not None)
    return hashlib.sha256(content).hexdigest()


def _signature(data: bytes, key: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).hexdigest().encode()
