"""The names that other packages may import: they stay where they are.

The face, the event types, the errors, and the `base` module of each room of plug-ins.
"""

import importlib
import importlib.util
import inspect
import json
import re
import typing

import pytest
from helpers.paths import CHECKOUT

import agent_nb
from agent_nb import Agent, Stream
from agent_nb.view.cards.base import CallCard

NAMES = {
    "agent_nb": """
        Agent CALLS EVENTS EventLog Pictured RUNS Run RunFailed Scripted Stream TURNS ToolContext
        adapt_tool_event attach compare decode encode load_ipython_extension mcp_server parse runs serve tool
        unload_ipython_extension watch
    """,
    "agent_nb.events": """
        Approval Call Counts Delta ENVELOPE End Error Event Execute Extension Interrupt Metric Node
        PRINTED Progress RESEND Respond Result RunStart Started State TYPES Think Unknown User
    """,
    "agent_nb.errors": """
        AgentError AgentStopped Cancelled MissingExtra ModelError NotAllowed NotReplayed PluginError
        RunFailed ToolError UsageError WireError
    """,
    "agent_nb.codecs.base": """
        Codec Decoder Encoder Item Losses Options Reader Writer dumps is_derived loads note_of
    """,
    "agent_nb.models.base": """
        Decoder Model Part Request
    """,
    "agent_nb.dialects.base": """
        CallBlock Dialect Message Parser Part ResultBlock ToolSpec
    """,
    "agent_nb.tools.base": """
        Decision Host LIVES Outcome Pictured QUIET Question Report Tool ToolContext ToolSpec Update current_call
        enter_call meaning progress_fields update
    """,
    "agent_nb.view.cards.base": """
        AgentError Box CallCard Card Context LONGEST Node Prose Row T Text custom draw prose shown
        unfit
    """,
    "agent_nb.tape": """
        url
    """,
    "agent_nb.notebook.presave": """
        before_save on_disk remaining
    """,
}


def test_the_face_lists_its_public_names_and_nothing_else():
    face = importlib.import_module("agent_nb")
    assert set(dir(face)) == {*face.__all__, "__version__"}
    assert set(NAMES["agent_nb"].split()) == set(face.__all__)


@pytest.mark.parametrize("module", NAMES)
def test_a_public_module_has_its_names(module):
    found = importlib.import_module(module)
    assert not [name for name in NAMES[module].split() if not hasattr(found, name)]


# what plug-ins read of the state of a call, and call of its texts
CALL_FIELDS = """
    approval args asked attachments batch beside call_id children content data display duration early
    ended error first fraction incomplete known latest marks message name output raw server started
    status
"""


def test_the_state_of_a_call_keeps_the_names_of_its_fields():
    state = CallCard("key")
    assert [name for name in CALL_FIELDS.split() if not hasattr(state, name)] == []
    assert {"begins", "head", "memo", "tail"} <= set(dir(state.raw))


# public calls whose keywords are not those of a cell's options
KEYWORDS = {
    Agent.replay: "tape check wish",
    Agent.map: "data prompt attachments concurrency rpm limit store client",
    Stream.play: "tape wish",
}


@pytest.mark.parametrize("function", KEYWORDS, ids=lambda function: function.__qualname__)
def test_public_calls_keep_their_keywords(function):
    assert set(KEYWORDS[function].split()) <= set(inspect.signature(function).parameters)


def imported_names(path):
    """Yield (module, name) of what a notebook, a page or a test imports from the package."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
    for module, names in re.findall(r"from (agent_nb[\w.]*) import (\([^)]+|[^(`\n\\;]+)", text):
        for name in re.sub("#.*", "", names).strip("(\n ").rstrip(",\n ").split(","):
            yield module, name.split(" as ")[0].strip()


def test_what_pages_examples_and_cells_of_browser_tests_import_is_there():
    book = (CHECKOUT / "examples/book").rglob("*.md")
    pages = [CHECKOUT / "README.md", CHECKOUT / "agent_nb/README.md", *book]
    notebooks = [*(CHECKOUT / "examples").glob("*.ipynb"), *(CHECKOUT / "tests").rglob("*.ipynb")]
    # the cells of these tests are texts, which no tool checks
    browser = (CHECKOUT / "tests/browser").glob("*.py")
    plugins = (CHECKOUT / "examples/plugins").glob("*.py")
    names = {
        name for path in (*pages, *notebooks, *browser, *plugins) for name in imported_names(path)
    }
    assert len(names) > 10
    for module, name in sorted(names):
        there = hasattr(importlib.import_module(module), name)
        assert there or importlib.util.find_spec(f"{module}.{name}"), f"{module} has no {name}"


def test_the_signature_of_an_agent_shows_what_users_pass():
    class Mine(Agent):
        def __init__(self, who, host=None):
            super().__init__(host=host)

    shown = set(inspect.signature(Agent).parameters)
    assert shown == {
        "model", "tools", "system", "dialect", "approve", "limits", "settings", "name", "folder",
        "secrets", "memory", "thought_tags", "output",
    }  # fmt: skip
    assert list(inspect.signature(Mine).parameters) == ["who", "host"]
    Agent("local/smollm2", late=True, namespace={}, model_source="a test")


@pytest.mark.parametrize("function", [Agent.map, Agent.eval, Agent.eval_sync, agent_nb.serve])
def test_type_hints_of_public_functions_can_be_read(function):
    assert "return" in typing.get_type_hints(function)
