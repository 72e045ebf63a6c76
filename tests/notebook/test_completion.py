"""Completion of the lines of `%%agent` and `%agent`: what is offered where, and what is left
alone.
"""

import json
import warnings
from types import SimpleNamespace

import pytest
from helpers.scripts import calling
from hypothesis import given
from hypothesis import strategies as st
from IPython.core import completer
from IPython.core.completer import provisionalcompleter

from agent_nb import Agent, Scripted, mcp_server
from agent_nb.notebook import magic
from agent_nb.notebook.cell.ran_cells import RanCell
from agent_nb.notebook.commands import COMMANDS
from agent_nb.notebook.completion import fitting, names
from agent_nb.notebook.completion.line import parse_typed
from agent_nb.notebook.completion.registration import make_matcher
from agent_nb.notebook.option_table import OPTIONS
from agent_nb.tools.kernel_permissions import KERNEL_PERMISSIONS
from agent_nb.tools.toolset import Toolset, available


@pytest.fixture(params=[pytest.param("jedi", marks=pytest.mark.long), "plain"])
def offered(request, loaded):
    """What IPython offers at the end of a cell, as (text, what the line is then)."""
    loaded.Completer.use_jedi = request.param == "jedi"

    def offered(cell):
        with provisionalcompleter():
            found = list(loaded.Completer.completions(cell, len(cell)))
        ours = [c for c in found if c._origin == "agent_nb"]
        return {c.text: cell[: c.start] + c.text for c in ours}

    yield offered
    loaded.Completer.use_jedi = False


@pytest.mark.parametrize("offered", ["jedi", "plain"], indirect=True)
def test_options_are_offered_at_the_first_line(offered):
    found = offered("%%agent -m x ")
    assert found["--tools"] == "%%agent -m x --tools"
    assert "--model" not in found, "it is given"
    assert offered("%%agent --ver") == {}
    assert set(offered("%%agent --new --to")) == {"--tools"}
    assert "-t" in offered("%%agent -")


def test_an_option_with_its_value_in_one_word_is_not_offered_again(offered):
    found = offered("%%agent --model=x --tools=list ")
    assert "--model" not in found
    assert "--tools" in found, "it may be repeated"


def test_an_older_completer_gets_the_rest_of_the_last_word(loaded, monkeypatch):
    monkeypatch.delattr(completer, "SimpleCompletion")
    matcher = make_matcher(loaded, lambda: magic._find_magics(loaded).session)

    def offered(line, word):
        loaded.Completer.text_until_cursor = line
        return matcher(word)

    assert offered("%%agent -m x --to", "--to") == ["--tools"]
    assert "replay" in offered("%%agent --rerun re", "re")
    assert "replay" in offered("%%agent --rerun=re", "re")
    assert "doctor" in offered("%agent do", "do")
    assert offered("import os", "os") == []
    assert offered("%%agent -m scripted", "m scripted") == []


def test_an_older_completer_reads_the_cell_from_the_request(loaded, monkeypatch):
    monkeypatch.delattr(completer, "SimpleCompletion")
    matcher = make_matcher(loaded, lambda: magic._find_magics(loaded).session)
    loaded.user_ns["reviews"] = 1
    code = "%%agent -m x\nWhat is\nin @re"
    content = {"code": f"{code} and more", "cursor_pos": len(code)}
    kernel = SimpleNamespace(get_parent=lambda: {"content": content})
    monkeypatch.setattr(loaded, "kernel", kernel, raising=False)
    loaded.Completer.text_until_cursor = "in @re"
    assert matcher("re") == ["reviews"]
    loaded.Completer.text_until_cursor = "another @re"
    assert matcher("re") == []
    content["code"] = "%%agent -m x\n@cell:"
    content["cursor_pos"] = len(content["code"])
    loaded.Completer.text_until_cursor = "@cell:"
    monkeypatch.setattr(names, "cell_numbers", lambda *_: ["cell:3"])
    monkeypatch.setitem(names.MENTIONS, "cell", names.cell_numbers)
    assert matcher("") == ["3"]


def test_every_file_offered_for_approve_may_be_a_policy(offered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("p.yaml", "q.yml", "r.json", "s.toml"):
        (tmp_path / name).write_text("")
    assert list(offered("%%agent --approve ")) == ["ask", "auto", "deny", "p.yaml", "q.yml"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "regions").mkdir()
    for name in ("report.md", "my report.csv", ".renv", "secrets.toml", "regions/north.csv"):
        (tmp_path / name).write_text("text")
    (tmp_path / "rogue.txt").symlink_to("/etc/hostname")
    return tmp_path


def test_variables_cells_and_files_are_offered_in_the_prompt(offered, loaded, folder, monkeypatch):
    loaded.run_cell("import re, reprlib\nreviews = 1\nrows = 2")
    monkeypatch.setattr(names, "readable_cells", lambda *_: [RanCell(count=7), RanCell(count=3)])
    found = offered("%%agent -m x\nWhat is in @re")
    assert list(found) == ["reviews", "regions/", "report.md"]
    assert found["report.md"] == "%%agent -m x\nWhat is in @report.md"
    found = list(offered("%%agent -m x\n(@"))
    assert found[:4] == ["reviews", "rows", "cell:7", "cell:3"]
    assert set(found[4:]) == {'"my report.csv"', "regions/", "report.md"}
    assert set(offered("%%agent -m x\n@cell:")) == {"cell:7", "cell:3"}
    assert set(offered("%%agent -m x\n@regions/")) == {"regions/north.csv"}
    assert set(offered('%%agent -m x\n@"my')) == {'"my report.csv"'}


@pytest.mark.parametrize("body", ["`x` a@re", "```\n@re", "@re ", "@/et", "@../", "@.re", "@secr"])
def test_nothing_is_offered_where_a_name_means_nothing(offered, loaded, folder, body):
    loaded.user_ns["reviews"] = 1
    assert offered(f"%%agent -m x\n{body}") == {}


@pytest.mark.parametrize("line", ["--map df", "--map=df", "--from run.ndjson"])
def test_no_name_is_offered_in_a_prompt_for_rows_or_a_title(offered, loaded, line):
    loaded.user_ns["reviews"] = 1
    assert offered(f"%%agent {line}\n@re") == {}


def test_nothing_of_ours_is_offered_in_the_prompt(offered):
    for body in ("--", "-m ", "%agent ", "%%agent ", "list,"):
        assert offered(f"%%agent -m x\n{body}") == {}
        assert offered(f"\n\n%%agent -m x\nHello.\n{body}") == {}


def test_a_first_line_below_empty_lines_counts(offered):
    assert "--tools" in offered("\n\n%%agent --")


@pytest.mark.parametrize("cell", ["%%agent -m 'x ", '%%agent --system "be ', "%%agents --", "%%ag"])
def test_nothing_is_offered_inside_quotes_or_for_other_magics(offered, cell):
    assert offered(cell) == {}


@pytest.mark.parametrize("flags", [flags for flags, k in OPTIONS if k.get("choices")])
def test_every_option_with_choices_offers_them(offered, flags):
    choices = next(k["choices"] for f, k in OPTIONS if f == flags)
    assert set(offered(f"%%agent {flags[-1]} ")) == set(choices)
    assert set(offered(f"%%agent {flags[-1]}={choices[0]}")) >= {choices[0]}


def test_models_are_variables_the_configured_one_and_providers(offered, loaded, monkeypatch):
    monkeypatch.setenv("AGENT_NB_MODEL", "lab/qwen")
    loaded.user_ns["script"] = Scripted(["Hello."])
    found = list(offered("%%agent -m "))
    assert found[:2] == ["script", "lab/qwen"]
    assert "openai/" in found
    assert list(offered("%%agent -m op")) == ["openai/", "openai-responses/", "openrouter/"]


def test_the_models_of_a_provider_are_those_known_without_a_network(offered, loaded):
    session = loaded.magics_manager.registry["AgentMagics"].session
    session.offered["groq"] = ["llama", "qwen"]
    assert list(offered("%%agent -m groq/")) == [
        "groq/openai/gpt-oss-120b",
        "groq/llama",
        "groq/qwen",
    ]
    assert list(offered("%%agent -m local/")) == ["local/smollm2"]


def test_an_endpoint_of_the_configuration_is_offered(offered, tmp_path, monkeypatch):
    file = tmp_path / "config.toml"
    file.write_text('[endpoints.lab]\nbase_url = "http://lab:8000/v1"\nmodel = "qwen3"\n')
    monkeypatch.setenv("AGENT_NB_CONFIG", str(file))
    assert list(offered("%%agent -m la")) == ["lab/"]
    assert list(offered("%%agent -m lab/")) == ["lab/qwen3"]
    file.write_text("[endpoints")
    assert "openai/" in offered("%%agent -m ")


def test_tools_after_the_last_comma_are_the_notebooks_then_ours(offered, loaded):
    def visitors(): ...

    loaded.user_ns["visitors"] = visitors
    loaded.user_ns["helper"] = Agent(Scripted([]), name="helper")
    loaded.user_ns["Agent"] = Agent
    loaded.user_ns["resolve"] = available
    found = offered("%%agent -t list,")
    assert list(found)[:2] == ["visitors", "helper"]
    assert found["python"] == "%%agent -t list,python"
    assert not {"list", "Agent", "resolve", "exit"} & set(found)


def test_further_models_are_offered_after_a_comma(offered, loaded):
    loaded.user_ns["script"] = Scripted(["Hello."])
    found = offered("%%agent -m script,local/")
    assert found == {"local/smollm2": "%%agent -m script,local/smollm2"}


def test_mcp_servers_of_the_folder_are_offered_and_not_started(offered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entry = {"command": "touch", "args": [str(tmp_path / "started")]}
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"ferry": entry, "fleet": entry}}))
    assert set(offered("%%agent -t python,mcp:")) == {"mcp:ferry", "mcp:fleet"}
    assert set(offered("%agent mcp ")) == {"allow", "revoke", "stop"}
    assert set(offered("%agent mcp allow f")) == {"ferry", "fleet"}
    file.write_text("{")
    assert offered("%%agent -t mcp:") == {}
    assert not (tmp_path / "started").exists()


def test_variables_conversations_dialects_and_formats_are_offered(offered, loaded, agent):
    loaded.user_ns["frame"] = [1]
    agent("-m model -c ferry", model=Scripted(["Hello."]))
    assert "frame" in offered("%%agent -o ")
    assert set(offered("%%agent -c ")) == {"main", "ferry"}
    assert "native" in offered("%%agent -d ")
    assert "loom" in offered("%%agent --codec l")
    assert "high" in offered("%%agent --reasoning ")


def test_files_are_offered_by_folder_and_kind(offered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plots").mkdir()
    for name in ("a.png", "a.txt", ".hidden.png", "two words.png", "plots/b.JPG"):
        (tmp_path / name).touch()
    assert set(offered("%%agent --attach ")) == {"plots/", "a.png", "a.txt"}
    assert set(offered("%%agent --attach plots/")) == {"plots/b.JPG"}
    assert set(offered("%agent export a")) == {"a.txt"}
    assert offered("%%agent --attach nowhere/") == {}


def test_a_variable_that_holds_a_picture_can_be_attached(offered, loaded, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    class Figure:
        def savefig(self): ...

    loaded.user_ns.update(figure=Figure(), raw=b"png", number=7)
    assert set(offered("%%agent --attach ")) == {"figure", "raw"}


def test_commands_are_offered_wherever_the_line_magic_stands(offered):
    assert set(offered("x = 1\n%agent ")) == set(COMMANDS)
    assert set(offered("frame = %agent ev")) == {"events"}
    assert offered("'%agent ' + '") == {}


def test_the_arguments_of_commands_are_offered(offered, loaded, agent):
    run = agent("-m model -t add_cell", model=Scripted([calling("add_cell", code="a"), "."]))
    assert set(offered("%agent show ")) == {run.id}
    assert set(offered(f"%agent export x.md {run.id[:3]}")) == {run.id}
    assert set(offered("%agent cell ")) == {"1"}
    assert set(offered("%agent cell 1 ")) == {run.id}
    assert offered(f"%agent cell 1 {run.id} ") == {}
    assert "all" in offered("%agent forget ")
    assert set(offered("%agent reset ")) == {"main"}
    assert "groq" in offered("%agent models g")
    assert set(offered("%agent key openai ")) == {"--keyring"}
    assert offered("%agent status ") == {}


def test_tools_that_are_allowed_for_this_notebook_can_be_revoked(offered):
    KERNEL_PERMISSIONS.allow(Toolset.resolve(["write"])["write"])
    try:
        assert set(offered("%agent revoke ")) == {"write"}
        assert offered("%agent revoke write ") == {}
    finally:
        KERNEL_PERMISSIONS.revoke("write")


def test_the_tables_name_only_what_there_is():
    assert set(fitting.COMMAND_ARGUMENTS) <= set(COMMANDS)
    assert set(fitting.OPTION_VALUES) <= {
        option.destination for option in fitting._OPTIONS.values()
    }


def test_the_older_completion_of_a_kernel_offers_the_same(loaded):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        assert loaded.complete("", "%%agent -t li", 13) == ("li", ["list"])
        assert loaded.complete("", "%%agent -t list,sh", 18) == ("sh", ["shell"])


def test_pythons_completions_stay_away_where_we_know_what_belongs(loaded):
    with provisionalcompleter():
        found = list(loaded.Completer.completions("%%agent --view ", 15))
    assert {c._origin for c in found} == {"agent_nb"}


class Hostile:
    """An object that must not be asked for anything."""

    def __getattribute__(self, name):
        raise AssertionError(name)

    def __eq__(self, other):
        raise AssertionError("__eq__")

    __hash__ = None


class Meta(type):
    def __getattribute__(cls, name):
        raise AssertionError(name)

    @property
    def __module__(cls):
        raise AssertionError("__module__")


Strange = Meta("Strange", (), {})


def test_no_foreign_object_is_asked_for_anything(offered, loaded):
    def odd(): ...

    odd.__module__ = Hostile()
    loaded.user_ns.update(
        odd=odd, hostile=Hostile(), strange=Strange, one=object.__new__(Strange), figures=[1]
    )
    for line in ("-m ", "-t ", "-o ", "--output ", "--attach ", "-c "):
        offered(f"%%agent {line}")
    assert "figures" in offered("%%agent -o ")
    assert "strange" in offered("%%agent --output ")
    assert not {"hostile", "strange", "one"} & {*offered("%%agent -t "), *offered("%%agent -m ")}


def test_no_network_is_used_and_of_many_names_few_are_offered(offered, loaded, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("it connects"))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: pytest.fail("it resolves"))
    loaded.user_ns.update({f"name{n}": n for n in range(20_000)})
    for line in ("--", "-m ", "-m local/", "-t ", "-o ", "--attach ", "-c ", "--approve "):
        assert len(offered(f"%%agent {line}")) <= 200


def test_a_source_that_fails_offers_nothing_and_prints_nothing(offered, monkeypatch, capsys):
    def fails(session, begun):
        raise RuntimeError("broken")

    monkeypatch.setitem(fitting.OPTION_VALUES, "model", fitting.Candidates("model", fails))
    assert offered("%%agent -m ") == {}
    assert capsys.readouterr() == ("", "")


def test_loading_twice_adds_one_matcher_and_unloading_removes_it(loaded):
    magic.load_magics(loaded)
    ours = [m for m in loaded.Completer.custom_matchers if "agent_nb" in str(m)]
    assert len(ours) == 1
    magic.unload_magics(loaded)
    assert not [m for m in loaded.Completer.custom_matchers if "agent_nb" in str(m)]


@given(st.text(alphabet="%agent -m'\"\n\\=,x"), st.integers(-1, 5), st.integers(0, 40))
def test_any_text_can_be_typed(text, line, column):
    found = parse_typed(text, line, column)
    if found is not None:
        assert text.split("\n")[line][:column].endswith(found.prefix)


def test_a_server_made_in_code_is_offered_as_a_tool(offered, loaded):
    loaded.user_ns["ferries"] = mcp_server("ferries", "no-such-command")
    assert "ferries" in offered("%%agent -t fer")


def test_the_type_of_the_answer_is_a_class_of_the_notebook_or_a_plain_type(offered, loaded):
    class Row:
        pass

    loaded.user_ns.update(Row=Row, strange=Strange, data=[1], Agent=Agent)
    found = offered("%%agent --output ")
    assert {"Row", "int", "str"} <= {*found}
    assert not {"data", "Agent"} & {*found}
    assert "Row" not in offered("%%agent -o ")
