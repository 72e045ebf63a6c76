"""The import graph of the package: rooms, floors, orders inside rooms, arrows, circles.

Why: the laws of the architecture are about this graph, and a person who wants to see it runs
`python tests/helpers/import_graph.py [CHECKOUT]`.

Rules
- Every import counts, also inside functions and under `TYPE_CHECKING`. A name that a package's
  `__init__` passes on (its door) counts as an import of the module that defines it.
- A module named in a string counts as an import: a string outside docstrings that is the dotted
  name of a module, or of an attribute of it; a value in a table of a lazy `__init__` (the face),
  relative to the package.
- A room is the first name below the package. A node of a room is one of its folders, or one of
  its files; the docstring of the room's `__init__` lists them: `Order of imports, …: lowest <
  higher, beside < highest`.
- The face (`agent_nb`) stands between the command line and the room below; `__main__` at the top.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

PACKAGE = "agent_nb"
FLOORS = (
    ("errors",),
    ("host",),
    ("wire", "events"),
    ("models", "record", "codecs"),
    ("dialects", "tools", "view"),
    ("agent",),
    ("rows",),
    ("external", "tape"),
    ("server",),
    ("notebook",),
    ("runner",),
    ("cli",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
FLOOR_OF_FACE = len(FLOORS) - 1.5
FLOOR_OF_MAIN = len(FLOORS)

Links = Mapping[str, Collection[str]]
_DOTTED = re.compile(rf"{PACKAGE}(\.\w+)+(:\w+)?")


def modules(checkout: Path) -> dict[str, Path]:
    """Return the modules of the package in a checkout: dotted name -> file."""
    paths = {}
    for path in sorted((checkout / PACKAGE).rglob("*.py")):
        parts = path.relative_to(checkout).with_suffix("").parts
        paths[".".join(parts[:-1] if is_door(path) else parts)] = path
    return paths


def is_door(path: Path) -> bool:
    """Return whether a file is the `__init__` of a package."""
    return path.name == "__init__.py"


@cache
def parse_file(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def all_nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's syntax tree: each is looked at more than once.

    Without garbage collection, which would take as long as the parsing: all nodes stay.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return tuple(ast.walk(parse_file(path)))
    finally:
        if collects:
            gc.enable()


@cache
def imported_names(name: str, path: Path) -> tuple[tuple[str, str, str], ...]:
    """Return the from-imports of a module: (module that is imported from, its name, name here)."""
    return tuple(_imported_names(name, path))


def _imported_names(name: str, path: Path) -> Iterator[tuple[str, str, str]]:
    package = name.split(".") if is_door(path) else name.split(".")[:-1]
    for node in all_nodes(path):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *(node.module.split(".") if node.module else [])])
            yield from ((module, a.name, a.asname or a.name) for a in node.names)


def offered_names(known: Mapping[str, Path]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return what doors pass on: (package, name) -> (module that defines it, its name there)."""
    offers = {
        (package, here): (module, name)
        for package, path in known.items()
        if is_door(path) and package != PACKAGE
        for module, name, here in imported_names(package, path)
        if module in known and f"{module}.{name}" not in known
    }
    return {offer: _defined(offer, offers) for offer in offers}


def _defined(
    name: tuple[str, str], offers: Mapping[tuple[str, str], tuple[str, str]]
) -> tuple[str, str]:
    while name in offers:
        name = offers[name]
    return name


def strings(path: Path) -> Iterator[str]:
    """Yield the string constants of a file, docstrings left out."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(node.body[0].value)
        for node in all_nodes(path)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in all_nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def named_modules(name: str, path: Path, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the modules that strings of a file name: (string, module, or "" if there is none)."""
    for text in strings(path):
        if _DOTTED.fullmatch(text):
            yield text, _longest_module(text.replace(":", "."), known)
    if is_door(path) and is_lazy(path):
        tables = [n for n in parse_file(path).body if isinstance(n, ast.Assign | ast.AnnAssign)]
        for table in (t.value for t in tables if isinstance(t.value, ast.Dict)):
            # the face maps each name to its module, the door of a room each module to its names
            for value in table.values if name == PACKAGE else table.keys:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    full = f"{name}.{value.value.removeprefix('.')}"
                    yield value.value, full if full in known else ""


def is_lazy(door: Path) -> bool:
    """Return whether an `__init__` finds names when they are first used (module `__getattr__`)."""
    return any("__getattr__" in ast.unparse(n).split("\n")[0] for n in parse_file(door).body)


def _longest_module(dotted: str, known: Collection[str]) -> str:
    """Return the module that a dotted name, of itself or of something in it, begins with."""
    while dotted not in known and dotted != PACKAGE:
        dotted = dotted.rpartition(".")[0]
    return "" if dotted == PACKAGE else dotted


def imports(
    name: str,
    path: Path,
    known: Mapping[str, Path],
    offers: Mapping[tuple[str, str], tuple[str, str]],
) -> Iterator[str]:
    """Yield the modules among `known` that a module imports or names, wherever in its text."""
    for node in all_nodes(path):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name in known)
    for module, imported, _ in imported_names(name, path):
        if f"{module}.{imported}" in known:
            yield f"{module}.{imported}"
        elif module in known:
            yield module
            yield offers.get((module, imported), (module, imported))[0]
    yield from (module for _, module in named_modules(name, path, known) if module)


def graph(checkout: Path) -> dict[str, set[str]]:
    """Return module -> the modules that it imports."""
    known = modules(checkout)
    offers = offered_names(known)
    return {n: set(imports(n, p, known, offers)) - {n} for n, p in known.items()}


def room(module: str) -> str:
    """Return the room of a module: `agent_nb.view.cards.base` is in `view`, the face in none."""
    return module.split(".")[1] if "." in module else ""


def floor(module: str) -> float:
    """Return the floor of a module. Raises KeyError for a room without a floor."""
    if room(module) == "__main__":
        return FLOOR_OF_MAIN
    return FLOOR[room(module)] if room(module) else FLOOR_OF_FACE


def arrows(links: Links) -> Counter[tuple[str, str]]:
    """Return the imports between rooms: (from, to) -> how many."""
    pairs = ((room(n), room(m)) for n, others in links.items() for m in others)
    return Counter((a, b) for a, b in pairs if a != b and a not in ("", "__main__"))


def wrong(links: Links) -> set[str]:
    """Return the imports between rooms that do not go down, as `module -> module`."""
    return {
        describe_import(n, m)
        for n, others in links.items()
        for m in others
        if room(n) != room(m) and floor(n) <= floor(m)
    }


def describe_import(importer: str, imported: str) -> str:
    """Return an import as a line of a report: `agent.run -> events.log`."""
    return " -> ".join(m.removeprefix(f"{PACKAGE}.") for m in (importer, imported))


def circles(links: Links) -> list[list[str]]:
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

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        for name in sorted(links):
            if name not in number:
                visit(name)
    finally:
        sys.setrecursionlimit(limit)
    return sorted(found, key=len, reverse=True)


def node(module: str, package: str = "") -> str:
    """Return the file or folder of a package (without one: of its room) that a module is in.

    "" stands for the package itself and for what is outside.
    """
    package = package or f"{PACKAGE}.{room(module)}"
    inside = module.startswith(f"{package}.") and room(module)
    return module[len(package) + 1 :].split(".", maxsplit=1)[0] if inside else ""


def room_nodes(known: Iterable[str]) -> dict[str, set[str]]:
    """Return room -> its nodes, for the rooms that are folders."""
    nodes: dict[str, set[str]] = {}
    for module in known:
        if node(module):
            nodes.setdefault(room(module), set()).add(node(module))
    return nodes


def node_links(links: Links, package: str) -> dict[str, set[str]]:
    """Return the imports between the files and folders of a package: node -> nodes."""
    between: dict[str, set[str]] = {}
    for importer, others in links.items():
        for above, below in ((node(importer, package), node(m, package)) for m in others):
            if "" != above != below != "":
                between.setdefault(above, set()).add(below)
    return between


def node_circles(links: Links, known: Mapping[str, Path]) -> dict[str, list[list[str]]]:
    """Return package -> the circles between its files and folders, where there are any."""
    packages = [name for name, path in known.items() if is_door(path) and name != PACKAGE]
    rings = {package: circles(node_links(links, package)) for package in packages}
    return {package: ring for package, ring in rings.items() if ring}


def order(of_room: str, known: Mapping[str, Path]) -> dict[str, int]:
    """Return node -> its level, read from the paragraph `Order …` of the room's `__init__`.

    Raises ValueError for a node that stands there twice.
    """
    doc = ast.get_docstring(parse_file(known[f"{PACKAGE}.{of_room}"])) or ""
    text = re.search(r"^Order[^:]*: (.+?)\.?(?:\n\n|\Z)", doc, re.MULTILINE | re.DOTALL)
    levels: dict[str, int] = {}
    for number, names in enumerate(text[1].split("<") if text else ()):
        for name in names.split(","):
            if name.strip() in levels:
                raise ValueError(f"{of_room}: {name.strip()} stands twice in the order")
            levels[name.strip()] = number
    return levels


def against_order(links: Links, known: Mapping[str, Path]) -> set[str]:
    """Return the imports inside rooms that do not go down in the order of their room."""
    orders = {r: order(r, known) for r in room_nodes(known)}
    return {
        describe_import(n, m)
        for n, others in links.items()
        for m in others
        if room(n) == room(m)
        and "" != node(n) != node(m) != ""
        and orders[room(n)].get(node(n), -1) <= orders[room(n)].get(node(m), -1)
    }


def possible_order(links: Links, of_room: str, nodes: Iterable[str]) -> str:
    """Return an order that the imports of a room allow: each node as low as it can stand.

    Nodes of a circle get the same level, so the result shows them beside each other.
    """
    between = node_links(links, f"{PACKAGE}.{of_room}")
    ring = {name: circle for circle in circles(between) for name in circle}
    level: dict[str, int] = {}

    def find_level(name: str) -> int:
        members = ring.get(name, [name])
        if name not in level:
            below = {m for member in members for m in between.get(member, ())} - set(members)
            level.update(dict.fromkeys(members, 1 + max(map(find_level, below), default=-1)))
        return level[name]

    rows: dict[int, list[str]] = {}
    for name in sorted(nodes):
        rows.setdefault(find_level(name), []).append(name)
    return " < ".join(", ".join(rows[number]) for number in sorted(rows))


def entries(checkout: Path) -> list[str]:
    """Return what stands at the root of the package and can be imported."""
    roots = (checkout / PACKAGE).iterdir()
    stems = {p.stem for p in roots if p.suffix == ".py" or (p / "__init__.py").exists()}
    return sorted(stems - {"__init__", "__main__"})


def report(checkout: Path) -> str:
    """Return the graph in words: floors, arrows, orders, imports that go up, circles."""
    links = graph(checkout)
    known = modules(checkout)
    between = arrows(links)
    upward = wrong(links) | against_order(links, known)
    lines = [f"{i:2}  {'  '.join(rooms)}" for i, rooms in enumerate(FLOORS)]
    lines += ["", *(f"{a:>9} -> {b:<9} {n}" for (a, b), n in sorted(between.items())), ""]
    for name, nodes in sorted(room_nodes(known).items()):
        lines += [f"{name} allows the order: {possible_order(links, name, nodes)}", ""]
    lines.append(
        f"{len(FLOORS)} floors, {len(entries(checkout))} entries at the root, {len(between)} "
        f"arrows between rooms ({sum(between.values())} imports), {len(upward)} go up, "
        f"{len(circles(links))} circles {[len(c) for c in circles(links)]}"
    )
    return "\n".join(lines + sorted(upward))


if __name__ == "__main__":
    print(report(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2]))
