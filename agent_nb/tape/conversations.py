"""The bodies of requests, with each message stored once a notebook.

    {"after": {"$payload": key}, "take": n, "add": [message, …]}

A list of messages: the first n of the list `key`, then those in `add`; without `after` only these.

Why: each request of a conversation repeats all messages before it; Claude's agent sends 84 kB in
each request. Lists are payloads, which a record stores once beside it; so are larger fields and
texts. For smaller ones a reference, 150 bytes, would not pay.

Rule: a list is read in a loop, not by recursion, and the hash of each payload is checked before its
`after` is followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec

from ..record import Home, Packer, Payloads, Unpacker
from ..wire import as_dict, encode_canonical
from .references import damaged_error

MESSAGES = ("messages", "input", "contents")  # the fields of a body that hold a conversation
_LARGEST_FIELD = 256  # bytes of a field; a larger one is stored as a payload
_LARGEST_TEXT = 1024  # bytes of a text inside a field or a message; the same
_MOST_REMEMBERED = 64  # conversations that a request may continue
_MOST_LINKS = 500  # of one conversation; then it is stored anew
_MOST_READ = 2_000  # links of one conversation, since a record may say anything


class _Stored(msgspec.Struct, frozen=True):
    """A list of messages that is stored: their canonical texts, and in how many links."""

    texts: list[str]
    links: int


class Conversations:
    """Packs the bodies of one kernel's requests. `payloads`: all that were made so far."""

    def __init__(self, home: Home) -> None:
        self.payloads: dict[str, Any] = {}
        self._home = home
        self._lists: dict[str, _Stored] = {}  # by the keys of their last links, the newest last

    def pack(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the packed form of a body that is a JSON object."""
        packer = Packer(self._home, _LARGEST_TEXT)
        fields = {
            name: _pack_field(value, packer)
            for name, value in body.items()
            if name not in MESSAGES or not isinstance(value, list)
        }
        lists = {
            name: self._pack_messages(body[name], packer)
            for name in MESSAGES
            if isinstance(body.get(name), list)
        }
        self.payloads |= packer.payloads
        return {"fields": fields, **({"lists": lists} if lists else {})}

    def _pack_messages(self, messages: Sequence[Any], packer: Packer) -> dict[str, str]:
        texts = [encode_canonical(message) for message in messages]
        key, take = self._find_longest(texts)
        earlier = self._lists.get(key, _Stored([], 0))
        # the same messages as in an earlier request, neither fewer nor more
        if key and take == len(texts) == len(earlier.texts):
            return {"$payload": key}
        link: dict[str, Any] = {"after": {"$payload": key}, "take": take} if key else {}
        link["add"] = [packer.pack_inside(message) for message in messages[take:]]
        reference = packer.store_payload(link)
        self._lists[reference["$payload"]] = _Stored(texts, earlier.links + 1)
        while len(self._lists) > _MOST_REMEMBERED:
            self._lists.pop(next(iter(self._lists)))
        return reference

    def _find_longest(self, texts: Sequence[str]) -> tuple[str, int]:
        """Return the key of the list that shares the most first messages, and how many; else ""."""
        best, most = "", 0
        for key, earlier in self._lists.items():
            pairs = zip(earlier.texts, texts, strict=False)
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            if shared >= max(most, 1) and earlier.links < _MOST_LINKS:
                best, most = key, shared
        return best, most


def _pack_field(value: Any, packer: Packer) -> Any:
    packed = packer.pack_inside(value)
    return (
        packer.store_payload(packed) if len(encode_canonical(packed)) > _LARGEST_FIELD else packed
    )


def unpack_body(packed: Any, payloads: Payloads, home: Home) -> dict[str, Any]:
    """Return the body that `Conversations.pack` got. Raises UsageError if it is damaged."""
    unpacker = Unpacker(payloads, home)
    packed = as_dict(packed)
    body = {name: unpacker.unpack(value) for name, value in as_dict(packed.get("fields")).items()}
    for name, reference in as_dict(packed.get("lists")).items():
        body[name] = _read_messages(reference, payloads, unpacker)
    return body


class _Link(NamedTuple):
    """A part of a list: the first `take` messages of the part before stay, `add` follow them."""

    take: int
    add: list[Any]


def _read_messages(reference: Any, payloads: Payloads, unpacker: Unpacker) -> list[Any]:
    """Return the messages of a list, which begins with its earliest link. Raises UsageError."""
    messages: list[Any] = []
    for link in reversed(_list_links(reference, payloads)):
        if link.take > len(messages):
            raise damaged_error("its list of messages is shorter than a later one says")
        del messages[link.take :]
        messages += [unpacker.unpack(message) for message in link.add]
    return messages


def _list_links(reference: Any, payloads: Payloads) -> list[_Link]:
    """Return the links of a list, the last one first. Raises UsageError."""
    links: list[_Link] = []
    keys: set[str] = set()
    while reference is not None:
        key = as_dict(reference).get("$payload")
        if not isinstance(key, str) or key in keys or len(keys) >= _MOST_READ:
            raise damaged_error("its list of messages does not end")
        if key not in payloads or not payloads.is_sound(key):
            raise damaged_error(f"the messages {key[:12]}… are missing or were changed")
        keys.add(key)
        link = as_dict(payloads[key])
        reference = link.get("after")
        take = link.get("take", 0)
        if type(take) is not int or take < 0 or not isinstance(link.get("add"), list):
            raise damaged_error("a part of its list of messages is malformed")
        links.append(_Link(take, link["add"]))
    return links
