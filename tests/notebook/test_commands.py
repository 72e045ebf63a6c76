"""`%agent` commands say what they should, change only what they say, and never show a key."""

import getpass
import json
import re
from types import SimpleNamespace

import pytest
from helpers.scripts import calling
from IPython.core.error import StdinNotImplementedError

from agent_nb import Scripted
from agent_nb.agent import REGISTRY
from agent_nb.events import EventLog
from agent_nb.models import keys
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.notebook.commands import COMMANDS
from agent_nb.notebook.commands.output import show_parts
from agent_nb.notebook.magic import AgentMagics
from agent_nb.notebook.notices import format_table
from agent_nb.tools.kernel_permissions import KERNEL_PERMISSIONS
from agent_nb.tools.toolset import Toolset


@pytest.fixture
def ask(loaded, capsys):
    """Run one `%agent` command; return what it printed, or its value if it has one."""

    def ask(line):
        value = loaded.run_line_magic("agent", line)
        out = capsys.readouterr().out
        return out if value is None else value

    return ask


@pytest.fixture
def ran(loaded, capsys):
    """Run one cell with a scripted answer; return its Run."""
    loaded.user_ns["model"] = Scripted(["Hello."])
    loaded.run_cell_magic("agent", "-m model", "hi there")
    capsys.readouterr()
    return loaded.user_ns["_agent"]


def test_help_names_every_command_and_is_the_default(ask):
    text = ask("help")
    assert all(f"%agent {name}" in text for name in COMMANDS)
    assert ask("") == text


@pytest.mark.parametrize(
    ("line", "named"),
    [("hlep", "Did you mean %agent help"), ("frobnicate", "%agent help lists"), ("'", "quotation")],
)
def test_a_wrong_command_is_one_line(loaded, line, named):
    with pytest.raises(AgentCellError, match=named):
        loaded.run_line_magic("agent", line)


def test_the_beginning_of_several_open_runs_shows_none(loaded):
    open_runs = [REGISTRY.announce(EventLog()) for _ in range(2)]
    with pytest.raises(AgentCellError, match="Several runs begin with ''"):
        loaded.run_line_magic("agent", "show ''")
    assert all(open_runs)


def test_models_says_what_would_be_used_and_why(ask, monkeypatch):
    monkeypatch.setenv("AGENT_NB_MODEL", "lab/qwen")
    assert ask("models").startswith("lab/qwen (from AGENT_NB_MODEL)")


def test_models_lists_configured_endpoints_with_their_servers_and_keys(ask, tmp_path, monkeypatch):
    file = tmp_path / "config.toml"
    file.write_text('[endpoints.lab]\nbase_url = "http://lab:8000/v1"\nkey = "LAB_TOKEN"\n')
    monkeypatch.setenv("AGENT_NB_CONFIG", str(file))
    monkeypatch.setenv("GROQ_API_KEY", "gsk_abcdefghijklmnop1234")
    text = ask("models")
    assert re.search(r"lab +http://lab:8000/v1 +missing: set LAB_TOKEN", text)
    assert re.search(r"groq +https://api.groq.com/openai/v1 +from GROQ_API_KEY", text)
    assert re.search(r"With a key .*: anthropic, .*openai, ", text)
    assert "gsk_" not in text


def test_the_models_that_a_server_offers_are_listed_and_known_from_then_on(
    ask, loaded, monkeypatch
):
    async def names(provider):
        return [f"model{n}" for n in range(1_002)]

    monkeypatch.setattr("agent_nb.models.listing.list_models", names)
    text = ask("models lab/")
    assert text.startswith("lab/model0\nlab/model1\n")
    assert text.endswith("lab/model999\n… and 2 more models\n")
    session = loaded.magics_manager.registry["AgentMagics"].session
    assert session.offered["lab"][0] == "model0"


def test_tools_lists_the_built_in_ones_with_their_effect(ask):
    assert "python" in ask("tools")
    assert "kernel" in ask("tools")


def test_config_shows_the_defaults(ask, loaded):
    loaded.run_line_magic("config", "AgentMagics.max_turns = 3")
    assert re.search(r"AgentMagics.max_turns +3\n", ask("config"))


def test_config_shows_what_counts_where_nothing_is_set(ask, monkeypatch):
    monkeypatch.setenv("AGENT_NB_MODEL", "lab/qwen")
    shown = dict(
        line.split(None, 1)
        for line in ask("config").splitlines()
        if line.startswith("AgentMagics.")
    )
    assert not {"None", "''", "[]"} & set(shown.values())
    expected = {
        "max_turns": "30",
        "max_calls": "50",
        "max_failures": "3",
        "max_tokens": "200000",
        "time": "600",
        "cost": "no limit",
        "approve": "'ask'",
        "rerun": "'auto'",
        "view": "'auto'",
        "tools": "python and add_cell",
        "model": "'lab/qwen' (from AGENT_NB_MODEL)",
    }
    assert {name: shown[f"AgentMagics.{name}"] for name in expected} == expected


def test_the_help_of_a_cell_names_the_limits_that_hold_by_default():
    told = " ".join(AgentMagics.agent_cell.parser.format_help().split())
    for words in (
        "model turns (default: 30)",
        "tool calls (default: 50)",
        "run (default: 200,000)",
        "seconds (default: 600)",
    ):
        assert words in told


def test_status_names_the_limit_that_ended_a_turn(ask, loaded):
    loaded.user_ns["model"] = Scripted([calling("list")])
    loaded.run_cell_magic("agent", "-m model -t list --max-turns 1", "look around")
    assert "stopped at the limit of 1 turn" in ask("status")


def test_what_is_allowed_for_this_notebook_is_listed_and_revoked(ask, loaded):
    KERNEL_PERMISSIONS.allow(Toolset.resolve(["write"])["write"])
    try:
        line = "Allowed for this notebook, until its kernel restarts: write (%agent revoke TOOL takes it back)"
        assert line in ask("status")
        with pytest.raises(AgentCellError, match="Did you mean write"):
            ask("revoke wriet")
        assert ask("revoke write") == "write: asked about again.\n"
        assert "Allowed" not in ask("status")
        assert ask("revoke") == "No tool is allowed for this notebook.\n"
    finally:
        KERNEL_PERMISSIONS.revoke("write")


def test_a_key_is_asked_for_kept_and_never_shown(ask, monkeypatch, capsys):
    monkeypatch.setattr(getpass, "getpass", lambda prompt: "sk-abcdefghijklmnop1234")
    try:
        assert "this session" in ask("key openai")
        text = ask("key")
        assert "%agent key" in text
        assert "sk-abc" not in text
    finally:
        keys.forget("openai")


def test_a_key_of_a_provider_that_is_not_known_is_not_asked_for(loaded, monkeypatch):
    monkeypatch.setattr(getpass, "getpass", lambda prompt: pytest.fail("it asks"))
    with pytest.raises(
        AgentCellError,
        match=r"There is no provider 'opnai'. Did you mean openai( or openai-responses)?\?",
    ):
        loaded.run_line_magic("agent", "key opnai")
    assert keys.Key.find("opnai") is None


@pytest.mark.parametrize("fault", [EOFError(), StdinNotImplementedError()])
def test_without_a_keyboard_the_variable_is_named(loaded, monkeypatch, fault):
    def no_keyboard(prompt):
        raise fault

    monkeypatch.setattr(getpass, "getpass", no_keyboard)
    with pytest.raises(AgentCellError, match="OPENAI_API_KEY"):
        loaded.run_line_magic("agent", "key openai")


def test_a_key_in_the_cell_is_refused(loaded):
    with pytest.raises(AgentCellError, match="asked for, not written"):
        loaded.run_line_magic("agent", "key openai sk-abcdefghijklmnop1234")


def test_status_lists_turns_and_reset_forgets_them(ask, ran):
    assert ran.id in ask("status")
    assert ask("reset main") == "1 turn forgotten. The runs stay in the notebook.\n"
    assert "No cell has run" in ask("status")


def test_status_counts_the_turns_from_the_one_that_began_anew(ask, loaded):
    loaded.user_ns["model"] = Scripted(["Hello."])
    for number, options in enumerate(["", "", " --new", ""]):
        loaded.run_cell_magic("agent", f"-m model{options}", f"question {number}")
    assert re.findall(r"^main +(\d)", ask("status"), re.MULTILINE) == ["1", "2", "1", "2"]


def test_status_says_that_clearing_outputs_keeps_records(ask, tmp_path, monkeypatch):
    cells = [{"cell_type": "code", "id": "a", "source": "%%agent\nhi", "outputs": []}]
    record = {"format": 1, "id": "r1", "started": 1.0, "events": [{"type": "end", "status": "ok"}]}
    metadata = {"agent_nb": {"version": 1, "runs": {"a": [record]}}}
    path = tmp_path / "n.ipynb"
    path.write_text(
        json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
    )
    monkeypatch.setenv("AGENT_NB_NOTEBOOK", str(path))
    assert "1 cell has a record and no output" in ask("status")


def test_the_end_of_the_tape_says_what_its_clients_need(ask):
    ask("tape")
    assert "make them anew" in ask("tape off")
    assert ask("tape off") == "The tape is not on.\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("reset main other", r"'other' is too much\. Write %agent reset \[CONVERSATION\]\."),
        ("recover 12 34", r"'34' is too much\. Write %agent recover \[RUN\|all\|others\]\."),
        ("export a.md 12 34", r"'34' is too much\. Write %agent export FILE \[RUN\]\."),
        ("forget all c1", "No cell with runs begins with 'all'"),
        ("forget maps c1", "No cell with runs begins with 'maps'"),
    ],
)
def test_an_argument_too_many_is_an_error_and_changes_nothing(ask, ran, line, words):
    with pytest.raises(AgentCellError, match=words):
        ask(line)
    assert ask("show") is ran
    assert ask("reset") == "1 turn forgotten. The runs stay in the notebook.\n"


def test_resetting_an_unknown_conversation_names_the_known_ones(loaded, ran):
    with pytest.raises(AgentCellError, match="Known: main"):
        loaded.run_line_magic("agent", "reset nope")


def test_show_and_events_find_a_run_by_the_beginning_of_its_id(ask, ran):
    assert ask("show") is ran
    assert ask(f"show {ran.id[:5]}") is ran
    assert len(ask("events")) == len(ran.events)


@pytest.mark.parametrize("line", ["show", "events", "export x.md"])
def test_without_a_run_there_is_a_line_that_says_so(loaded, line):
    with pytest.raises(AgentCellError, match="No run yet"):
        loaded.run_line_magic("agent", line)


def test_an_unknown_run_names_the_known_ones(loaded, ran):
    with pytest.raises(AgentCellError, match=ran.id):
        loaded.run_line_magic("agent", "show zzz")


@pytest.mark.parametrize("ending", ["ndjson", "md", "html", "txt"])
def test_export_writes_the_form_that_the_ending_says(ask, ran, tmp_path, ending):
    path = tmp_path / f"run.{ending}"
    assert "is written to" in ask(f"export '{path}'")
    text = path.read_text(encoding="utf-8")
    assert "Hello." in text
    assert text.startswith("<!doctype html>") == (ending == "html")


def test_export_writes_below_the_home_folder(ask, ran, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    ask("export ~/run.md")
    assert (tmp_path / "run.md").exists()


@pytest.mark.parametrize(
    ("name", "named"), [("run.docx", "Known: .ndjson"), ("no/where/run.md", "cannot be written")]
)
def test_export_to_what_cannot_be_is_refused(loaded, ran, name, named):
    with pytest.raises(AgentCellError, match=named):
        loaded.run_line_magic("agent", f"export {name}")


def test_doctor_tells_versions_front_end_and_model(ask, monkeypatch):
    monkeypatch.setenv("AGENT_NB_MODEL", "lab/qwen")
    text = ask("doctor")
    assert "ipykernel" in text
    assert "lab/qwen" in text
    assert "no, a terminal" in text


@pytest.mark.parametrize(("clicks", "way"), [(True, "by buttons"), (False, "none: --approve")])
def test_doctor_says_how_questions_are_answered(ask, monkeypatch, clicks, way):
    monkeypatch.setattr("agent_nb.notebook.cell.frontend.can_click_now", lambda *_: clicks)
    assert re.search(rf"^ +questions +{way}", ask("doctor"), re.MULTILINE)


def test_a_table_has_aligned_columns():
    assert format_table([("a", "b"), ("long", "c")]) == "a     b\nlong  c"
    assert format_table([]) == ""


def test_the_page_of_a_command_has_a_label_that_fits_every_command(monkeypatch):
    shown = []
    monkeypatch.setattr(
        "agent_nb.notebook.cell.publish.publish_display", lambda data, **_: shown.append(data)
    )
    session = SimpleNamespace(shell=SimpleNamespace(kernel=object()))
    show_parts(session, "Nothing yet.", [("provider", "key"), ("lab", "set")])
    assert 'aria-label="Output of %agent"' in shown[0]["text/html"]
