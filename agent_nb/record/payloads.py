"""The payloads of a record: large values stored once, beside the runs of a notebook.

A record travels whole, with the payloads it needs (`attach`), and is stored without them
(`detach`).

Rules
- A record is made whole once, where its file or output is read; readers of whole records need no
  second argument.
- A payload is hashed at most once (`packing.Payloads`). A record's own payload wins over one beside
  it.
"""

from __future__ import annotations

from typing import Any

from .packing import Payloads, reachable
from .record import Record


def attach(record: Record, beside: Any = None) -> dict[str, Any]:
    """Return a record that carries exactly the payloads it needs and that are known."""
    known = Payloads.of(beside, record.get("payloads"))
    bare, _ = detach(record)
    if not known:
        return bare
    needed = reachable(record.get("events"), known) & known.keys()
    return {**bare, "payloads": known.only(sorted(needed))} if needed else bare


def detach(record: Record) -> tuple[dict[str, Any], Payloads]:
    """Return a record without its payloads, and the payloads."""
    bare = {name: value for name, value in record.items() if name != "payloads"}
    return bare, Payloads.of(record.get("payloads"))


def payload_faults(record: Record, beside: Any = None) -> list[str]:
    """Return which needed payloads are missing or do not have the hash of their key."""
    known = Payloads.of(beside, record.get("payloads"))
    faults = []
    for key in sorted(reachable(record.get("events"), known)):
        if key not in known:
            faults.append(f"the payload {key[:12]}… is missing")
        elif not known.sound(key):
            faults.append(f"the payload {key[:12]}… was changed")
    return faults
