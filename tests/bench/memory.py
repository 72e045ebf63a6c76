"""How much memory a very long run takes: an agent, its log, its record and the live view with all
its widgets, in one process.

    python tests/bench/memory.py [--tokens 1000000]

The model makes its words as they are asked for, as one on the network does, a paragraph at a time;
the front end is a comm that counts bytes. Prints the resident memory before, at the end, when all
of it is shown, with the static view and the record, and at its highest; and what the view has sent.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import comm
from comm.base_comm import BaseComm
from common import PART

TOKEN = 5  # characters


class Endless:
    """A model that writes so many tokens."""

    name, dialect, grammar, shots, context = "bench/endless", "native", False, False, 0

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    async def stream(self, request: Any) -> AsyncGenerator[Sequence[Any], None]:
        """Yield the tokens of one turn."""
        from agent_nb.models.parts import Finish, Text

        left, number = self.tokens, 0
        while left > 0:
            number += 1
            part = PART.replace("{i}", str(number))
            pieces = [part[at : at + TOKEN] for at in range(0, len(part), TOKEN)][:left]
            left -= len(pieces)
            yield [Text(piece) for piece in pieces]
            await asyncio.sleep(0)
        yield [Finish("stop")]

    async def aclose(self) -> None:
        """Nothing is open."""


class Wire(BaseComm):
    """A front end that only counts."""

    messages = 0
    size = 0

    def publish_msg(
        self,
        msg_type: str,
        data: Any = None,
        metadata: Any = None,
        buffers: Any = None,
        **keys: Any,
    ) -> None:
        """Count a message."""
        Wire.messages += 1
        Wire.size += len(str((data or {}).get("state", {}).get("value", "")))


def resident(name: str = "VmRSS") -> float:
    """Return the resident memory of this process in MB; `VmHWM`: the highest it has been."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


async def run(tokens: int) -> None:
    """Run an agent that answers with so many tokens, shown as widgets, and print what it took."""
    from agent_nb import Agent
    from agent_nb.record.record import run_record
    from agent_nb.view.bundle import make_bundle
    from agent_nb.view.live import LiveView

    agent = Agent(Endless(tokens), limits={"tokens": 10 * tokens, "seconds": 3600}, secrets={})
    before, begun = resident(), time.perf_counter()
    stream = agent("Write.", view=None)
    view = LiveView.open(stream.log, publish=lambda *_: None)
    done = await stream
    print(
        f"{tokens:,} tokens, {len(done.answer) / 1e6:.1f} MB of text, {done.status} after {time.perf_counter() - begun:.0f} s"
    )
    print(
        f"resident before {before:.0f} MB, at the end of the run {resident():.0f} MB, highest {resident('VmHWM'):.0f} MB",
        flush=True,
    )
    while not view.caught_up:
        await asyncio.sleep(0.1)
    print(
        f"all of it shown after {time.perf_counter() - begun:.0f} s: {resident():.0f} MB, highest {resident('VmHWM'):.0f} MB",
        flush=True,
    )
    widgets = _count(view._painter.board.root)
    view.close(dict(make_bundle(done.log)))
    run_record(done.log)
    print(f"with static view and record {resident():.0f} MB, highest {resident('VmHWM'):.0f} MB")
    print(
        f"sent: {Wire.messages:,} messages, {Wire.size / 1e6:.1f} MB of HTML; widgets at the end: {widgets}; fault: {view.fault}"
    )


def _count(widget: Any) -> int:
    return 1 + sum(map(_count, getattr(widget, "children", ())))


def main() -> None:
    """Run."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tokens", type=int, default=1_000_000)
    comm.create_comm = Wire
    asyncio.run(run(options.parse_args().tokens))


if __name__ == "__main__":
    main()
