"""The identity of the running cell, and the options that our runner sent with its request.

Why: conversations and records belong to cells and must survive a rerun. Jupyter front ends send the
cell's id with each request; plain nbclient, consoles and terminals do not.

Rule: read the identity when the magic starts; later another request may be current.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from ..record import content_hash
from ..wire import as_dict
from .runner_options import RunnerOptions, read_options


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A running cell. `id` is the notebook's cell id ("" if unknown); `key` always identifies it.

    line, body: the text after `%%agent`, and below it.
    occurrence: its number among the cells with the same line and body that ran here, from 1.
    stdin: whether `input()` works here. kernel: whether this is a Jupyter kernel.
    tags: those of the cell. deleted: the ids of cells deleted since a cell last ran. `tags` and
    `deleted` are empty if the front end sends none.
    """

    key: str
    id: str = ""
    line: str = ""
    body: str = ""
    occurrence: int = 1
    stdin: bool = False
    kernel: bool = False
    runner_options: RunnerOptions = {}
    tags: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    @property
    def text_hash(self) -> str:
        """The hash of the cell's inputs, by which records name its text."""
        return content_hash(self.line, self.body)


class Cells:
    """Identifies the cells of one kernel."""

    def __init__(self) -> None:
        self._seen: dict[str, list[str]] = {}  # ids of cells that ran, by the hash of their inputs

    def current(self, shell: Any, line: str, body: str) -> Cell:
        """Return the cell that runs now in `shell` with these inputs."""
        request = _read_request(shell)
        metadata = as_dict(request.get("metadata"))
        sent_id = metadata.get("cellId")
        cell_id = sent_id if isinstance(sent_id, str) else ""
        kernel = getattr(shell, "kernel", None) is not None
        allows = bool(as_dict(request.get("content")).get("allow_stdin"))
        can_ask = allows if kernel else _terminal_can_ask()
        digest = content_hash(line, body)
        occurrence = self._count_occurrence(digest, cell_id)
        return Cell(
            key=cell_id or f"sha256:{digest}:{occurrence}",
            occurrence=occurrence,
            id=cell_id,
            line=line,
            body=body,
            stdin=can_ask,
            kernel=kernel,
            runner_options=read_options(metadata),
            tags=_read_texts(metadata.get("tags")),
            deleted=_read_texts(metadata.get("deletedCells")),
        )

    def _count_occurrence(self, digest: str, cell_id: str) -> int:
        """Return a cell's number among the cells with its inputs, from 1.

        Without an id a repeated execution cannot be recognised: each one counts as another cell.
        """
        seen = self._seen.setdefault(digest, [])
        if not cell_id or cell_id not in seen:
            seen.append(cell_id)
            return len(seen)
        return seen.index(cell_id) + 1


def current_request(shell: Any) -> tuple[str, str]:
    """Return the id and the code of the request that the kernel handles, "" where unknown."""
    message = _read_request(shell)
    header, content = as_dict(message.get("header")), as_dict(message.get("content"))
    return str(header.get("msg_id", "")), str(content.get("code", ""))


def completed_code(shell: Any) -> tuple[str, int]:
    """Return the code and the cursor of a request for completions, ("", 0) for other requests."""
    content = as_dict(_read_request(shell).get("content"))
    code, cursor = content.get("code"), content.get("cursor_pos")
    return (code, cursor) if isinstance(code, str) and type(cursor) is int else ("", 0)


def _read_request(shell: Any) -> dict[str, Any]:
    try:
        return as_dict(shell.kernel.get_parent())
    except Exception:  # kernels that are not ipykernel
        return {}


def _read_texts(listed: Any) -> tuple[str, ...]:
    return tuple(t for t in listed if isinstance(t, str)) if isinstance(listed, list) else ()


def _terminal_can_ask() -> bool:
    """Return whether a terminal is the standard input."""
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # closed
        return False
