"""How fast formats are read and written, and how much memory a long stream takes.

    python tests/bench/convert.py [--events 200000] [--memory 1000000]

Bars: canonical NDJSON at least 400,000 events/s read and 1,000,000 written; peak memory of a
conversion flat over 1,000,000 events. Other formats are printed beside `json.loads`/`json.dumps` of
the same lines, in the same run.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from agent_nb import events as ev
from agent_nb.codecs.convert import convert
from agent_nb.codecs.detect import named
from agent_nb.events import Event
from agent_nb.events.event_json import encode_event
from agent_nb.host import plugins

BARS = {"read": 400_000, "written": 1_000_000}


def sample(count: int) -> list[Event]:
    """Return `count` events of the usual mix."""
    one: dict[str, Any] = {"ts": 1767225600.123, "run": "3f2a9c01d4e5", "turn": 1}
    two = {**one, "turn": 2}
    kinds: list[Callable[[int], Event]] = [
        lambda i: ev.Think(
            seq=i, **one, block="1.1", content="I should list the files first.", origin="model"
        ),
        lambda i: ev.Call(
            seq=i, **one, call_id=f"c{i}", name="shell", args={"command": "ls -l src"}
        ),
        lambda i: ev.Progress(
            seq=i, **one, call_id=f"c{i - 1}", text="client\nserver\n", origin="tool"
        ),
        lambda i: ev.Result(
            seq=i, **one, call_id=f"c{i - 2}", name="shell", content="client\nserver"
        ),
        lambda i: ev.Respond(
            seq=i, **two, block="2.1", content="There are two folders: client and server."
        ),
    ]
    return [kinds[i % len(kinds)](i + 1) for i in range(count)]


def rate(count: int, work: Callable[[], object]) -> float:
    """Return events per second, the best of three."""
    best = 0.0
    for _ in range(3):
        gc.collect()
        start = time.perf_counter()
        work()
        best = max(best, count / (time.perf_counter() - start))
    return best


def read_all(name: str, data: bytes) -> int:
    """Read a stream in 64 KB chunks; return the number of events."""
    decoder, count = named(name)[0].decoder(), 0
    for at in range(0, len(data), 65536):
        count += len(decoder.feed(data[at : at + 65536]))
    return count + len(decoder.close())


def write_all(name: str, events: list[Event]) -> None:
    """Write every event, keeping nothing."""
    encoder = named(name)[0].encoder(framing="ndjson")
    feed = encoder.feed
    for event in events:
        feed(event)
    encoder.close()


def table(count: int) -> dict[str, float]:
    """Measure every codec; return the figures of the canonical one."""
    events, found = sample(count), {}
    gc.freeze()
    for name in plugins.list_plugins("codecs"):
        codec = named(name)[0]
        encoder = codec.encoder(framing="ndjson")
        lines = [line for e in events for line in encoder.feed(e)] + encoder.close()
        objects = [json.loads(line) for line in lines]
        data = ("\n".join(lines) + "\n").encode()
        read, written = (
            rate(len(lines), lambda: read_all(name, data)),  # noqa: B023  (called at once)
            rate(count, lambda: write_all(name, events)),  # noqa: B023
        )
        loads, dumps = (
            rate(len(lines), lambda: [json.loads(x) for x in lines]),  # noqa: B023
            rate(len(lines), lambda: [json.dumps(o) for o in objects]),  # noqa: B023
        )
        print(f"{name:<12} read {read:>12,.0f} lines/s (json.loads {loads:>10,.0f})", end="   ")
        print(f"written {written:>12,.0f} events/s (json.dumps {dumps:>10,.0f})")
        if name == "canonical":
            found = {"read": read, "written": written}
    return found


class Stream(io.RawIOBase):
    """A file of `count` canonical lines that is never in memory."""

    def __init__(self, count: int) -> None:
        self._block = "".join(encode_event(e).decode() + "\n" for e in sample(1000)).encode()
        self._left = count // 1000

    def read1(self, _size: int) -> bytes:
        """Return the next thousand lines."""
        self._left -= 1
        return self._block if self._left >= 0 else b""


def peaks(count: int) -> Iterator[tuple[str, float, float]]:
    """Yield (codec, peak RSS in MB after a tenth, after all) of a conversion from canonical."""
    for name in plugins.list_plugins("codecs"):
        convert(Stream(count // 10), _Null(), "canonical", name)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        convert(Stream(count), _Null(), "canonical", name)
        yield name, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class _Null(io.StringIO):
    def write(self, text: str) -> int:
        return len(text)


def main() -> int:
    """Print the figures; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--memory", type=int, default=1_000_000)
    options = parser.parse_args()
    missed = []
    for name, before, after in peaks(options.memory):
        print(
            f"{name:<12} peak RSS {before:.0f} MB after {options.memory // 10:,} events, {after:.0f} MB after {options.memory:,}"
        )
        if after > before * 1.1:
            missed.append(f"memory of {name}")
    for what, figure in table(options.events).items():
        verdict = "ok" if figure >= BARS[what] else "MISSED"
        print(f"canonical {what}: {figure:,.0f} events/s, bar {BARS[what]:,}: {verdict}")
        if figure < BARS[what]:
            missed.append(what)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
