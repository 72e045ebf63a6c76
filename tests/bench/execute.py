"""What `jupyter agent-nb test` costs beside `jupyter execute` of plain cells that do the same, and
several notebooks in one command.

    python tests/bench/execute.py [--rounds 3]

small   a notebook of four agent cells, each with one call of a tool.
large   one of two hundred.
several three small notebooks in one command, beside `jupyter execute` of the three plain ones: the
next kernel starts while one runs.

Bar: 1.5 times. Whole commands, in seconds, taking turns on the same machine; the best of several
rounds. The commands and kernels may write byte code, as an installed package has it; one round
warms up.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import nbformat

SMALL, LARGE = 4, 200
TOOL = 'def add(a: int, b: int) -> int:\n    "Add two numbers."\n    return a + b\n'
SETUP = f"%load_ext agent_nb\nfrom agent_nb import Scripted, tool\n\n@tool(effect='none')\n{TOOL}"
ASK = '<execute>[{{"name": "add", "args": {{"a": {n}, "b": 1}}}}]</execute>'


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "agent-nb-bench")
    with tempfile.TemporaryDirectory() as folder:
        small = [_pair(Path(folder) / f"small{n}", SMALL) for n in range(3)]
        large = _pair(Path(folder) / "large", LARGE)
        for name, pairs in (("small", small[:1]), ("large", [large]), ("several", small)):
            ours = [
                sys.executable,
                "-m",
                "agent_nb",
                "test",
                *(str(recorded) for recorded, _ in pairs),
            ]
            peer = [
                sys.executable,
                "-m",
                "jupyter",
                "execute",
                "--inplace",
                *(str(plain) for _, plain in pairs),
            ]
            one, other = _best(ours, peer, rounds)
            print(
                f"{name:8} test {one:5.2f} s, jupyter execute {other:5.2f} s, ratio {one / other:.2f} (bar 1.5)",
                flush=True,
            )


def _pair(folder: Path, cells: int) -> tuple[Path, Path]:
    """Write a recorded notebook and a plain one that does the same; return their paths."""
    folder.mkdir()
    recorded, plain = folder / "recorded.ipynb", folder / "plain.ipynb"
    models = "\n".join(
        f"m{n} = Scripted([{ASK.format(n=n)!r}, 'The sum is {n + 1}.'])" for n in range(cells)
    )
    _save(
        recorded,
        [SETUP + models, *(f"%%agent -m m{n} -t add --new\nAdd {n} and 1." for n in range(cells))],
    )
    _save(plain, [TOOL, *(f"print('The sum is', add({n}, 1))" for n in range(cells))])
    _run([sys.executable, "-m", "agent_nb", "run", "--live", "--inplace", str(recorded)])
    return recorded, plain


def _save(path: Path, sources: Sequence[str]) -> None:
    cells = [nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


def _best(ours: Sequence[str], peer: Sequence[str], rounds: int) -> tuple[float, float]:
    """Return the best times of two commands that take turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds + 1):
        for command, taken in zip((ours, peer), times, strict=True):
            start = time.perf_counter()
            _run(command)
            taken.append(time.perf_counter() - start)
    return min(times[0][1:]), min(times[1][1:])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]


if __name__ == "__main__":
    main()
