"""Which cell is running: its identity, and what its front end told the kernel about itself.

Why: a conversation belongs to cells, a record too, and both must survive a rerun. Jupyter front ends send the cell's id with
each request; plain nbclient, consoles and terminals do not.

Rules
- Read it on the cell's thread when the magic starts: later the request may be another.
- A cell without an id is known by the SHA-256 of its inputs and how many cells of the same inputs ran before it.
- Nothing here raises: whatever a kernel does not offer is as if it were not there.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import msgspec

OURS = "agent_nb"  # key of the request metadata that our own runner sends


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A running cell. `id` is the notebook's cell id ("" when unknown), `key` identifies the cell either way.

    `stdin` says whether `input()` may be asked, `kernel` whether this is a Jupyter kernel, `sent` is what our runner sent along.
    """

    key: str
    id: str = ""
    line: str = ""
    body: str = ""
    stdin: bool = False
    kernel: bool = False
    sent: dict[str, Any] = {}


class Cells:
    """Tells the cells of one kernel apart."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def current(self, shell: Any, line: str, body: str) -> Cell:
        """Return the cell that runs now in `shell` with these inputs."""
        request = _request(shell)
        metadata = _dict(request.get("metadata"))
        cell_id = metadata.get("cellId")
        cell_id = cell_id if isinstance(cell_id, str) else ""
        kernel = getattr(shell, "kernel", None) is not None
        allowed = bool(_dict(request.get("content")).get("allow_stdin")) if kernel else _terminal_stdin()
        sent = _dict(metadata.get(OURS))
        return Cell(
            key=cell_id or self._hash(line, body), id=cell_id, line=line, body=body, stdin=allowed, kernel=kernel, sent=sent
        )

    def _hash(self, line: str, body: str) -> str:
        digest = content_hash(line, body)
        self._seen[digest] += 1
        return f"sha256:{digest}:{self._seen[digest]}"


def content_hash(line: str, body: str) -> str:
    """Return the hash of a cell's inputs; spaces at the ends of lines and of the text do not count."""
    lines = [part.rstrip() for part in f"{line.strip()}\n{body.strip()}".splitlines()]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _request(shell: Any) -> dict[str, Any]:
    try:
        return _dict(shell.kernel.get_parent())
    except Exception:  # kernels that are not ipykernel
        return {}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _terminal_stdin() -> bool:
    import sys

    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # closed
        return False
