"""Throughput of the text dialects, through their own `feed` and through the public `parse`, beside
two peers in the same run.

    python tests/bench/parse.py [--quick]

Peers: a loop whose `feed` method only wraps each chunk in a frozen struct, and `cogency` from the
registry (its parser alone) on one 100 KB answer. cogency is run by the Python named in
AGENT_NB_PEER_PYTHON, or by this one; it needs `pip install cogency httpx`.

Bars: 4 MB cost at most 4.6 times 1 MB; at 16 characters of plain text `feed` reaches a third of the
wrapping loop and `parse` 10 MB/s; on 100 KB in 4-character chunks `feed` is 300 times and `parse`
80 times as fast as cogency. A bar that fails makes the exit code 1. Figures are the best of several
rounds, in CPU time of this process; MB means a million characters.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from agent_nb.host import plugins

MILLION = 1_000_000
SIZES = (4, 16, 64)
DIALECTS = ("xml", "section", "thinking")
PROSE = "The median price is 28.9 and two values stand out so far, one of them in the north. "
THOUGHT = "The user wants a short answer; two facts are known."
PEER = """
import asyncio, sys, time
from cogency.core.parser import parse_tokens
text = sys.stdin.read()
chunks = [text[n:n + 4] for n in range(0, len(text), 4)]
async def stream():
    for chunk in chunks:
        yield chunk
async def main():
    start = time.process_time()
    async for _ in parse_tokens(stream()):
        pass
    print(time.process_time() - start)
asyncio.run(main())
"""


class Wrapped(msgspec.Struct, frozen=True):
    """What the wrapping loop makes of a chunk."""

    text: str


class Wrapping:
    """The peer that does nothing else."""

    def feed(self, text: str) -> Wrapped:
        return Wrapped(text)

    def close(self) -> Sequence[Any]:
        return ()


def filled(text: str, size: int) -> str:
    return (text * (size // len(text) + 1))[:size]


def texts(dialect: str, size: int) -> dict[str, str]:
    """Return the texts to read, in the words of a dialect."""
    prose = filled(PROSE, size)
    if dialect == "section":
        return {
            "answer": prose,
            "think": f"§THINK: {prose}\n§END",
            "execute": f'§CALL: {{"name": "write", "args": {{"text": "{prose}"}}}}\n§EXECUTE',
            "blocks": filled(f"§THINK: {THOUGHT}\n§RESPOND: {PROSE}\n", size),
        }
    tag = "think" if dialect == "xml" else "thinking"
    found = {
        "answer": prose,
        "think": f"<{tag}>{prose}</{tag}>",
        "blocks": filled(f"<{tag}>{THOUGHT}</{tag}>\n\n{PROSE}\n", size),
    }
    if dialect == "xml":
        found["execute"] = (
            f'<execute>[{{"name": "write", "args": {{"text": "{prose}"}}}}]</execute>'
        )
    return found


def cut(text: str, size: int) -> list[str]:
    return [text[n : n + size] for n in range(0, len(text), size)]


def best(rounds: int, work: Callable[[], Any]) -> float:
    """Return the least CPU time (s) of several rounds."""
    times = []
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def feed_all(new: Callable[[], Any], chunks: Sequence[str]) -> None:
    parser = new()
    feed = parser.feed
    for chunk in chunks:
        feed(chunk)
    parser.close()


def public_parse() -> Callable[[Sequence[str], str], Any] | None:
    try:
        from agent_nb.agent.parse import parse
    except ImportError:
        return None
    return parse


def cogency_seconds(text: str) -> float | None:
    """Return the CPU time (s) of cogency's parser in 4-character chunks, or None where it is not
    installed.
    """
    python = os.environ.get("AGENT_NB_PEER_PYTHON", sys.executable)
    done = subprocess.run(
        [python, "-c", PEER], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = done.stderr.strip().rsplit("\n", 1)[-1]
        print(f"cogency: not measured ({reason}). To compare: pip install cogency httpx")
        return None
    return float(done.stdout)


class Bars:
    """Collects which bars hold."""

    def __init__(self) -> None:
        self.failed = False

    def check(self, what: str, figure: float, bar: float, *, most: bool = False) -> None:
        holds = figure <= bar if most else figure >= bar
        self.failed = self.failed or not holds
        print(
            f"  {'ok  ' if holds else 'FAIL'} {what}: {figure:.2f} (bar: {'at most' if most else 'at least'} {bar:g})"
        )


def throughput(bars: Bars, rounds: int) -> None:
    parse = public_parse()
    print(f"{'MB/s':34}{'wrapping':>10}{'feed':>10}{'parse':>10}")
    for size in SIZES:
        for dialect in DIALECTS:
            new = plugins.load_plugin("dialects", dialect).parser
            for kind, text in texts(dialect, MILLION).items():
                chunks = cut(text, size)
                wrapping = (
                    MILLION / best(rounds, lambda chunks=chunks: feed_all(Wrapping, chunks)) / 1e6
                )
                feed = (
                    len(text)
                    / best(rounds, lambda new=new, chunks=chunks: feed_all(new, chunks))
                    / 1e6
                )
                whole = (
                    len(text) / best(rounds, lambda d=dialect, c=chunks: parse(c, d)) / 1e6
                    if parse
                    else 0.0
                )
                print(
                    f"{size:>3} characters  {dialect:9}{kind:10}{wrapping:10.1f}{feed:10.1f}{whole:10.1f}"
                )
                if size == 16 and kind == "answer":
                    bars.check(f"{dialect} feed / wrapping loop", feed / wrapping, 1 / 3)
                    if parse:
                        bars.check(f"{dialect} parse, MB/s", whole, 10)


def linear(bars: Bars, rounds: int) -> None:
    print("time of 4 MB / time of 1 MB, 16 characters")
    for dialect in DIALECTS:
        new = plugins.load_plugin("dialects", dialect).parser
        small, large = texts(dialect, MILLION), texts(dialect, 4 * MILLION)
        for kind in small:
            chunks, more = cut(small[kind], 16), cut(large[kind], 16)
            one = best(rounds, lambda new=new, c=chunks: feed_all(new, c))
            four = best(rounds, lambda new=new, c=more: feed_all(new, c))
            bars.check(f"{dialect} {kind}", four / one, 4.6, most=True)


def against_cogency(bars: Bars, rounds: int) -> None:
    text = filled(PROSE, 100_000)
    print("one answer of 100 KB, 4 characters")
    peer = cogency_seconds(text)
    chunks = cut(text, 4)
    feed = best(rounds, lambda: feed_all(plugins.load_plugin("dialects", "xml").parser, chunks))
    parse = public_parse()
    whole = best(rounds, lambda: parse(chunks, "xml")) if parse else None
    print(
        f"  feed {feed * 1000:.1f} ms, parse {'absent' if whole is None else f'{whole * 1000:.1f} ms'}, cogency {'not measured' if peer is None else f'{peer:.2f} s'}"
    )
    if peer is not None:
        bars.check("feed is so many times as fast", peer / feed, 300)
        if whole is not None:
            bars.check("parse is so many times as fast", peer / whole, 80)


def main() -> int:
    rounds = 2 if "--quick" in sys.argv else 5
    bars = Bars()
    throughput(bars, rounds)
    linear(bars, rounds)
    against_cogency(bars, rounds)
    return int(bars.failed)


if __name__ == "__main__":
    sys.exit(main())
