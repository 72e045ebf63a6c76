"""What a translation could not carry, counted with the reason: nothing is dropped silently.

Why: every foreign format knows less than the canonical events. A converter that reports what it
left out can be trusted; with `strict` it refuses instead.

Rules
- A loss is named `kind` (the whole event), `kind.field`, or in plain words for lines that could not
  be read (`malformed line`).
- A `detail` is what every reader makes anew (numbers, synthetic ids, delta boundaries); it is
  counted too, and strict mode allows it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..errors import WireError


class Loss(msgspec.Struct, frozen=True):
    """One kind of loss: what, why, how often; `detail` when a reader makes it anew."""

    what: str
    reason: str
    count: int
    detail: bool = False


class Losses:
    """The losses of one stream. With `strict`, the first real one raises WireError."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._losses: dict[str, Loss] = {}

    def add(
        self, what: str, reason: str, *, detail: bool = False, raw: str = "", position: int = 0
    ) -> None:
        """Count one loss. Raises WireError in strict mode unless it is a detail."""
        before = self._losses.get(what)
        self._losses[what] = Loss(what, reason, before.count + 1 if before else 1, detail)
        if self.strict and not detail:
            raise WireError(
                f"{what}: {reason}. Leave strict mode to go on without it.",
                raw=raw[:2000],
                position=position,
            )

    def update(self, other: Losses) -> None:
        """Add what another stream lost."""
        for loss in other:
            before = self._losses.get(loss.what)
            self._losses[loss.what] = msgspec.structs.replace(
                loss, count=loss.count + (before.count if before else 0)
            )

    def __iter__(self) -> Iterator[Loss]:
        return iter(self._losses.values())

    def __bool__(self) -> bool:
        return any(not loss.detail for loss in self)

    def counts(self) -> dict[str, int]:
        """Return what -> how often, real losses only."""
        return {loss.what: loss.count for loss in self if not loss.detail}

    def __str__(self) -> str:
        return "\n".join(
            f"{loss.count:>7}  {loss.what}: {loss.reason}" for loss in self if not loss.detail
        )
