"""What a recipe is, and pictures for it."""

import json
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

FIRST = '''%load_ext agent_nb
import json
from agent_nb import Agent, Scripted, tool, watch

def calls(*pairs):
    """What a model writes to call tools."""
    return f"<execute>{json.dumps([{'name': name, 'args': args} for name, args in pairs])}</execute>"

def call(name, **args):
    """What a model writes to call one tool."""
    return calls((name, args))'''
BETWEEN = "\n# %%\n"


@dataclass(frozen=True)
class Recipe:
    """One notebook.

    `text`: its cells, with a line `# %%` between two. Before them comes `FIRST`; the n-th cell of
    the notebook has the id `celln`. `files`: what stands beside it, by name. `runs` are replayed.
    `varies`: the cells, by number, that depend on the environment by intention. `needs`: modules
    that must be installed. `trusts`: its folder is trusted, as with `--trust-folder`.
    """

    name: str
    shows: str
    text: str
    files: dict[str, str | bytes] = field(default_factory=dict)
    runs: int = 1
    varies: tuple[int, ...] = ()
    needs: tuple[str, ...] = ()
    trusts: bool = False

    @property
    def cells(self) -> list[str]:
        """The sources of all cells."""
        return [FIRST, *self.text.strip("\n").split(BETWEEN)]

    def write(self, folder: Path) -> Path:
        """Write the notebook, without records, and its files."""
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        plain = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
        cells = [
            {**plain, "id": f"cell{n}", "source": source} for n, source in enumerate(self.cells, 1)
        ]
        path = folder / f"{self.name}.ipynb"
        path.write_text(
            json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}),
            encoding="utf-8",
        )
        return path


def png(red: int = 200, side: int = 4) -> bytes:
    """Return a square picture of one colour."""
    rows = b"".join(b"\0" + bytes([red, 40, 40] * side) for _ in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(rows))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
