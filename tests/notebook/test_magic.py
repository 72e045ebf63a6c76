"""The magics in a real IPython shell: loading, help, configuration, one run, and what comes before
it.
"""

import asyncio
import subprocess
import sys

import pytest
from helpers.pictures import attached, png
from helpers.scripts import calling
from traitlets.config import Config

from agent_nb import Run, Scripted, ToolContext
from agent_nb.notebook import magic, transform
from agent_nb.notebook.cell.failure import AgentCellError


def types(run):
    return [e.type for e in run.events if e.type not in ("node", "metric")]


def test_a_cell_runs_the_agent_and_leaves_the_run(agent):
    done = agent(model=Scripted(["<think>hm</think>Hello."]))
    assert isinstance(done, Run)
    assert (done.status, done.answer, done.prompt) == ("ok", "Hello.", "hello")
    assert types(done) == ["run_start", "user", "think", "respond", "end"]


def test_the_run_is_also_left_in_the_variable_of_the_option(agent, loaded):
    agent("-m model -o answer", model=Scripted(["Hello."]))
    assert loaded.user_ns["answer"] is loaded.user_ns["_agent"]


def test_values_of_the_notebook_go_into_the_prompt(agent):
    done = agent(body=r"{{ x * 2 }} of {these} \{{ x }}", model=Scripted(["ok"]), x=21)
    assert done.prompt == "42 of {these} {{ x }}"


def test_functions_of_the_notebook_are_tools(agent):
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    script = Scripted([calling("double", n=21), "done"])
    done = agent("-m model -t double", model=script, double=double)
    assert [e.content for e in done.events.of("result")] == [42]


def test_python_code_of_the_model_runs_in_the_notebook(agent, loaded):
    script = Scripted(
        [
            calling("python", code="made = 6 * 7\nprint(made)"),
            "done",
        ]
    )
    done = agent("-m model -t python --approve auto", model=script)
    assert loaded.user_ns["made"] == 42
    assert done.events.of("result")[0].content == "42\n"


@pytest.mark.parametrize(
    ("line", "body", "named"),
    [
        ("--frobnicate", "hello", "no option --frobnicate"),
        ("-m model", "  \n ", "prompt is empty"),
        ("-m model", "{{ 1 / 0 }}", "ZeroDivisionError"),
        ("-m nobody/x", "hello", "no provider 'nobody'"),
        ("-m scripted/missing.yaml", "hello", "missing.yaml"),
        ("-m model -t no_such_tool", "hello", "no_such_tool"),
        ("-m model -d morse", "hello", "morse"),
        ("-m model --approve missing.yaml", "hello", "missing.yaml"),
        ("-m model --max-turns -1", "hello", "turns"),
        ("-m model -o 1x", "hello", "variable"),
    ],
)
def test_what_is_wrong_before_the_run_is_one_clear_line_and_a_valid_log(
    agent, loaded, line, body, named
):
    script = Scripted(["never"])
    with pytest.raises(AgentCellError, match=named) as failure:
        agent(line, body, model=script)
    done = loaded.user_ns["_agent"]
    assert types(done) == ["run_start", "user", "error", "end"]
    assert done.status == "error"
    assert "\n" not in failure.value._render_traceback_()[0].strip() or named == "missing.yaml"


def test_no_model_at_all_lists_the_ways(agent, loaded, monkeypatch):
    from agent_nb.models import choose

    monkeypatch.setattr(choose, "is_local_installed", lambda: False)
    monkeypatch.setattr(choose, "_choose_by_key", lambda: None)
    monkeypatch.delenv("AGENT_NB_MODEL", raising=False)
    with pytest.raises(AgentCellError, match="-m provider/name"):
        agent("")


def test_a_run_that_ends_in_an_error_fails_the_cell_and_is_kept(agent, loaded):
    with pytest.raises(AgentCellError, match="teapot"):
        agent(model=Scripted([{"error": {"status": 418, "message": "I am a teapot"}}]))
    assert loaded.user_ns["_agent"].status == "error"


@pytest.mark.parametrize(
    ("view", "words"),
    [("html", "agent: the run failed; the reason stands above"), ("text", "agent: the run failed")],
)
def test_the_reason_stands_once_in_the_card_and_in_the_value_for_ci(agent, view, words):
    with pytest.raises(AgentCellError, match="teapot") as failure:
        agent(
            f"-m model --view {view}",
            model=Scripted([{"error": {"status": 418, "message": "I am a teapot"}}]),
        )
    (below,) = failure.value._render_traceback_()
    assert below.startswith(words)
    assert "teapot" not in below


@pytest.mark.parametrize(("view", "said"), [("html", False), ("text", True)])
def test_a_run_that_could_not_start_gives_its_reason_where_no_card_is(agent, view, said):
    with pytest.raises(AgentCellError, match="no provider 'nobody'") as failure:
        agent(f"-m nobody/x --view {view}")
    (below,) = failure.value._render_traceback_()
    assert ("nobody" in below) is said
    assert said or below == "agent: the run could not start; the reason stands above"


def test_a_hit_limit_keeps_the_answer_and_the_cell_is_fine(agent):
    script = Scripted([calling("list")] * 3)
    assert agent("-m model -t list --max-turns 1", model=script).status == "limit"


def test_the_model_of_the_configuration_is_used_and_named(agent, loaded, run):
    loaded.run_line_magic("config", "AgentMagics.model = 'model'")
    done = agent("", model=Scripted(["Hello."]))
    assert done.events[0].settings["source"] == "from %config"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5", "write provider/name, for example openai/gpt-5."),
        ("opnai/gpt-5", "no provider 'opnai'. Did you mean openai"),
    ],
)
def test_a_default_model_that_cannot_be_is_refused_with_a_suggestion(loaded, caplog, name, words):
    loaded.run_line_magic("config", "AgentMagics.model = 'anthropic/claude-sonnet-4-5'")
    loaded.run_line_magic("config", f"AgentMagics.model = {name!r}")
    assert words in caplog.text
    assert loaded.magics_manager.registry["AgentMagics"].model == "anthropic/claude-sonnet-4-5"
    loaded.run_line_magic("config", "AgentMagics.model = ''")
    assert loaded.magics_manager.registry["AgentMagics"].model == ""


def test_a_configuration_with_a_wrong_model_lets_the_extension_load(shell):
    shell.config["AgentMagics"] = Config({"model": "gpt-5"})
    magic.load_magics(shell)
    try:
        with pytest.raises(AgentCellError, match="write provider/name, for example openai/gpt-5"):
            shell.run_cell_magic("agent", "", "hi")
    finally:
        magic.unload_magics(shell)
        shell.config.pop("AgentMagics", None)


def heard(done):
    """Return how many messages the model was sent."""
    return done.events.of("node")[0].data["messages"]


def test_cells_share_a_conversation_that_can_be_left_or_begun_anew(agent):
    model = Scripted(["answer"])
    first, second, third = (heard(agent(model=model)) for _ in range(3))
    assert first < second < third
    assert heard(agent("-m model --new", model=model)) == first
    assert heard(agent("-m model", model=model)) == second
    assert heard(agent("-m model -c other", model=model)) == first


def test_a_failed_run_without_an_answer_is_no_turn_of_the_conversation(agent):
    first = heard(agent(model=Scripted(["answer"])))
    with pytest.raises(AgentCellError):
        agent(model=Scripted([{"error": {"status": 418}}]))
    assert heard(agent(model=Scripted(["answer"]))) > first
    with pytest.raises(AgentCellError):
        agent("-m model -c other", model=Scripted([{"error": {"status": 418}}]))
    assert heard(agent("-m model -c other", model=Scripted(["answer"]))) == first


def test_a_secret_of_the_environment_does_not_reach_the_log(agent, loaded, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "abcdefghijklmnopqrstuvwxyz")
    done = agent(
        body="{{ __import__('os').environ['SOME_API_KEY'] }}",
        model=Scripted([{"chunks": ["abcdefghijklm", "nopqrstuvwxyz"]}]),
    )
    assert done.prompt == done.answer == "[redacted SOME_API_KEY]"
    assert "abcdefgh" not in done.events.to_ndjson()
    with pytest.raises(AgentCellError) as failure:
        agent(body="{{ {}['abcdefghijklmnopqrstuvwxyz'] }}")
    assert "abcdefgh" not in str(failure.value)
    assert "abcdefgh" not in loaded.user_ns["_agent"].events.to_ndjson()


def test_tools_can_report_progress(agent):
    async def slow(context: ToolContext) -> str:
        """Work."""
        for i in range(3):
            context.progress((i + 1) / 3)
            await asyncio.sleep(0)
        return "done"

    script = Scripted([calling("slow"), "ok"])
    done = agent("-m model -t slow", model=script, slow=slow)
    assert done.events.of("progress")[-1].fraction == 1.0


def test_help_lists_the_options(loaded):
    assert "--max-turns" in loaded.find_cell_magic("agent").__doc__


def test_called_from_code_without_an_event_loop_it_runs_to_its_end(loaded):
    loaded.user_ns["model"] = Scripted(["Hello."])
    loaded.run_cell_magic("agent", "-m model", "hello")
    assert loaded.user_ns["_agent"].answer == "Hello."


def test_loading_twice_and_unloading_leaves_the_shell_as_it_was(shell):
    before = (
        list(shell.input_transformers_cleanup),
        len(shell.configurables),
        set(shell.magics_manager.magics["cell"]),
    )
    magic.load_magics(shell)
    magic.load_magics(shell)
    magic.unload_magics(shell)
    magic.unload_magics(shell)
    assert before == (
        list(shell.input_transformers_cleanup),
        len(shell.configurables),
        set(shell.magics_manager.magics["cell"]),
    )
    assert "agent" not in shell.magics_manager.magics["line"]
    assert transform.rewrite not in shell.input_transformers_cleanup


HEAVY = (
    "pandas",
    "httpx",
    "nbclient",
    "nbformat",
    "markdown_it",
    "nh3",
    "pydantic",
    "pygments",
    "ipywidgets",
    "anyio",
    "yaml",
)

LOADING = f"""
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
before = set(sys.modules)
shell.run_line_magic("load_ext", "agent_nb")
new = set(sys.modules) - before
print(sorted(name for name in {HEAVY!r} if name in new))
"""


@pytest.mark.slow
def test_loading_the_extension_imports_nothing_heavy():
    done = subprocess.run(
        [sys.executable, "-c", LOADING], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_an_image_file_goes_with_the_prompt(agent, tmp_path):
    pixel = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000a49444154789c6300010000050001"
    )
    (tmp_path / "dot.png").write_bytes(pixel)
    run = agent(
        f"-m model --attach {tmp_path / 'dot.png'}", "What is it?", model=Scripted(["A dot."])
    )
    assert run.log.of("user")[0].attachments[0]["media_type"] == "image/png"
    assert run.answer == "A dot."


def test_a_figure_in_the_prompt_is_attached_and_replayed(agent):
    class Plot:
        def savefig(self, target, **_):
            target.write(png(7, 3))

    model = Scripted(["A plot."])
    run = agent("-m model", "What is {{ plot }}?", model=model, plot=Plot())
    (user,) = run.log.of("user")
    assert user.content == "What is [plot: 7×3 pixels]?"
    assert user.attachments == ({**attached(png(7, 3)), "name": "plot"},)
