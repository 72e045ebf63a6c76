"""The figures of the house: how many names cross rooms, how they are called, what goes up.

Why: whether the rooms get doors and the functions names is measured, before and after each change:
`python tests/helpers/house_figures.py [CHECKOUT]` prints a table. `tests/test_names.py` and
`tests/test_architecture.py` keep the figures from growing.

Rules
- A function that leaves its file or its room has one word too few if its name is one word and not
  one of `VERBS`. Functions are those at the left margin of a module.
- `PARTICIPLES` stand for nouns that should be said. Parameters and names that are bound are counted
  as they are written, fields (of classes, and attributes of `self`) without a leading underscore.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers import import_graph, used_names
from helpers.import_graph import all_nodes, is_door, modules, room
from helpers.used_names import Name

VERBS = frozenset(
    {
        "run",
        "stream",
        "parse",
        "encode",
        "decode",
        "feed",
        "close",
        "replay",
        "redact",
        "sign",
        "verify",
        "render",
        "export",
        "connect",
    }
)
PARTICIPLES = frozenset(
    {"found", "made", "said", "given", "kept", "asked", "told", "words", "place", "thing"}
)
LONGEST_TEST_NAME = 70
_TEST = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)


def lacks_noun(function: str) -> bool:
    """Return whether the name of a function is one word that does not suffice alone."""
    word = function.strip("_")
    return bool(re.fullmatch(r"[a-z0-9]+", word)) and word not in VERBS


def select_one_word(functions: Iterable[Name]) -> list[Name]:
    """Return the functions whose name is a word too short, sorted."""
    return sorted(name for name in functions if lacks_noun(name[1]))


def find_parameters(path: Path) -> Iterator[str]:
    """Yield the names of all parameters in a file."""
    yield from (node.arg for node in all_nodes(path) if isinstance(node, ast.arg))


def find_bound_names(path: Path) -> Iterator[str]:
    """Yield each name that a file binds: parameters, and names that are assigned."""
    yield from find_parameters(path)
    for node in all_nodes(path):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def find_fields(path: Path) -> Iterator[str]:
    """Yield the fields of a file's classes, and the attributes of `self` that are assigned."""
    for node in all_nodes(path):
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                targets = line.targets if isinstance(line, ast.Assign) else []
                targets = [line.target] if isinstance(line, ast.AnnAssign) else targets
                yield from (t.id.strip("_") for t in targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.Attribute) and _is_assigned_to_self(node):
            yield node.attr.strip("_")


def _is_assigned_to_self(attribute: ast.Attribute) -> bool:
    owner = attribute.value
    stored = isinstance(attribute.ctx, ast.Store)
    return stored and isinstance(owner, ast.Name) and owner.id == "self"


def count_participles(names: Iterable[str]) -> int:
    """Return how many of the names stand for a noun."""
    return sum(name in PARTICIPLES for name in names)


def find_long_test_names(checkout: Path) -> list[str]:
    """Return the names of tests that are longer than a line of a report has room for."""
    return sorted(
        name
        for path in (checkout / "tests").rglob("test_*.py")
        for name in _TEST.findall(path.read_text(encoding="utf-8"))
        if len(name) > LONGEST_TEST_NAME
    )


def measure_house(checkout: Path) -> dict[str, str]:
    """Return the figures of a checkout: what is counted -> the number, in words."""
    known = modules(checkout)
    paths = list(known.values())
    links = import_graph.graph(checkout)
    upward = import_graph.wrong(links) | import_graph.against_order(links, known)
    largest = max(map(len, import_graph.circles(links)), default=0)
    users = used_names.find_used_names(checkout)
    crossing = used_names.select_crossing(users)
    leave_file = used_names.select_functions(users, checkout)
    leave_room = leave_file & crossing
    bound = [name for path in paths for name in find_bound_names(path)]
    lines = Counter[bool]()
    for path in paths:
        lines[is_door(path)] += len(path.read_text(encoding="utf-8").splitlines())
    return {
        "names that cross rooms": f"{len(crossing)}",
        "files visible from other rooms": f"{len(used_names.find_visible_files(checkout))}",
        "imports that go up": f"{len(upward)}",
        "largest circle of files": f"{largest}",
        "packages with circles of folders": f"{len(import_graph.node_circles(links, known))}",
        "one-word functions that leave their room": _share(leave_room),
        "one-word functions that leave their file": _share(leave_file),
        "participles among parameters": f"{sum(count_participles(find_parameters(p)) for p in paths)}",
        "participles among fields": f"{sum(count_participles(find_fields(p)) for p in paths)}",
        "participles among modules": f"{count_participles(m.rpartition('.')[2] for m in known)}",
        "participles of 1,000 bound names": f"{1000 * count_participles(bound) / len(bound):.0f}",
        "test names over 70 characters": f"{len(find_long_test_names(checkout))}",
        "lines of agent_nb/; of its doors": f"{lines[False]:,}; {lines[True]:,}",
        "names that cross rooms, by room": _count_rooms(crossing),
    }


def _share(functions: set[Name]) -> str:
    one_word = len(select_one_word(functions))
    return f"{one_word} of {len(functions)} ({100 * one_word / max(len(functions), 1):.0f} %)"


def _count_rooms(names: Iterable[Name]) -> str:
    counts = Counter(room(module) for module, _ in names)
    return ", ".join(f"{name} {number}" for name, number in counts.most_common())


if __name__ == "__main__":
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2]
    for title, figure in measure_house(root).items():
        print(f"{title:<42} {figure}")
