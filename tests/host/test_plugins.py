"""One broken plug-in of another package breaks neither the others nor what lists them, and its
package is named.
"""

import json
import os
import shutil
import sys
import time

import pytest

from agent_nb.cli.main import main
from agent_nb.codecs.detect import detect
from agent_nb.errors import PluginError, UsageError
from agent_nb.host import entry_points, plugins
from agent_nb.models import choose
from agent_nb.tools.toolset import Toolset, available
from agent_nb.view.cards import base
from agent_nb.view.cards.base import Context, custom
from agent_nb.view.nodes import Bar, Box, Code, Node, Page, Pre, Row, Stack, T, Table, unfit
from agent_nb.view.state.cards import CallCard

SOUND = """
from agent_nb import Scripted, tool
from agent_nb.codecs.cogency import codec
from agent_nb.dialects.xml import dialect
from agent_nb.view.nodes import Pre

def provider(name, **options):
    return Scripted(["sound"])

@tool
def sound_tool() -> str:
    "Sound."
    return "sound"

tools = (sound_tool,)

def card(state, context):
    return Pre("sound card")
"""
TRAP = """
class Trap:
    def __getattr__(self, name):
        raise RuntimeError("a trap")
    name = effect = spec = forms = parser = stream = property(lambda self: 1 / 0)
    def as_tool(self):
        return self
"""
BROKEN = {  # what is wrong: the module, and words of the error
    "an import that fails": (
        "import no_such_package_of_ours\n",
        "ModuleNotFoundError: No module named 'no_such_package_of_ours'",
    ),
    "an exit": ("import sys\nsys.exit('go away')\n", "SystemExit: go away"),
    "no such attribute": ("x = 1\n", "AttributeError"),
    "a wrong type": ("provider = dialect = codec = tools = card = 3\n", "Error"),
    "members that raise": (
        f"{TRAP}\nprovider = dialect = codec = tools = card = Trap()\n",
        "Error",
    ),
    "a function that raises": (
        "def provider(*a, **k): raise OSError('no disk')\ndialect = codec = tools = card = None\n",
        "Error",
    ),
    "a function that gives something else": (
        "def provider(*a, **k): return 'x'\ncard = provider\ndialect = codec = tools = []\n",
        "Error",
    ),
}
ROOMS = {
    "models": "provider",
    "dialects": "dialect",
    "codecs": "codec",
    "tools": "tools",
    "cards": "card",
}
NO_FAULT = {("tools", "a function that gives something else")}  # a plug-in without a tool is one


@pytest.fixture(params=BROKEN)
def broken(request, tmp_path, monkeypatch):
    """Two packages with a plug-in for every room: one sound, one broken in one way."""
    for package, module, code in (
        ("sound-pkg", "sound_mod", SOUND),
        ("broken-pkg", "broken_mod", BROKEN[request.param][0]),
    ):
        folder = tmp_path / f"{package.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        prefix = package.partition("-")[0]
        names = {
            room: f"tool-{prefix}_tool" if room == "cards" else f"a-{prefix}" for room in ROOMS
        }
        (folder / "entry_points.txt").write_text(
            "".join(
                f"[agent_nb.{room}]\n{names[room]} = {module}:{attribute}\n"
                for room, attribute in ROOMS.items()
            )
        )
        (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    base._names_of_parts.cache_clear()
    yield request.param
    base._names_of_parts.cache_clear()
    for module in ("sound_mod", "broken_mod"):
        sys.modules.pop(module, None)


def fails(use, room, broken):
    """Check that a use fails in words, and that these name the package and what to do."""
    if (room, broken) in NO_FAULT:
        return
    with pytest.raises(PluginError) as caught:
        use()
    for words in (
        "of the package broken-pkg cannot be used",
        BROKEN[broken][1],
        "pip uninstall broken-pkg",
    ):
        assert words in str(caught.value)


def test_the_names_are_listed_and_the_sound_ones_work(broken):
    assert {"a-broken", "a-sound"} <= set(plugins.list_plugins("tools")) & set(
        choose.list_prefixes()
    )
    assert available()["a-sound"] == ("sound_tool",)
    assert available()["a-broken"] == ()
    assert Toolset.resolve("sound_tool,a-sound").names == ("sound_tool",)
    assert choose.make_model("a-sound/x").name == "scripted"
    assert plugins.load_plugin("dialects", "a-sound").name == "xml"
    assert detect('{"type": "user", "content": "x"}\n').name == "cogency"


def test_using_the_broken_one_names_its_package(broken):
    fails(lambda: choose.make_model("a-broken/x"), "models", broken)
    fails(lambda: plugins.load_plugin("dialects", "a-broken"), "dialects", broken)
    fails(lambda: plugins.load_plugin("codecs", "a-broken"), "codecs", broken)
    fails(lambda: Toolset.resolve("a-broken"), "tools", broken)


def test_a_name_that_the_broken_one_may_have_had_says_so(broken):
    with pytest.raises(UsageError, match="no tool or function named 'its_tool'") as caught:
        Toolset.resolve("its_tool")
    assert ("broken-pkg" in str(caught.value)) is (("tools", broken) not in NO_FAULT)


def test_its_card_is_replaced_by_words_and_the_sound_one_drawn(broken):
    state = CallCard("c")
    state.name = "sound_tool"
    assert custom("tool", state, Context()).text == "sound card"
    state.name = "broken_tool"
    box = custom("tool", state, Context())
    assert isinstance(box, Box)
    assert "of the package broken-pkg cannot be used" in box.children[0].left[0].text


@pytest.mark.few(2)
def test_the_commands_list_the_others_and_the_fault(broken, loaded, capsys):
    loaded.run_line_magic("agent", "tools")
    listed = capsys.readouterr().out
    assert "sound_tool" in listed
    assert ("of the package broken-pkg cannot be used" in listed) is (
        ("tools", broken) not in NO_FAULT
    )
    loaded.run_line_magic("agent", "models")
    assert "a-broken" in capsys.readouterr().out
    main(["doctor", "--json"])
    said = [
        f["said"]
        for f in json.loads(capsys.readouterr().out)["findings"]
        if f["topic"] == "plug-in"
    ]
    assert said
    assert all("broken-pkg" in words for words in said)


def test_damaged_metadata_of_one_package_hides_only_its_own(broken, tmp_path):
    (tmp_path / "broken_pkg-1.0.dist-info" / "entry_points.txt").write_text(
        "[agent_nb.tools]\nthis is no entry\n"
    )
    assert available()["a-sound"] == ("sound_tool",)


NODES = [
    (Stack((Row((T("x"),)), Pre("y"), Bar(1, "z"), Bar(None, "z"))), ""),
    (Table(("a",), (("1",), ("2",))), ""),
    ("text", "str in place of Node"),
    (Stack(("text",)), "str in place of Node"),
    (Stack([Pre("x")]), "list in place of tuple"),
    (Pre(3), "int in place of str"),
    (Row((Pre("x"),)), "Pre in place of T"),
    (Code("x", None), "NoneType in place of str"),
    (T("x", tone="loud"), "str in place of"),
    (Bar("half", "x"), "str in place of float | None"),
    (Stack((Table(("a",), (("1", 2),)),)), "int in place of str"),
    (Page, "StructMeta in place of Node"),
]


@pytest.mark.parametrize(("node", "fault"), NODES)
def test_what_a_card_returns_is_looked_at_all_the_way_down(node, fault):
    assert unfit(node).startswith(fault)
    assert bool(unfit(node)) is bool(fault)


def test_a_node_of_somebody_elses_making_is_not_one():
    class Mine(Node, frozen=True):
        pass

    assert unfit(Mine()) == "Mine in place of Node"


def _install(folder, name):
    """Install a package with a tool plug-in, its folder first and its files after that."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    yield
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agent_nb.tools]\n{name} = {name}_mod:tools\n")


def test_plugin_installed_while_the_kernel_runs_is_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "late" not in plugins.list_plugins("tools")
    for _ in _install(tmp_path, "late"):
        assert "late" not in plugins.list_plugins("tools")  # half written
    assert "late" in plugins.list_plugins("tools")
    shutil.rmtree(tmp_path / "late-1.0.dist-info")
    assert "late" not in plugins.list_plugins("tools")


def test_installed_packages_are_read_once_until_they_change(tmp_path, monkeypatch):
    read = []
    real = entry_points._read_entry_points
    monkeypatch.setattr(entry_points, "_read_entry_points", lambda p: (read.append(p), real(p))[1])
    monkeypatch.syspath_prepend(str(tmp_path))
    list(_install(tmp_path, "early"))
    an_hour_ago = time.time() - 3600
    for path in (tmp_path / "early-1.0.dist-info", tmp_path):
        os.utime(path, (an_hour_ago, an_hour_ago))
    for _ in range(3):
        assert "early" in plugins.list_plugins("tools")
        (tmp_path / "another file").touch()  # as a program in that folder may
    assert read.count(str(tmp_path)) == 1
