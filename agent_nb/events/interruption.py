"""The limit that a run hit, as named in the detail of an interrupt, in records of any age."""

from __future__ import annotations

AT = "stopped at the limit of "
_OLDER = "limit reached: "


def limit_in(detail: str) -> str:
    """Return the limit named in the detail of an interrupt ("30 turns"), or ""."""
    limit = next(
        (detail.removeprefix(head) for head in (AT, _OLDER) if detail.startswith(head)), ""
    )
    return limit.partition(" (")[0].replace(" model turns", " turns")
