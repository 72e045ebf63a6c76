"""What client and worker send each other about one row, as JSON bytes.

Why JSON: a pickle runs code where it is read, and carries whatever it refers to.

Rules
- The version is read alone at first, so that a message of another version gives a clear error,
  however the rest of it is formed.
- Plain values only: a spec, a row, a share; a result and a record.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....host import __version__
from ..row import Row, RowResult
from .spec import Spec


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One row to ask. `map`: names this execution of a map, `ticket` this attempt of the row.

    `rpm`: requests per minute of this worker (0: no limit); `issue` counts the changes of shares,
    so that a late message changes nothing back.
    """

    version: str = __version__
    map: str
    ticket: str
    spec: Spec
    row: Row
    rpm: int = 0
    issue: int = 0


class Returned(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a row: its result, and the packed record of its run, redacted there."""

    version: str = __version__
    result: RowResult
    record: dict[str, Any] | None = None


class Skew(ValueError):  # noqa: N818  (it names what is wrong between two messages)
    """A message of another version of this package."""

    def __init__(self, version: str) -> None:
        super().__init__(version)
        self.version = version or "unknown"


class _Head(msgspec.Struct, frozen=True):
    version: str = ""


encode = msgspec.json.Encoder().encode
_head = msgspec.json.Decoder(_Head).decode
_work = msgspec.json.Decoder(Work).decode
_returned = msgspec.json.Decoder(Returned).decode


def read_work(message: bytes) -> Work:
    """Return the row to ask. Raises Skew."""
    _check(message)
    return _work(message)


def read_returned(message: bytes) -> Returned:
    """Return what came of a row. Raises Skew."""
    _check(message)
    return _returned(message)


def _check(message: bytes) -> None:
    if (version := _head(message).version) != __version__:
        raise Skew(version)
