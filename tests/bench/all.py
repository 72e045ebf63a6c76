"""The benchmark page: what every benchmark prints, each figure beside its peer of the same run.

    python tests/bench/all.py [-o PAGE.md] [--only NAME ...] [--whole]

Each script runs by itself, one after the other, with the short settings of `SHORT`, or with its own
defaults under `--whole` (hours). The page says on what it was made, and beside which peers a figure
is missing, because they are not installed. A script that fails or misses a bar is named and does
not end the others; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(__file__).parent
SHORT: dict[str, tuple[str, ...]] = {
    "context": ("--rounds", "5"),
    "convert": ("--events", "50000", "--memory", "200000"),
    "execute": ("--rounds", "2"),
    "latency": ("--rounds", "3"),
    "map": ("--concurrency", "1", "100", "--rounds", "2"),
    "memory": ("--tokens", "200000"),
    "notebook": ("--rounds", "1"),
    "page": (),
    "parse": ("--quick",),
    "pipeline": (),
    "record": ("frame", "replay"),
    "redis_hub": ("--events", "5000"),
    "row_store": ("1000",),
    "serve": ("--events", "5000"),
    "tape": ("--rounds", "10"),
    "view": ("--tokens", "5000", "--seconds", "6", "--rounds", "1"),
}
#: the packages of the peers that a plain environment lacks, by script
PEERS: dict[str, tuple[str, ...]] = {
    "map": ("openai", "chatlas"),
    "parse": ("cogency",),
    "pipeline": ("openai",),
    "record": ("inspect_ai",),
    "tape": ("openai",),
    "view": ("anywidget",),
}


def main() -> int:
    """Print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--out", type=Path, help="write the page here instead of printing it")
    parser.add_argument("--only", nargs="+", choices=sorted(SHORT), default=sorted(SHORT))
    parser.add_argument("--whole", action="store_true", help="with the defaults of each script")
    chosen = parser.parse_args()
    failed: list[str] = []
    page = "\n".join(make_page(chosen.only, whole=chosen.whole, failed=failed))
    if chosen.out:
        chosen.out.write_text(page, encoding="utf-8")
    else:
        print(page)
    return 1 if failed else 0


def make_page(names: Sequence[str], *, whole: bool, failed: list[str]) -> Iterator[str]:
    """Yield the lines of the page; add the names of scripts that fail to `failed`."""
    day = datetime.now(UTC).date()
    yield "# Benchmarks\n"
    yield (
        f"Made by `python tests/bench/all.py` on {day}: Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors. Compare figures of "
        "one block only: they come from one run, and a machine's speed changes within an hour.\n"
    )
    for name in names:
        path = FOLDER / f"{name}.py"
        command = [path.relative_to(FOLDER.parents[1]).as_posix(), *(() if whole else SHORT[name])]
        print(f"{' '.join(command)} …", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, *command],
            cwd=FOLDER.parents[1],
            capture_output=True,
            text=True,
            check=False,
        )
        yield f"## {name}\n\n{_summary(path)}\n\n```text\n$ python {' '.join(command)}"
        yield done.stdout.rstrip() + "\n```\n"
        if lacking := [p for p in PEERS.get(name, ()) if importlib.util.find_spec(p) is None]:
            yield f"Not compared here, as not installed: {', '.join(lacking)}.\n"
        if done.returncode:
            failed.append(name)
            last = (done.stderr.strip().splitlines() or ["a bar is missed, see above"])[-1]
            yield f"It ended with code {done.returncode}: `{last}`\n"


def _summary(path: Path) -> str:
    """Return the first paragraph of a script's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n\n")[0]


if __name__ == "__main__":
    sys.exit(main())
