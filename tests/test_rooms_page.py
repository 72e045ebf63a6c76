"""The page for newcomers, `agent_nb/README.md`: its drawing, walks and examples hold."""

import importlib.util
import re
import sys

import pytest
from helpers import import_graph
from helpers.paths import CHECKOUT

from agent_nb import Agent, Scripted
from agent_nb import events as e
from agent_nb.agent.run import Run
from agent_nb.codecs.convert import decode, encode
from agent_nb.host import plugins
from agent_nb.view.bundle import make_bundle
from agent_nb.view.cards import base

PAGE = (CHECKOUT / "agent_nb" / "README.md").read_text(encoding="utf-8")


#: place of each example of a plug-in in the package
EXAMPLES = {
    place: CHECKOUT / "examples" / "plugins" / place.rpartition("/")[2]
    for place in re.findall(
        r"`([a-z_/]+\.py)`", PAGE.split("`examples/plugins/`:")[1].split("\n\n")[0]
    )
}


@pytest.fixture
def added(tmp_path, monkeypatch):
    """Return a function that puts an example into its room, as if its file stood there."""

    def add(path: str) -> None:
        room, stem = path.removesuffix(".py").replace("/", ".").rpartition(".")[::2]
        file = tmp_path / f"{stem}.py"
        file.write_bytes(EXAMPLES[path].read_bytes())
        name = f"agent_nb.{room}.{stem}"
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        monkeypatch.setitem(plugins.list_builtin(room), stem.replace("_", "-"), name)

    yield add
    base._names_of_parts.cache_clear()


def answer(agent: Agent) -> Run:
    return agent.run_sync("What time is it?")


def test_the_drawing_shows_the_floors_of_the_laws():
    drawing = PAGE.split("```")[1].strip().splitlines()
    drawn = [tuple(re.findall(r"[a-z]+", line[:36])) for line in drawing]
    assert drawn[::-1] == [tuple(floor) for floor in import_graph.FLOORS]


def test_every_file_of_the_walks_is_there():
    named = re.findall(r"`([a-z_/]+\.py|[a-z_/]+/)`", PAGE.split("## Add one file")[0])
    missing = [
        n
        for n in named
        if not any((root / n).exists() for root in (CHECKOUT, CHECKOUT / "agent_nb"))
    ]
    assert len(named) > 40
    assert not missing


def test_each_term_of_the_glossary_has_a_class_in_the_file_it_names():
    terms = re.findall(r"^\| ([a-z ]+) \| .+ \| `(\w+)` in `([\w/]+\.py)` \|$", PAGE, re.M)
    assert 30 < len(terms) <= 60
    assert len({term for term, _, _ in terms}) == len(terms)
    for _, name, file in terms:
        text = (CHECKOUT / "agent_nb" / file).read_text()
        assert re.search(rf"^(class {name}\b|{name} = )", text, re.M), (name, file)


def test_the_page_fits_on_two_screens_before_its_glossary():
    page = PAGE.split("## Glossary")[0].splitlines()
    assert len(page) <= 80
    assert max(map(len, page)) <= 140


def test_every_example_of_a_plug_in_is_named_and_run():
    files = {file.name for file in (CHECKOUT / "examples" / "plugins").glob("*.py")}
    assert files == {file.name for file in EXAMPLES.values()}
    assert len(files) == 5


def test_a_provider_is_one_file(added):
    added("models/echo.py")
    assert answer(Agent("echo/any")).answer == "You said: What time is it?"


def test_a_dialect_is_one_file(added):
    added("dialects/plain.py")
    assert (
        answer(Agent(Scripted(["<execute>[]</execute>"]), dialect="plain")).answer
        == "<execute>[]</execute>"
    )


def test_a_codec_is_one_file(added):
    added("codecs/chat_lines.py")
    written = encode([e.Respond(content="Noon.")], "chat-lines")
    assert written == ['{"say":"Noon."}']
    assert [x.content for x in decode(written[0], "chat-lines") if isinstance(x, e.Respond)] == [
        "Noon."
    ]


def test_a_tool_and_its_card_are_one_file_each(added):
    added("tools/clock.py")
    added("view/cards/tool_clock.py")
    base._names_of_parts.cache_clear()
    run = answer(
        Agent(Scripted(['<execute>[{"name": "clock", "args": {}}]</execute>', "Noon."]), ["clock"])
    )
    (result,) = [event for event in run.log if isinstance(event, e.Result)]
    assert re.fullmatch(r"\d\d:\d\d", result.content)
    assert f"🕒 {result.content}" in make_bundle(list(run.log))["text/html"]
