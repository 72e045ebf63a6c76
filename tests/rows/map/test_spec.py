"""What travels of an agent, and what refuses to."""

import os
from dataclasses import dataclass

import msgspec
import pytest

from agent_nb import Agent, Scripted, tool
from agent_nb.errors import UsageError
from agent_nb.rows.map.cluster.spec import AgentSpec, agent_of, spec_of
from agent_nb.rows.map.cluster.tool_reference import find_tool, make_references
from agent_nb.tools.toolset import Toolset

SECRET = "correct-horse-battery"


@dataclass
class Label:
    """A type that this module has."""

    word: str
    sure: bool = False


def double(number: int) -> int:
    """Return twice the number."""
    return 2 * number


@tool(effect="outside")
def send(text: str) -> str:
    """Send a text."""
    return text


made_by_hand = Toolset.resolve([double])["double"]


class Desk:
    """Something with a method."""

    def look(self, where: str) -> str:
        """Look somewhere."""
        return where


def agent(model="openai/m", tools=(), **options):
    options.setdefault("secrets", {})
    return Agent(model, tools, **options)


def spec(model="openai/m", tools=(), **options):
    one = agent(model, tools, **options)
    return spec_of(one, one.redaction())


def test_the_values_of_an_agent_come_back_from_their_json():
    said = spec(
        "openai/m,openai/n",
        [double, "read"],
        system="Be brief.",
        dialect="xml",
        approve="auto",
        limits={"turns": 3},
        settings={"seed": 1},
        output=Label,
        name="judge",
        thought_tags=["musing"],
    )
    again = msgspec.json.decode(msgspec.json.encode(said), type=AgentSpec)
    assert again == said
    made = agent_of(again)
    assert [model.name for model in made.choice.models] == ["openai/m", "openai/n"]
    assert made.tools.names == ("double", "read")
    assert (made.system, made.approve, made.limits.turns) == ("Be brief.", "auto", 3)
    assert (made.settings, made.name, made.dialect_name) == ({"seed": 1}, "judge", "xml")
    assert made.thought_tags == ("musing",)
    assert made.output.kind is Label


def test_a_worker_finds_the_same_inputs():
    one = agent(tools=[double], system="Be brief.", settings={"seed": 1}, output=list[Label])
    assert agent_of(spec_of(one, one.redaction())).inputs("Hi.") == one.inputs("Hi.")


def test_a_type_of_the_notebook_travels_as_its_schema():
    @dataclass
    class Hidden:
        word: str

    one = agent(output=Hidden)
    said = spec_of(one, one.redaction())
    assert said.output.where == ""
    made = agent_of(said)
    assert made.output.kind is not Hidden
    assert made.output.described(one.redaction()) == one.output.described(one.redaction())


REFUSED = {
    "an object of this process": lambda: spec(Scripted(["Hello."])),
    "script .* is a file of this machine": lambda: spec("scripted/hello", late=True),
    "policy file rules.yaml does not travel": lambda: spec(approve="rules.yaml"),
    "'look' is not a function at the top level": lambda: spec(tools=[Desk().look]),
    "'tool' is not a function|'lambda'": lambda: spec(tools=[lambda text: text]),
    "'python' lives in the kernel": lambda: spec(tools=["python"]),
    "MCP servers do not travel": lambda: spec(tools=["mcp:somewhere"]),
    "is an agent": lambda: spec(tools=[agent(name="helper").as_tool(description="Helps.")]),
    "settings are not JSON": lambda: spec(settings={"stop": object()}),
    "There is a key in extra_body": lambda: spec(
        settings={"extra_body": {"user": SECRET}}, secrets={"TOKEN": SECRET}
    ),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_what_cannot_travel_is_refused_and_the_error_says_why(make, request):
    words = next(words for words, each in REFUSED.items() if each is make)
    with pytest.raises(UsageError, match=words):
        make()


def test_a_function_of_the_notebook_is_refused_with_what_to_do():
    names = {"__name__": "__main__"}
    exec("def here(text: str) -> str:\n    'Say it.'\n    return text", names)
    with pytest.raises(UsageError, match=r"function of the notebook.* Put it into a module"):
        spec(tools=[names["here"]])


def test_a_function_inside_another_is_refused():
    def inner(text: str) -> str:
        """Say it."""
        return text

    with pytest.raises(UsageError, match="not a function at the top level of a module"):
        spec(tools=[inner])


def test_a_model_that_the_notebook_names_is_refused():
    with pytest.raises(UsageError, match="object of this process"):
        spec("mine", namespace={"mine": Scripted(["Hello."])})


def test_tools_travel_by_name():
    tools = Toolset.resolve([double, send, made_by_hand, "read"])
    sent = {each.name: each.where for each in make_references(tools)}
    assert sent == {
        "double": f"{__name__}:double",
        "send": f"{__name__}:send",
        "read": "tool:read",
    }
    assert [find_tool(each).name for each in make_references(tools)] == list(tools.names)


def test_a_renamed_tool_keeps_its_name():
    (reference,) = make_references(Toolset(Toolset.resolve([send])).rename({"send": "post"}))
    assert (reference.name, reference.where) == ("post", f"{__name__}:send")
    made = find_tool(reference)
    assert (made.name, made.effect, made.invoke(text="a")) == ("post", "outside", "a")


def test_a_module_that_a_worker_lacks_is_named_with_what_to_do():
    (reference,) = make_references(Toolset.resolve([double]))
    lost = msgspec.structs.replace(reference, where="no_such_tools:double")
    with pytest.raises(UsageError, match=r"no_such_tools.* on every worker, or send it"):
        find_tool(lost)


def test_another_version_of_a_tool_is_an_error():
    (reference,) = make_references(Toolset.resolve([double]))
    with pytest.raises(UsageError, match="another one here"):
        find_tool(msgspec.structs.replace(reference, where=f"{__name__}:send"))


def test_a_worker_that_would_ask_another_server_asks_nothing(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://lab:8000/v1")
    said = spec()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere:8000/v1")
    with pytest.raises(UsageError, match=r"asked at http://lab.* sends it to http://elsewhere"):
        agent_of(said)


def test_a_worker_without_the_folder_of_the_tools_says_so(tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    said = spec(tools=["read"], folder=folder)
    folder.rmdir()
    with pytest.raises(UsageError, match="Share that folder"):
        agent_of(said)


def test_without_tools_no_folder_travels(tmp_path):
    assert str(tmp_path) not in str(spec(folder=tmp_path))


def test_no_secret_travels_in_a_spec(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "k" + SECRET)
    one = Agent("openai/m", system=f"Say k{SECRET}.", settings={"stop": ["k" + SECRET]})
    said = msgspec.json.encode(spec_of(one, one.redaction())).decode()
    assert SECRET not in said
    assert "[redacted SOME_API_KEY]" in said
    assert SECRET in os.environ["SOME_API_KEY"]
