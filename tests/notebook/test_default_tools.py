"""The tools of a cell that chooses none: what is offered, and that no record depends on it."""

import json
import sys
import types

import nbformat
import pandas as pd
import pytest
from helpers.asked_models import Asked
from helpers.model_server import Server
from helpers.scripts import batch, calling
from ipykernel.zmqshell import ZMQInteractiveShell

from agent_nb import Agent, Scripted
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.cli.main import main
from agent_nb.errors import UsageError
from agent_nb.events import Error, RunStart
from agent_nb.host import launch
from agent_nb.notebook.cell import cell_tools
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.notebook.completion.fitting import find_completions
from agent_nb.record.record import METADATA_KEY
from agent_nb.record.signing import UserKey
from agent_nb.tools import Toolset

DEFAULT = ["python", "add_cell"]


def offered(model, number=-1):
    """Return the names of the tools in a request to a model."""
    return [tool.name for tool in model.requests[number].tools]


def start_of(run):
    return next(e for e in run.log if isinstance(e, RunStart))


def tools_input(run):
    return start_of(run).settings["inputs"]["tools"]


def configure(nb, *names):
    nb.shell.run_line_magic("config", f"AgentMagics.tools = {list(names)}")


def replayed(nb):
    return nb.last[1][METADATA_KEY].get("replayed") is True


@pytest.fixture
def offline(nb, monkeypatch):
    """Return a function after which only records are played."""

    def restart():
        nb.shell.user_ns["model"] = Asked([])
        monkeypatch.setattr(launch, "LAUNCH", launch.Launch({launch.Launch.STRICT: "1"}))

    return restart


@pytest.fixture
def before(nb, monkeypatch):
    """Run a cell as the version did that had no default tools."""

    def cell(body, line="-m model", **names):
        with monkeypatch.context() as earlier:
            earlier.setattr(cell_tools, "DEFAULT", ())
            return nb.cell(body, f"{line} --context none", **names)

    return cell


def test_a_cell_without_options_has_the_columns_of_a_frame_and_two_tools(nb):
    model = Asked(["text and label"])
    reviews = pd.DataFrame({"text": ["Never again."], "label": [1]})
    run = nb.cell("What columns does reviews have?", model=model, reviews=reviews)
    assert f"reviews: pandas.DataFrame 1×2 (text: {reviews.dtypes['text']}, label: int64)" in (
        model.prompt()
    )
    assert "Never again" not in model.prompt()
    assert offered(model) == DEFAULT
    assert list(start_of(run).tools) == DEFAULT
    assert (list(start_of(run).settings["asked_tools"]), tools_input(run)) == ([], "")


@pytest.mark.parametrize(
    ("line", "names"), [("-t list", ["list"]), ("-t none", []), ("-t list -t none", None)]
)
def test_a_choice_replaces_the_default(nb, line, names):
    model = Asked(["ok"])
    if names is None:
        with pytest.raises(AgentCellError, match="-t none stands alone"):
            nb.cell("Go.", f"-m model {line}", model=model)
        return
    run = nb.cell("Go.", f"-m model {line}", model=model)
    assert offered(model) == names
    assert tools_input(run)


def test_python_is_asked_about_and_denied_where_nobody_is(nb):
    model = Asked([calling("python", code="made = 1"), "I may not."])
    run = nb.cell("Go.", model=model)
    (result,) = run.log.of("result")
    assert result.status == "denied"
    assert "nobody to ask. Allow it with --approve auto, or by a rule" in result.content
    assert "-t none offers no tools" in result.content
    assert "made" not in nb.shell.user_ns


def test_add_cell_is_offered_without_a_question(nb):
    model = Asked([calling("add_cell", code="1 + 1"), "Offered."])
    run = nb.cell("Go.", model=model)
    assert [r.status for r in run.log.of("result")] == ["ok"]
    assert not run.log.of("approval")


def test_a_function_of_the_notebook_is_no_default_tool_by_its_name(nb):
    nb.shell.run_cell("def python(code: str):\n    'Mine.'\n    global ran\n    ran = code")
    model = Asked([calling("python", code="1"), "ok"])
    nb.cell("Go.", model=model)
    assert "ran" not in nb.shell.user_ns


@pytest.mark.parametrize("names", [(), ("variables",), ("none",), ("add_cell", "list", "shell")])
def test_a_record_by_default_is_played_offline_whatever_is_configured(nb, offline, names):
    model = Asked([calling("python", code="made = 1\nmade"), "One."])
    nb.cell("Go.", "-m model --approve auto", model=model)
    del nb.shell.user_ns["made"]
    offline()
    configure(nb, *names)
    run = nb.cell("Go.", "-m model --approve auto")
    assert replayed(nb)
    assert run.answer == "One."
    assert nb.shell.user_ns["made"] == 1  # the recorded tool `python` ran again
    assert list(start_of(run).tools) == DEFAULT


@pytest.mark.parametrize("default", [(), ("add_cell",), ("variables", "python")])
def test_a_record_by_default_is_played_whatever_the_default_is(nb, monkeypatch, default):
    model = Asked([calling("python", code="made = 1\nmade"), "One."])
    nb.cell("Go.", "-m model --approve auto", model=model)
    del nb.shell.user_ns["made"]
    monkeypatch.setattr(cell_tools, "DEFAULT", default)
    nb.cell("Go.", "-m model --approve auto")
    assert replayed(nb)
    assert nb.shell.user_ns["made"] == 1
    assert len(model.requests) == 2


def test_a_record_of_before_is_played_without_tools(nb, before, offline):
    model = Asked(["Paris."])
    run = before("The capital of France?", model=model, df=pd.DataFrame({"n": [1]}))
    assert (list(start_of(run).tools), tools_input(run)) == ([], "")
    nb.cell("The capital of France?", df=pd.DataFrame({"m": [1, 2]}))
    assert replayed(nb)
    nb.command("status")
    assert "stale" not in nb.last[0]["text/plain"]
    offline()
    run = nb.cell("The capital of France?")
    assert (replayed(nb), list(start_of(run).tools)) == (True, [])
    assert len(model.requests) == 1


def test_a_call_that_a_record_without_tools_names_does_not_run(nb, before):
    """A record of before cannot hold calls; one that does is not given tools."""
    run = before("Go.", model=Asked(["ok"]))
    tape = RecordedTurns(events=list(run.log))
    assert RecordedTurns.choose_tools(tape, Toolset.unchosen()).names == ()


def test_no_tools_is_a_choice_of_its_own(nb):
    model = Asked(["1", "2", "3"])
    nb.cell("Go.", model=model)
    nb.cell("Go.", "-m model -t none")
    assert not replayed(nb)
    nb.cell("Go.", "-m model -t none")
    assert replayed(nb)
    with pytest.raises(AgentCellError, match=r"stale \(tools changed\)"):
        nb.cell("Go.", "-m model -t list --rerun replay")
    assert nb.last[1][METADATA_KEY]["differences"] == ["tools: none → list"]


def test_a_configured_list_is_a_choice_where_the_model_can_be_asked(nb):
    model = Asked(["1", "2"])
    nb.cell("Go.", model=model)
    configure(nb, "list")
    nb.command("status")
    assert "tools changed" in nb.last[0]["text/plain"]
    run = nb.cell("Go.")
    assert (offered(model), tools_input(run) != "") == (["list"], True)
    nb.cell("Go.")
    assert replayed(nb)
    assert len(model.requests) == 2


def test_what_is_configured_goes_for_maps_and_the_default_does_not(nb):
    model = Asked(["a", "b"] * 2)
    nb.cell("{{ text }}", "-m model --map rows", model=model, rows=["x", "y"])
    assert [offered(model, n) for n in range(2)] == [[], []]
    assert "Variables in the kernel" not in model.prompt()
    configure(nb, "none")
    run = nb.cell("Go.", model=Asked(["ok"]))
    assert list(start_of(run).tools) == []


def test_agents_and_sub_agents_get_no_default(nb, run):
    inner, model = Asked(["Inside."]), Asked([calling("helper", prompt="Go."), "ok"])
    helper = Agent(inner, name="helper").as_tool(description="Helps.")
    nb.cell("Go.", "-m model -t helper", model=model, helper=helper, x=1)
    assert (offered(inner), offered(model)) == ([], ["helper"])
    assert "x: int" not in inner.prompt()
    nb.shell.user_ns.update(agent=Agent(inner := Asked(["ok"])))
    code = "await agent('Go.')"
    run(nb.shell.run_cell_async(code, transformed_cell=code)).raise_error()
    assert offered(inner) == []
    assert inner.prompt() == "Go."


def test_a_drift_goes_on_with_the_tools_of_its_record(nb):
    model = Asked([calling("python", code="n"), "One.", calling("python", code="n"), "Two."])
    nb.cell("Go.", "-m model --approve auto", model=model, n=1)
    nb.shell.user_ns["n"] = 2
    run = nb.cell("Go.", "-m model --approve auto")
    assert offered(model) == DEFAULT
    assert (run.status, tools_input(run)) == ("ok", "")


@pytest.mark.parametrize("tools", [["shell", "nope", "mcp", "{}"], ["../x"], ["python"] * 99])
def test_a_record_names_only_built_in_tools(nb, tools):
    run = nb.cell("Go.", model=Asked(["ok"]))
    start = start_of(run)
    forged = RunStart(settings=dict(start.settings), tools=tuple(tools))
    chosen = RecordedTurns(events=[forged]).choose_tools(Toolset.unchosen())
    assert set(chosen.names) <= {"shell", "python"}
    assert RecordedTurns(events=[forged]).choose_tools(Toolset.resolve(["list"])).names == ("list",)


@pytest.mark.parametrize("settings", [{}, {"inputs": None}, {"inputs": {"tools": "abc"}}])
def test_a_record_whose_tools_were_chosen_is_played_with_those_of_the_cell(settings):
    tape = RecordedTurns(events=[RunStart(settings=settings, tools=("python",))])
    assert tape.choose_tools(Toolset.unchosen()).names == ()


# models that take no tools


def test_a_model_that_writes_in_a_text_dialect_gets_no_default_tools(nb):
    model = Asked(["ok", "ok"])
    model.takes_tools = False  # as the embedded model and an endpoint with a `dialect`
    nb.cell("How long is df?", model=model, df=pd.DataFrame({"n": [1]}))
    assert offered(model) == []
    assert "df: pandas.DataFrame" in model.prompt()
    assert "tool `python`" not in model.system()
    nb.cell("Go.", "-m model -t python")
    assert offered(model) == ["python"]


@pytest.mark.parametrize(
    ("options", "takes"), [({"dialect": "xml"}, False), ({"dialect": ""}, True), ({}, True)]
)
def test_the_configuration_of_an_endpoint_says_whether_it_takes_tools(options, takes):
    from agent_nb.models.openai import provider

    model = provider("m", base_url="http://localhost:1/v1", **options)
    assert Agent(model).choice.takes_tools is takes


def test_a_server_that_refuses_tools_is_asked_without_those_of_the_default(nb):
    def answer(peer):
        if "tools" in peer.body:
            message = "registry.ollama.ai/library/gemma:2b does not support tools"
            peer.reply(400, json.dumps({"error": {"message": message}}))
            return
        done = {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}
        peer.stream(done, "data: [DONE]\n\n")

    from agent_nb.models.openai import provider

    server = Server(answer)
    try:
        model = provider("gemma", base_url=server.url)
        run = nb.cell("How long is df?", model=model, df=pd.DataFrame({"n": [1]}))
        assert [e.message[-29:] for e in run.log if isinstance(e, Error)] == [
            "ools. Going on without tools."
        ]
        last = json.dumps(server.asked[-1].body)
        assert "df: pandas.DataFrame" in last
        assert "python" not in last
        assert run.answer == "ok"
        count = len(server.asked)
        again = provider("gemma", base_url=server.url)
        run = nb.cell("Again.", model=again)
        assert (len(server.asked), run.log.of("error")) == (count + 1, [])
        run = nb.cell("Go.", "-m model -t list", model=again)
        assert "xml" in run.log.of("error")[0].message
    finally:
        server.close()


# what counts as used


@pytest.mark.parametrize(
    ("line", "prompt", "stale"),
    [
        ("-m model", "Shorten the text.", True),  # python could have read it
        ("-m model -t none", "Shorten the text.", False),
        ("-m model -t list", "Shorten the text.", False),
        ("-m model -t none", "Shorten the `text`.", True),
        ("-m model -t none --context vars", "Shorten the text.", False),
    ],
)
def test_a_plain_word_counts_only_beside_a_tool_that_reads_variables(nb, line, prompt, stale):
    nb.cell(prompt, line, model=Asked(["1", "2"]), text="a word")
    nb.cell(prompt, line, text=["another type"])
    assert replayed(nb) is not stale


@pytest.mark.parametrize(("prompt", "stale"), [("The text?", False), ("The `text`?", True)])
def test_a_plain_word_does_not_miss_a_variable_that_is_gone(nb, prompt, stale):
    """Recorded while a cell below had left a variable of that name in the kernel."""
    nb.cell(prompt, model=Asked(["1", "2"]), text="a word")
    del nb.shell.user_ns["text"]
    nb.cell(prompt)
    assert replayed(nb) is not stale


def test_a_variable_that_is_new_or_not_named_makes_no_cell_stale(nb):
    nb.cell("Count the rows of df.", model=Asked(["1"]), df=pd.DataFrame({"n": [1]}), other=1)
    nb.cell("Count the rows of df.", new=1, rows=2, other=["changed"])
    assert replayed(nb)


@pytest.mark.parametrize(("effect", "plays"), [("side_effects=True", True), ("", False)])
def test_what_a_call_with_an_effect_changed_makes_no_record_stale(nb, effect, plays):
    nb.shell.run_cell(
        f"from agent_nb import tool\nsent = []\n@tool({effect})\n"
        "def send(text: str):\n    'Send.'\n    sent.append(text)\n    return str(len(sent))"
    )
    model = Asked([calling("send", text="a"), "1", calling("send", text="a"), "2"])
    line = "-m model -t send --approve auto"
    nb.cell("Go.", line, model=model)
    nb.shell.user_ns["sent"] = {"changed": 1}
    nb.cell("Go.", f"{line} --rerun auto")
    assert replayed(nb) is plays


def test_a_batch_of_both_default_tools_is_replayed(nb, offline):
    turns = [batch(("python", {"code": "a = 2"}), ("add_cell", {"code": "a"})), "Done."]
    nb.cell("Go.", "-m model --approve auto", model=Asked(turns))
    offline()
    run = nb.cell("Go.", "-m model --approve auto")
    assert (run.answer, nb.shell.user_ns["a"], len(run.log.of("result"))) == ("Done.", 2, 2)


def test_an_unknown_tool_is_a_mistake_as_before(nb):
    with pytest.raises(AgentCellError, match="no tool or function named 'pyton'"):
        nb.cell("Go.", "-m model -t pyton", model=Scripted(["ok"]))
    with pytest.raises(UsageError):
        Agent(Scripted(["ok"]), ["none"])


def test_code_of_a_strangers_record_does_not_run_without_trust(nb, offline):
    nb.cell("Go.", "-m model --approve auto", model=Asked([calling("python", code="a = 1"), "ok"]))
    del nb.shell.user_ns["a"]
    listed = nb.shell.magics_manager.registry["AgentMagics"].session.library._records["c1"]
    listed[0] = UserKey(b"a key of another user" * 2).sign(listed[0])
    offline()
    with pytest.raises(AgentCellError, match=RecordedTurns.FOREIGN):
        nb.cell("Go.", "-m model --approve auto")
    assert "a" not in nb.shell.user_ns


@pytest.mark.kernel
def test_a_new_record_replays_in_another_environment(tmp_path, monkeypatch, capsys):
    setup = f"""%load_ext agent_nb
from agent_nb import Scripted
model = Scripted([{calling("python", code="made = 1")!r}, 'Made.'])"""
    sources = (setup, "%%agent -m model --approve auto\nMake it.", "assert made == 1")
    monkeypatch.chdir(tmp_path)
    cells = [nbformat.v4.new_code_cell(text, id=f"c{n}") for n, text in enumerate(sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), "made.ipynb")
    assert main(["run", "--live", "--inplace", "made.ipynb"]) == 0
    profile = tmp_path / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    (profile / "ipython_config.py").write_text("get_config().AgentMagics.tools = ['list']")
    monkeypatch.setenv("IPYTHONDIR", str(profile.parent))
    before = (tmp_path / "made.ipynb").read_bytes()
    assert main(["test", "made.ipynb"]) == 0, capsys.readouterr()
    assert (tmp_path / "made.ipynb").read_bytes() == before


def test_completion_and_help_know_the_word_for_no_tools(nb):
    magics = nb.shell.magics_manager.registry["AgentMagics"]
    line = "%%agent -t non"
    assert "none" in find_completions(magics.session, line, 0, len(line)).names
    told = " ".join(magics.agent_cell.parser.format_help().split())
    assert "none: no tools (default: python, which asks before each call, and add_cell)" in told


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_stream_that_code_of_a_model_replaces_is_back_after_its_call(nb, stream):
    before = getattr(sys, stream)
    code = f"import io, sys\nsys.{stream} = io.StringIO()\n1 / 0"
    model = Scripted([calling("python", code=code), "Done."])
    assert nb.cell("Print.", "-m model --approve auto", model=model).answer == "Done."
    assert getattr(sys, stream) is before


@pytest.mark.parametrize("code", ["exit()", "quit()"])
def test_exit_in_code_of_a_model_ends_the_code_and_not_the_kernel(nb, monkeypatch, code):
    ends = []
    monkeypatch.setattr(nb.shell, "ask_exit", lambda: ends.append("kernel"), raising=False)
    model = Scripted([calling("python", code=f"left = 1\n{code}\nleft = 2"), "Done."])
    run = nb.cell("Leave.", "-m model --approve auto", model=model)
    (result,) = run.log.of("result")
    assert (result.status, run.answer, nb.shell.user_ns["left"]) == ("error", "Done.", 1)
    assert ends == []
    nb.shell.ask_exit()
    assert ends == ["kernel"]


def test_code_of_a_model_writes_no_cell_into_the_notebook(nb, monkeypatch):
    write_cell = types.MethodType(ZMQInteractiveShell.set_next_input, nb.shell)
    monkeypatch.setattr(nb.shell, "set_next_input", write_cell)
    code = "get_ipython().set_next_input('x = 1')"
    model = Scripted([calling("python", code=code), "Done."])
    assert nb.cell("Write.", "-m model --approve auto", model=model).answer == "Done."
    assert nb.shell.payload_manager.read_payload() == []
    nb.shell.set_next_input("y = 2")
    assert [payload["text"] for payload in nb.shell.payload_manager.read_payload()] == ["y = 2"]
