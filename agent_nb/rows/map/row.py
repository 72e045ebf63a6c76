"""One row of a map: its prompt (`Row`), and its result (`RowResult`).

Rule: a result holds no events, so that a hundred thousand fit into memory; its record has them.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

# `limit`: the run reached one of its limits; `interrupted`: it was stopped; `pending`: not asked
Status = Literal["ok", "error", "limit", "interrupted", "pending"]
Origin = Literal["live", "store", "record"]

_STATUS = re.compile(r"\((\d{3})\)")  # an HTTP status in a message of `models.http.errors`


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt of a map.

    `position` counts from 0 in the order of the data; `repeat` counts from 0 when each row is asked
    several times. `key` is a digest of the row's inputs, the same in every execution (see `keys`).
    """

    position: int
    prompt: str
    key: str
    attachments: tuple[dict[str, Any], ...] = ()
    repeat: int = 0

    def result(self, status: Status = "pending", **fields: Any) -> RowResult:
        """Return a result of this row, by default that it is not asked yet.

        `fields`: those of `RowResult`.
        """
        return RowResult(position=self.position, key=self.key, status=status, **fields)


class RowResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one row.

    `answer` is the text, `output` the JSON of a typed answer. `kind` is the code of the error (such
    as `provider`), `error` its message. `input` and `written` count the tokens of the prompt and of
    the answer, `cost` is in dollars (None: unknown). `seconds`: the time of the run, without the
    wait in the queue. `run`: the id of the run. `attempts`: how often the row was asked. `origin`:
    asked now (`live`), or read from the store or the notebook's record.
    """

    position: int
    key: str
    status: Status = "pending"
    answer: str = ""
    output: Any = None
    kind: str = ""
    error: str = ""
    input: int = 0
    written: int = 0
    cost: float | None = None
    seconds: float = 0.0
    run: str = ""
    attempts: int = 0
    origin: Origin = "live"

    @property
    def failure(self) -> str:
        """The kind of failure: the HTTP status of a provider's refusal, else `kind` or `status`."""
        refused = _STATUS.search(self.error) if self.kind == "provider" else None
        return refused[1] if refused else self.kind or self.status
