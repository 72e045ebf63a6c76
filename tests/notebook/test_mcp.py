"""MCP servers in a notebook: listed, allowed, revoked; runs are recorded with them and replayed
without.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import nbformat
import pytest
from helpers import mcp_light_server, mcp_old_server, mcp_servers
from helpers.kernels import Kernel
from helpers.mcp_runs import alive, until, written
from helpers.paths import python_path
from IPython.core.error import StdinNotImplementedError

from agent_nb import Scripted, mcp_server
from agent_nb.cli.main import main
from agent_nb.errors import UsageError
from agent_nb.host import trust
from agent_nb.notebook import magic
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.notebook.mcp_servers import run_mcp_command
from agent_nb.tools.mcp.hub import HUB

PROGRAM = Path(mcp_servers.__file__)
ECHO = '<execute>[{"name": "echo", "args": {"text": "hi"}}]</execute>'


@pytest.fixture(autouse=True)
def new_process(monkeypatch, tmp_path):
    """Nothing was allowed in this process yet, nor by this user."""
    monkeypatch.setattr(trust, "_allowed_here", set())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv(trust.Offer.TRUST_SERVERS, raising=False)
    yield
    HUB.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with a `.mcp.json` of one server, and the server's program."""
    place = tmp_path / "project"
    place.mkdir()
    (place / ".git").mkdir()
    (place / "server.py").write_text(PROGRAM.read_text())
    written(place, "small", [sys.executable, "server.py"])
    monkeypatch.chdir(place)
    return place


def test_a_permission_needs_a_yes_after_the_command_was_shown(folder, answer):
    asked = answer("y")
    assert run_mcp_command(["allow", "small"]) == "allowed: the MCP server small"
    assert f'command: "{sys.executable}" "server.py"' in asked[0]
    assert "A yes counts as long as this entry stays as it is" in asked[0]
    assert "small  allowed" in run_mcp_command([])
    assert run_mcp_command(["allow", "small"]) == "The MCP server small may start already."


@pytest.mark.parametrize(
    "said", [["n"], [""], ["perhaps", "hm", "yep"], [EOFError()], [StdinNotImplementedError("no")]]
)
def test_what_is_not_clearly_a_yes_allows_nothing(folder, answer, said):
    answer(*said)
    assert run_mcp_command(["allow", "small"]).startswith("Not allowed.")
    assert "small  not allowed" in run_mcp_command([])


def test_a_changed_entry_asks_again(folder, answer):
    answer("y")
    run_mcp_command(["allow", "small"])
    written(folder, "small", [sys.executable, "-u", "server.py"])
    assert "small  not allowed" in run_mcp_command([])


def test_another_process_knows_the_permission_until_it_is_revoked(folder, answer, monkeypatch):
    answer("y")
    run_mcp_command(["allow", "small"])
    monkeypatch.setattr(trust, "_allowed_here", set())
    assert "small  allowed" in run_mcp_command([])
    assert run_mcp_command(["revoke", "small"]) == "small: may not start any more"
    assert "small  not allowed" in run_mcp_command([])
    assert run_mcp_command(["revoke", "small"]) == "small: was not allowed"


def test_trusting_the_folder_allows_no_server_and_a_server_not_the_folder(
    folder, answer, monkeypatch
):
    monkeypatch.setenv(trust.Offer.TRUST_FOLDER, "1")
    assert "small  not allowed" in run_mcp_command([])
    monkeypatch.delenv(trust.Offer.TRUST_FOLDER)
    answer("y")
    run_mcp_command(["allow", "small"])
    assert list(trust.Offer.list_allowed()) == [(str(folder), "start the MCP server small")]


def test_the_folders_own_env_file_does_not_allow_its_servers(folder, monkeypatch):
    monkeypatch.setenv(trust.Offer.TRUST_SERVERS, "1")
    assert f"{trust.Offer.TRUST_SERVERS} is set" in run_mcp_command([])
    (folder / ".env").write_text(f"{trust.Offer.TRUST_SERVERS}=1")
    assert "small  not allowed" in run_mcp_command([])


def test_what_an_entry_says_is_shown_escaped(folder, answer):
    written(folder, "small", ["\x1b[2Jnpx", "\u202e\u200b\U000e0041"])
    asked = answer("n")
    assert '"\\u001b[2Jnpx" "\\u202e\\u200b\\udb40\\udc41"' in run_mcp_command([])
    run_mcp_command(["allow", "small"])
    assert all(c.isprintable() or c == "\n" for c in asked[0])


SECRET = "quite-hidden"


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "args": [f"--token={SECRET}"]},
        {"command": "npx", "args": ["--api-key", SECRET, "last"]},
        {"command": "npx", "args": ["--header", f"Authorization: Bearer {SECRET}"]},
        {"command": "npx", "args": ["--header", f"Authorization:{SECRET}"]},
        {"command": "docker", "args": ["run", "-e", f"MY_TOKEN={SECRET}"]},
        {"command": "sh", "args": ["-c", f"cd x; API_KEY='{SECRET}' npx y"]},
        {"command": "npx", "args": ["mcp-remote", f"https://example.org/a?key={SECRET}&b=1"]},
        {"command": "npx", "args": ["x"], "env": {"DB": f"postgres://me:{SECRET}@host/x"}},
        {"command": "npx", "args": [f"--db=postgres://me:{SECRET}@x@host/x"]},
        {"command": "npx", "args": ["x"], "env": {"PW_TOKEN": SECRET[-5:]}},
        {"command": "npx", "args": [SECRET], "env": {"MY_TOKEN": SECRET}},
        {"url": f"https://example.org/a?key={SECRET}"},
        {"url": f"https://me:{SECRET}@example.org/a#{SECRET}"},
        {"url": "https://example.org/a", "headers": {"X-Key": SECRET}},
    ],
)
def test_the_list_shows_no_secret_and_allow_shows_the_entry(folder, answer, entry):
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"small": entry}}))
    asked = answer("n")
    shown = run_mcp_command([])
    assert "small  not allowed" in shown
    assert "hidden" not in shown.replace("not allowed", "")
    assert SECRET[-5:] not in shown
    assert entry.get("command", "example.org/a") in shown
    run_mcp_command(["allow", "small"])
    assert SECRET[-5:] in asked[0]


def test_the_list_shows_what_is_no_secret(folder):
    args = ["-y", "pkg@1.2", "--port=80", "--no-auth", "-v", "C:\\x", "https://example.org/a"]
    entry = {"command": "npx", "args": args, "env": {"MODE": "fast"}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"small": entry}}))
    shown = run_mcp_command([])
    assert f"command: {' '.join(map(json.dumps, ['npx', *args]))}" in shown
    assert '"MODE"="fast"' in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["allow"], "Write mcp, mcp allow NAME"),
        (["permit", "small"], "Write mcp, mcp allow NAME"),
        (["allow", "smal"], "Did you mean small"),
    ],
)
def test_a_wrong_word_changes_nothing(folder, words, said):
    with pytest.raises(UsageError, match=said):
        run_mcp_command(words)


def test_a_wrong_name_among_others_changes_nothing(folder, answer):
    answer("y")
    run_mcp_command(["allow", "small"])
    with pytest.raises(UsageError, match="smal"):
        run_mcp_command(["revoke", "small", "smal"])
    assert "small  allowed" in run_mcp_command([])


def test_a_faulty_entry_is_listed_with_its_fault(folder):
    (folder / ".mcp.json").write_text('{"mcpServers": {"odd": {"command": 3}}}')
    assert "odd  faulty" in run_mcp_command([])
    assert "command must be a text" in run_mcp_command([])


def test_the_terminal_lists_and_allows_as_well(folder, answer, capsys):
    answer("y")
    assert main(["mcp", "allow", "small"]) == 0
    assert main(["mcp"]) == 0
    assert "small  allowed" in capsys.readouterr().out


@pytest.mark.slow
def test_a_cell_runs_with_a_server_once_it_is_allowed(loaded, folder, answer, capsys):
    loaded.user_ns["m"] = Scripted([ECHO, "done"])
    with pytest.raises(AgentCellError, match=r"%agent mcp allow small"):
        loaded.run_cell_magic("agent", "-m m -t mcp:small --approve auto", "go")
    assert list(HUB.states()) == []
    answer("y")
    loaded.run_line_magic("agent", "mcp allow small")
    loaded.run_cell_magic("agent", "-m m -t mcp:small --approve auto --live", "go")
    run = loaded.user_ns["_agent"]
    assert run.log.of("result")[0].content == "hi"
    capsys.readouterr()
    loaded.run_line_magic("agent", "mcp")
    assert "small  running" in capsys.readouterr().out
    loaded.run_line_magic("agent", "mcp revoke small")
    loaded.run_line_magic("agent", "mcp")
    assert "small  not allowed" in capsys.readouterr().out


@pytest.mark.slow
def test_unloading_the_extension_ends_the_servers(loaded):
    loaded.user_ns["small"] = mcp_server("small", sys.executable, [mcp_light_server.__file__])
    loaded.user_ns["m"] = Scripted(['<execute>[{"name": "process", "args": {}}]</execute>', "done"])
    loaded.run_cell_magic("agent", "-m m -t small --approve auto", "go")
    process = int(loaded.user_ns["_agent"].log.of("result")[0].content)
    assert alive(process)
    magic.unload_magics(loaded)
    assert not alive(process)


@pytest.mark.slow
def test_a_server_asks_the_user_at_the_keyboard_of_the_cell(loaded, answer):
    loaded.user_ns["old"] = mcp_server("old", sys.executable, [mcp_old_server.__file__])
    loaded.user_ns["m"] = Scripted(['<execute>[{"name": "ask", "args": {}}]</execute>', "done"])
    asked = answer("y", "Bern", "2", "car", "", "", "n")
    loaded.run_cell_magic("agent", "-m m -t old --approve auto", "go")
    assert '"name": "Bern", "days": 2, "kind": "car"' in str(
        loaded.user_ns["_agent"].log.of("result")[0].content
    )
    assert asked[0].startswith("The MCP server old asks:")


@pytest.fixture
def program():
    return mcp_server("small", sys.executable, [str(PROGRAM)])


SETUP = """%load_ext agent_nb
from agent_nb import Scripted, mcp_server
import sys
def calls(name, args="{}"):
    return Scripted([f'<execute>[{{"name": "{name}", "args": {args}}}]</execute>', "done"])
m = calls("picture")
wrong = calls("echo", '{"text": "hi"}')
"""
CELLS = (
    "%%agent -m m -t mcp:small --approve auto\nShow me.",
    "print(_agent.log.of('result')[0].content, 'mcp' in sys.modules)",
)


def notebook(folder, *cells):
    nb = nbformat.v4.new_notebook()
    nb.cells = [nbformat.v4.new_code_cell(c, id=f"c{n}") for n, c in enumerate((SETUP, *cells))]
    path = folder / "n.ipynb"
    nbformat.write(nb, path)
    return path


def outputs(path):
    cells = json.loads(path.read_text())["cells"]
    return ["".join("".join(o.get("text", "")) for o in cell["outputs"]) for cell in cells]


@pytest.mark.long
@pytest.mark.kernel
def test_a_recorded_notebook_replays_without_server_entry_and_sdk(
    folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("PYTHONPATH", python_path())
    path = notebook(folder, *CELLS)
    assert main(["run", "--live", "--inplace", "--trust-mcp", str(path)]) == 0
    assert outputs(path)[2] == "two by two True\n"
    (folder / "server.py").unlink()
    (folder / ".mcp.json").unlink()
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    (lacking / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(lacking), python_path())))
    capsys.readouterr()
    assert main(["test", str(path)]) == 0, capsys.readouterr()
    assert "1 run replayed" in capsys.readouterr().out
    assert main(["run", "--inplace", str(path)]) == 0
    assert outputs(path)[2] == "two by two True\n"  # None is in sys.modules


@pytest.mark.few("command1")
@pytest.mark.kernel
@pytest.mark.parametrize("command", [["run", "--live"], ["run", "--live", "--trust-folder"]])
def test_without_a_yes_a_headless_run_starts_nothing(folder, monkeypatch, command, capsys):
    monkeypatch.setenv("PYTHONPATH", python_path())
    mark = folder / "started"
    written(folder, "small", ["touch", str(mark)])
    assert main([*command, "--inplace", str(notebook(folder, *CELLS))]) == 1
    assert not mark.exists()
    assert "is not allowed to start" in capsys.readouterr().err


@pytest.mark.kernel
def test_a_test_starts_no_server_even_if_it_may(folder, monkeypatch, capsys):
    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.setenv(trust.Offer.TRUST_SERVERS, "1")
    mark = folder / "started"
    written(folder, "small", ["touch", str(mark)])
    direct = "from agent_nb import Agent\nawait Agent(m, ['mcp:small'], approve='auto')('go')"
    assert main(["test", "--keep-going", str(notebook(folder, CELLS[0], direct))]) == 1
    assert not mark.exists()


@pytest.mark.long
@pytest.mark.kernel
def test_what_the_policy_denies_now_is_named_though_no_server_runs(folder, monkeypatch, capsys):
    monkeypatch.setenv("PYTHONPATH", python_path())
    path = notebook(folder, CELLS[0].replace("auto", "policy.yaml"))
    (folder / "policy.yaml").write_text("default: allow")
    options = ["--inplace", "--trust-mcp", "--trust-folder"]
    assert main(["run", "--live", *options, str(path)]) == 0
    assert main(["test", str(path)]) == 0
    (folder / "policy.yaml").write_text("rules: [{deny: picture}]")
    (folder / ".mcp.json").unlink()
    capsys.readouterr()
    assert main(["test", str(path)]) == 1
    assert "the policy denies `picture`" in capsys.readouterr().out
    (folder / "policy.yaml").write_text("rules: [{deny: pictures}]")
    assert main(["test", str(path)]) == 1
    assert "there is no tool 'pictures'" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.kernel
@pytest.mark.parametrize("now", [False, True])
def test_no_server_outlives_its_kernel(tmp_path, now, program):
    kernel = Kernel(sys.executable, tmp_path)
    try:
        made = f"small = mcp_server('small', {program.command!r}, {list(program.args)!r})"
        code = f"from agent_nb import Agent, Scripted, mcp_server\n{made}\n"
        code += 'script = Scripted([\'<execute>[{"name": "process", "args": {}}]</execute>\', \'done\'])\n'
        code += "run = await Agent(script, [small], approve='auto')('go')\n"
        code += "print(run.log.of('result')[0].content)"
        status, text, _ = kernel.finish(kernel.send(code))
        assert status == "ok", text
        process = next(int(word) for word in text.split() if word.isdecimal())
        assert alive(process)
    finally:
        kernel.client.stop_channels()
        kernel.manager.shutdown_kernel(now=now)
    asyncio.run(until(lambda: not alive(process)))


@pytest.mark.long
@pytest.mark.slow
def test_a_replay_that_drifts_goes_on_with_the_server(loaded, program):
    loaded.user_ns |= {"small": program, "rows": 3}
    loaded.run_cell("def count() -> int:\n    'Count.'\n    return rows")
    calls = [f'<execute>[{{"name": "{n}", "args": {a}}}]</execute>' for n, a in CALLS]
    loaded.user_ns["m"] = Scripted([*calls, "done"])
    line = "-m m -t count,small --approve auto"
    loaded.run_cell_magic("agent", line, "go")
    HUB.close()
    loaded.user_ns["rows"] = 4
    loaded.run_cell_magic("agent", line, "go")
    run = loaded.user_ns["_agent"]
    assert [result.content for result in run.log.of("result")][:2] == [4, "hi"]
    assert HUB.running(program)
    assert "mcp" in [e.kind for e in run.log.of("state")]


CALLS = (("count", "{}"), ("echo", '{"text": "hi"}'))
