"""Protocols whose blocks have start, delta and end lines with the block's id.

    {"type": "text-start", "id": "1"}
    {"type": "text-delta", "id": "1", "delta": "High water is "}
    {"type": "text-end", "id": "1"}

The blocks of AG-UI and of the UI message stream differ only in the names of their lines. Their
readers extend `block_reader`, their writers `block_writer`.
"""

from __future__ import annotations

import msgspec

from .foreign_values import text_of
from .run_builder import Obj


class BlockForm(msgspec.Struct, frozen=True):
    """How a protocol writes one kind of block.

    `of`: the kind of event that the block becomes. `start`, `delta`, `end`: the types of its lines.
    `id`, `text`: the fields of a line that hold the block's id, and the text of a delta.
    """

    of: str
    start: str
    delta: str
    end: str
    id: str
    text: str = "delta"

    def key(self, obj: Obj) -> str:
        """Return the key, unique in the stream, of the block that a line names."""
        return f"{self.start}:{text_of(obj, self.id)}"


def index_forms(*forms: BlockForm) -> dict[str, BlockForm]:
    """Return type of a line -> the form of its block."""
    return {name: form for form in forms for name in (form.start, form.delta, form.end)}
