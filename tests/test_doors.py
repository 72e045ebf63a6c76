"""The doors of the rooms: what a room offers is all that other rooms use of it.

`ROOMS` have a door; a plug-in package and `view/cards` have none and are named by their own path.
"""

import ast
import importlib
import inspect
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from helpers import import_graph, used_names

import agent_nb
from agent_nb.host.door import open_door

ROOT = Path(agent_nb.__file__).parent
MODULES = import_graph.modules(ROOT.parent)
ROOMS = tuple(sorted({import_graph.room(m) for m in MODULES} - {"", "__main__", "cli", "errors"}))
BEGUN, GO_ON = threading.Event(), threading.Event()  # of a file that loads until it may go on
#: imported by their own path: plug-ins, the file of doors, what pytest loads, and the parts of a
#: model's answer, which have the names of the events that they become
BESIDE_THE_DOOR = (
    "agent_nb.host.door",
    "agent_nb.models.parts",
    "agent_nb.runner.pytest_plugin",
    "agent_nb.view.cards",
)


def homes(room):
    """Return what a room offers at run time: name -> the module that defines it."""
    tree = import_graph.parse_file(ROOT / room / "__init__.py")
    tables = [n.value for n in tree.body if isinstance(n, ast.Assign) and _is_names(n)]
    files = ast.literal_eval(tables[0])
    lazy = {n: f"agent_nb.{room}.{file}" for file, names in files.items() for n in names.split()}
    return {**lazy, **imported_at_once(room)}


def imported_at_once(room):
    """Return what the door imports with the package: name -> the module that defines it."""
    tree = import_graph.parse_file(ROOT / room / "__init__.py")
    own = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.level == 1]
    return {a.name: f"agent_nb.{room}.{n.module}" for n in own for a in n.names}


def _is_names(node):
    return isinstance(node.targets[0], ast.Name) and node.targets[0].id == "_NAMES"


def declared(room):
    """Return what a room offers to type checkers: name -> the module that defines it."""
    path = ROOT / room / "__init__.py"
    imported = import_graph.imported_names(f"agent_nb.{room}", path)
    offered = [(m, n, here) for m, n, here in imported if m.startswith(f"agent_nb.{room}")]
    assert all(n == here for _, n, here in offered)
    return {n: m for m, n, _ in offered}


def imports_past_doors(graph_of=MODULES):
    """Return the imports of files behind a door by another room: `user: module`."""
    return sorted(
        f"{user}: {module}"
        for user, path in graph_of.items()
        for module, name, _ in import_graph.imported_names(user, path)
        if import_graph.room(module) in ROOMS
        and import_graph.room(user) not in ("", import_graph.room(module))
        and (module != f"agent_nb.{import_graph.room(module)}" or f"{module}.{name}" in graph_of)
        and not f"{module}.{name}".startswith(BESIDE_THE_DOOR)
    )


def test_other_rooms_import_from_the_door_alone():
    assert imports_past_doors() == []


def test_an_import_past_a_door_is_seen(tmp_path):
    (tmp_path / "a.py").write_text(
        "from agent_nb.view.nodes import Row\nfrom agent_nb.view import nodes, Row"
    )
    known = {**MODULES, "agent_nb.cli.a": tmp_path / "a.py"}
    assert imports_past_doors(known) == [
        "agent_nb.cli.a: agent_nb.view",
        "agent_nb.cli.a: agent_nb.view.nodes",
    ]


def test_no_room_imports_its_own_door():
    users = [
        user
        for user, path in MODULES.items()
        if import_graph.room(user) in ROOMS
        for module, name, _ in import_graph.imported_names(user, path)
        if module == f"agent_nb.{import_graph.room(user)}" and f"{module}.{name}" not in MODULES
    ]
    assert users == []


@pytest.mark.parametrize("room", ROOMS)
def test_type_checkers_and_python_see_the_same_names(room):
    assert declared(room) == homes(room)


@pytest.mark.parametrize("room", ROOMS)
def test_a_door_gives_the_object_of_the_file_that_defines_it(room):
    door = importlib.import_module(f"agent_nb.{room}")
    for home in import_graph.modules(ROOT.parent):
        if import_graph.room(home) == room and "redis" not in home and "pytest" not in home:
            importlib.import_module(home)  # a file of an offered name would hide it from here on
    for name, home in homes(room).items():
        thing = getattr(door, name)
        assert thing is getattr(importlib.import_module(home), name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__module__ == home
    assert set(dir(door)) == homes(room).keys() - imported_at_once(room).keys()


@pytest.mark.parametrize("room", ROOMS)
def test_no_offered_name_is_that_of_a_file_or_folder_of_the_room(room):
    assert not homes(room).keys() & import_graph.room_nodes(MODULES)[room]


def test_each_offered_name_is_used_in_another_room():
    offered = {
        (home, name)
        for room in ROOMS
        for name, home in homes(room).items()
        if name not in imported_at_once(room)  # public: `agent_nb.events` is for users too
    }
    crossing = used_names.select_crossing(used_names.find_used_names(ROOT.parent))
    assert offered - crossing == set()


def test_a_name_that_a_door_does_not_offer_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"agent_nb\.view.*'Slots'"):
        importlib.import_module("agent_nb.view").Slots  # noqa: B018  (the access is the test)


def test_a_door_waits_for_a_file_that_another_thread_loads(tmp_path, monkeypatch):
    (tmp_path / "half_loaded").mkdir()
    (tmp_path / "half_loaded" / "__init__.py").write_text("")
    (tmp_path / "half_loaded" / "slow.py").write_text(
        "import test_doors as t\nname = 'half'\nt.BEGUN.set()\nt.GO_ON.wait(60)\nname = 'whole'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "test_doors", sys.modules[__name__])
    get, _ = open_door("half_loaded", {"slow": "name"})
    with ThreadPoolExecutor(2) as pool:
        loading = pool.submit(importlib.import_module, "half_loaded.slow")
        assert BEGUN.wait(60)
        asked = pool.submit(get, "name")
        wait([asked], 0.2)
        GO_ON.set()
        assert asked.result(60) == "whole"
        loading.result(60)


def test_importing_rooms_loads_none_of_their_files():
    rooms = ", ".join(f"agent_nb.{room}" for room in ROOMS)
    loaded = loaded_by(rooms)
    assert {f"agent_nb.{room}" for room in ROOMS} <= loaded
    at_once = {home for room in ROOMS for home in imported_at_once(room).values()}
    files = {m for m in loaded - loaded_by("agent_nb") if m.count(".") > 1}
    assert files - at_once <= {"agent_nb.host.door"}


def loaded_by(modules):
    """Return the modules of the product that a new process has after `import modules`."""
    code = f"import sys, {modules}; print(*(m for m in sys.modules if m.startswith('agent_nb.')))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())
