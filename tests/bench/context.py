"""What the context costs: the time from a cell's start to its request, with and without it, beside
the bare request; the time and the size of a description of hostile objects.

    python tests/bench/context.py [--rounds 15]

A server on loopback answers at once. Each round makes every kind of request once, in turn, so that
a busy machine slows all of them; the least time counts. "Enter to request" is from the start of the
cell to the moment at which the server has read the request. The bare request is the same body, sent
by `httpx` with an open connection.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections import defaultdict
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import common  # noqa: F401  (makes helpers importable)
import numpy as np
import pandas as pd

MODES = ("none", "auto", "vars", "cells")
LINE = "-m openai/bench -t python --no-record --view text --new --live --context"


def answer(seen: list[float]) -> Any:
    """Return a behaviour of the server that notes when a request was read."""

    def behave(peer: Any) -> None:
        seen.append(time.perf_counter())
        chunk = {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}
        peer.stream(chunk, "data: [DONE]\n\n")

    return behave


def shell() -> Any:
    """Return a shell with the extension, an analyst's namespace and forty cells of history."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from agent_nb.notebook import magic

    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    made = InteractiveShell.instance(config=config)
    rng = np.random.default_rng(1)
    for number in range(12):
        frame = pd.DataFrame(rng.normal(size=(2_000, 20)), columns=[f"c{i}" for i in range(20)])
        made.user_ns[f"frame_{number}"] = frame
        made.user_ns[f"array_{number}"] = rng.normal(size=(50, 50))
        made.user_ns[f"list_{number}"] = list(range(1_000))
    with redirect_stdout(StringIO()):  # the shell shows what each cell gives
        for number in range(40):
            made.run_cell(
                f"value_{number} = {number}\nvalue_{number} * 2", store_history=True, silent=False
            )
    magic.load_magics(made)
    return made


def cell(made: Any, mode: str) -> None:
    """Run one agent cell."""
    code = made.transform_cell(f"%%agent {LINE} {mode}\nHow many rows has frame_3?")
    with redirect_stdout(StringIO()):  # the card
        result = asyncio.run(made.run_cell_async(code, transformed_cell=code))
    result.raise_error()


def requests(rounds: int) -> None:
    """Measure Enter to request for each mode beside the bare request, interleaved."""
    import httpx
    from helpers.model_server import Server

    seen: list[float] = []
    server = Server(answer(seen))
    os.environ |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-" + "0" * 32}
    made = shell()
    spent: dict[str, list[float]] = defaultdict(list)
    sizes: dict[str, int] = {}
    for _ in range(rounds + 2):
        for mode in MODES:
            began = time.perf_counter()
            cell(made, mode)
            spent[mode].append(seen[-1] - began)
            sizes[mode] = len(str(server.asked[-1].body))
        with httpx.Client() as client:
            began = time.perf_counter()
            client.post(f"{server.url}/chat/completions", json=server.asked[-1].body)
            spent["bare"].append(seen[-1] - began)
    server.close()
    best = {name: min(times[2:]) for name, times in spent.items()}
    bare = best.pop("bare")
    print(f"{'bare request':26} {1e3 * bare:7.2f} ms")
    for mode, seconds in best.items():
        print(
            f"{'Enter to request, ' + mode:26} {1e3 * seconds:7.2f} ms = {seconds / bare:5.1f} × the bare request, "
            f"{seconds / best['none']:4.2f} × without context; {sizes[mode]:,} characters"
        )


def hostile(rounds: int) -> None:
    """Measure the context of hostile objects, and count what they noticed."""
    from helpers.hostile_objects import HITS
    from helpers.hostile_objects import hostile as objects
    from IPython.core.getipython import get_ipython

    from agent_nb.notebook.cell.context import build_context

    made: Any = get_ipython()
    with tempfile.TemporaryDirectory() as folder:
        made.user_ns.clear()
        made.user_ns.update(objects(Path(folder)))
        count = len(made.user_ns)
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            found = build_context(made, "vars", (), "What is mock?")
            times.append(time.perf_counter() - began)
        written = len(list(Path(folder).iterdir()))
    print(
        f"{count} hostile objects: best {1e3 * min(times):.1f} ms, worst {1e3 * max(times):.1f} ms of {rounds}, "
        f"{found.tokens:,} tokens, {len(HITS) + written} side effects"
    )


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    rounds = options.parse_args().rounds
    requests(rounds)
    hostile(rounds)


if __name__ == "__main__":
    main()
