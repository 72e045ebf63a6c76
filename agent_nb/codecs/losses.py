"""Counts what a translation cannot carry, with the reason: nothing is dropped silently.

A run in another format looks complete, so its reader must learn what it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..errors import WireError


class Loss(msgspec.Struct, frozen=True):
    """One kind of loss, its newest reason and count.

    `what`: the kind of a lost event, `kind.field`, or plain words for a line that could not be
    read. `detail`: without consequence, because every reader generates the value itself (sequence
    numbers, synthetic ids, chunk boundaries).
    """

    what: str
    reason: str
    count: int
    detail: bool = False


class Losses:
    """The losses of one stream; all but details are real. Strict: the first real one raises."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._losses: dict[tuple[str, bool], Loss] = {}  # by name and `detail`

    def add(self, what: str, reason: str, *, detail: bool = False, raw: str = "") -> None:
        """Count one loss; `raw`: the lost text, whose first 2000 characters the error holds.

        Raises WireError in strict mode, unless the loss is a detail.
        """
        self._count(Loss(what, reason, 1, detail))
        if self.strict and not detail:
            raise WireError(
                f"{what}: {reason}. Leave strict mode to go on without it.", raw=raw[:2000]
            )

    def update(self, other: Losses) -> None:
        """Add the losses of another stream."""
        for loss in other:
            self._count(loss)

    def _count(self, loss: Loss) -> None:
        previous = self._losses.get(key := (loss.what, loss.detail))
        total = loss.count + (previous.count if previous else 0)
        self._losses[key] = msgspec.structs.replace(loss, count=total)

    def __iter__(self) -> Iterator[Loss]:
        return iter(self._losses.values())

    def __bool__(self) -> bool:
        """Whether anything was really lost."""
        return any(not loss.detail for loss in self)

    def counts(self) -> dict[str, int]:
        """Return the name of each real loss -> its count; details are left out."""
        return {loss.what: loss.count for loss in self if not loss.detail}

    def __str__(self) -> str:
        real = (loss for loss in self if not loss.detail)
        return "\n".join(f"{loss.count:>7}  {loss.what}: {loss.reason}" for loss in real)
