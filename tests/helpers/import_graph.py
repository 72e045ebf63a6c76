"""The import graph of the package: rooms, floors, arrows between rooms, circles.

Why: the laws of the architecture are about this graph, and a person who wants to see it runs
`python tests/helpers/import_graph.py [CHECKOUT]`.

Rules: every import counts, also those inside functions and under `TYPE_CHECKING`; a room is the
first name below the package; the face (`agent_nb`) and `__main__` stand above all floors.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PACKAGE = "agent_nb"
FLOORS = (
    ("errors",),
    ("wire", "events", "host"),
    ("models", "record", "codecs"),
    ("dialects", "tools", "view"),
    ("agent",),
    ("rows",),
    ("external",),
    ("server",),
    ("notebook",),
    ("runner",),
    ("cli",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
ABOVE = ("", "__main__")  # the face and the command: they may import everything


def modules(checkout: Path) -> dict[str, Path]:
    """Return the modules of the package in a checkout: dotted name -> file."""
    found = {}
    for path in sorted((checkout / PACKAGE).rglob("*.py")):
        parts = path.relative_to(checkout).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules among `known` that a module imports, wherever in its text."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *(node.module.split(".") if node.module else [])])
            parts = [f"{module}.{a.name}" for a in node.names if f"{module}.{a.name}" in known]
            yield from parts
            if len(parts) < len(node.names) and module in known:
                yield module


def graph(checkout: Path) -> dict[str, set[str]]:
    """Return module -> the modules that it imports, the face left out."""
    known = modules(checkout)
    return {n: set(imports(n, p, known)) - {n, PACKAGE} for n, p in known.items() if n != PACKAGE}


def room(module: str) -> str:
    """Return the room of a module: `agent_nb.view.cards.base` is in `view`."""
    return module.split(".")[1] if "." in module else ""


def arrows(links: Mapping[str, Iterable[str]]) -> Counter[tuple[str, str]]:
    """Return the imports between rooms: (from, to) -> how many."""
    pairs = ((room(n), room(m)) for n, others in links.items() for m in others)
    return Counter((a, b) for a, b in pairs if a != b and a not in ABOVE)


def wrong(links: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the imports that do not go down, as `module -> module`. Raises KeyError for a room
    without a floor.
    """
    return {
        f"{n.removeprefix('agent_nb.')} -> {m.removeprefix('agent_nb.')}"
        for n, others in links.items()
        for m in others
        if room(n) not in ABOVE and room(n) != room(m) and FLOOR[room(n)] <= FLOOR[room(m)]
    }


def circles(links: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the circles: strongly connected modules, the largest first (Tarjan)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    found = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        open_.append(name)
        for other in links.get(name, ()):
            if other not in number:
                visit(other)
            if other in open_:
                low[name] = min(low[name], low[other])
        if low[name] == number[name]:
            cut = open_.index(name)
            if len(open_) - cut > 1:
                found.append(sorted(open_[cut:]))
            del open_[cut:]

    sys.setrecursionlimit(10_000)
    for name in sorted(links):
        if name not in number:
            visit(name)
    return sorted(found, key=len, reverse=True)


def entries(checkout: Path) -> list[str]:
    """Return what stands at the root of the package and can be imported."""
    roots = (checkout / PACKAGE).iterdir()
    found = {p.stem for p in roots if p.suffix == ".py" or (p / "__init__.py").exists()}
    return sorted(found - {"__init__", "__main__"})


def report(checkout: Path) -> str:
    """Return the graph in words: floors, arrows, what is wrong, circles."""
    links = graph(checkout)
    between = arrows(links)
    lines = [f"{i:2}  {'  '.join(rooms)}" for i, rooms in enumerate(FLOORS)]
    lines += ["", *(f"{a:>9} -> {b:<9} {n}" for (a, b), n in sorted(between.items())), ""]
    lines.append(
        f"{len(FLOORS)} floors, {len(entries(checkout))} entries at the root, {len(between)} "
        f"arrows between rooms ({sum(between.values())} imports), {len(wrong(links))} wrong, "
        f"{len(circles(links))} circles {[len(c) for c in circles(links)]}"
    )
    return "\n".join(lines + sorted(wrong(links)))


if __name__ == "__main__":
    print(report(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2]))
