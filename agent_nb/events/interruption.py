"""How the detail of an interrupt names the limit that a run hit, in records of any age."""

from __future__ import annotations

AT = "stopped at the limit of "


_OLDER = "limit reached: "


def limit_in(detail: str) -> str:
    """Return the limit that the detail of an interrupt names ("30 turns"), in records of any age;
    "" where it names none.
    """
    said = next((detail.removeprefix(head) for head in (AT, _OLDER) if detail.startswith(head)), "")
    return said.partition(" (")[0].replace(" model turns", " turns")
