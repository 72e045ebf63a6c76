"""What a stored row costs: microseconds to claim, to store and to find it, and its bytes.

    python tests/bench/row_store.py [ROWS]

The record is that of a real run of one turn. Calls take 1, 10 and 100 rows at once: a map stores
what has come since its last visit, so that a slow disk makes larger batches. Figures are means over
ROWS rows (5,000): elapsed, and CPU time of this process in brackets.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from agent_nb import Agent, Scripted
from agent_nb.record.record import run_record
from agent_nb.record.signing import UserKey
from agent_nb.rows.store.row_store import RowStore

SIZES = (1, 10, 100)


def measured(name: str, work: Callable[[list[str]], object], keys: list[str], at_once: int) -> None:
    """Print what a call costs for each row."""
    wall, cpu = time.perf_counter(), time.process_time()
    for first in range(0, len(keys), at_once):
        work(keys[first : first + at_once])
    elapsed, busy = time.perf_counter() - wall, time.process_time() - cpu
    each = 1e6 / len(keys)
    print(f"{name:<6}{at_once:>4} at once: {elapsed * each:6.0f} µs a row ({busy * each:.0f})")


def main(rows: int) -> None:
    """Print the figures."""

    async def asked() -> dict[str, object]:
        return run_record((await Agent(Scripted(["positive"]))("Label: good", record=False)).log)

    record = asyncio.run(asked())
    print(f"{rows:,} rows; a record has {len(json.dumps(record)):,} bytes")
    keys = [f"{n:032x}" for n in range(rows)]
    with tempfile.TemporaryDirectory() as folder:
        for at_once in SIZES:
            path = Path(folder) / f"{at_once}.sqlite"
            store = RowStore(path, "bench", UserKey(b"key"), owner="bench")
            measured("claim", lambda some, s=store: s.claim(some, 60), keys, at_once)
            measured(
                "put", lambda some, s=store: s.put([(k, record, 1) for k in some]), keys, at_once
            )
            measured("find", store.find, keys, at_once)
            store.close()
            print(f"      {path.stat().st_size / rows:,.0f} bytes a row")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
