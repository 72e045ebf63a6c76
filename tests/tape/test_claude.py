"""`claude -p` on a tape: a stand-in of its form, and the program itself where it is installed."""

import json
import os
import subprocess

import pytest
from helpers.claude import claude, stand_in
from helpers.moved_clock import moved_clock
from helpers.notebooks import write
from tape.test_notebook import TAPE, change, printed, record, taped

from agent_nb.record.signing import is_intact
from agent_nb.rows.recorded_runs import runs
from agent_nb.runner.client import execute_notebook
from agent_nb.runner.execution_options import ExecutionOptions
from agent_nb.runner.notebook_check import check_notebook

pytestmark = pytest.mark.kernel

REAL = pytest.param(claude, id="claude", marks=[pytest.mark.extra, pytest.mark.long])
ASK = """\
import subprocess
def ask(prompt):
    command = [*{command!r}, "-p", prompt]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    print(done.stdout + done.stderr)
"""
ACCOUNT = "0f7b5a4e-1111-4c6d-9a51-2b9d6f0c7e11"


@pytest.fixture(params=[pytest.param(stand_in, id="stand-in"), REAL])
def command(request, provider, tmp_path, monkeypatch):
    """The command of the program, which uses a tool; nothing of the user's is read by it."""
    provider.call = ("Bash", ['{"command": "echo of the ', 'tool", "description": "Say it"}'])
    for name in [name for name in os.environ if name.startswith("CLAUDE")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # what passes the tape by fails
    monkeypatch.setenv("STAND_IN_ACCOUNT", ACCOUNT)
    move(monkeypatch, tmp_path / "first", "1" * 64)
    return request.param()


def move(monkeypatch, home, device):
    """Let the program run on another machine."""
    home.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    monkeypatch.setenv("STAND_IN_DEVICE", device)


def start_folder(folder, text):
    """Make a folder with a git repository of one commit."""
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text(text)
    for line in ("init -q .", "add .", f"-c user.name=a -c user.email=a@b.c commit -qm {text}"):
        subprocess.run(["git", *line.split()], cwd=folder, check=True, timeout=30)
    return folder


def test_claude_code_is_replayed_elsewhere_on_another_day(
    command, provider, tmp_path, monkeypatch, homes
):
    first = start_folder(next(homes) / "here", "one")
    path = write(first / "n.ipynb", TAPE, ASK.format(command=command), "ask('Call the tool.')")
    outcome = record(path)
    assert "Hello from the server." in printed(outcome)[-1]
    assert len(provider.asked) == len(taped(path)) == 2
    assert all(map(is_intact, taped(path)))
    assert [run.prompt.strip() for run in runs(path)] == ["Call the tool.", "of the tool"]
    results = [e["content"] for r in taped(path) for e in r["events"] if e["type"] == "result"]
    assert [text.strip() for text in results] == ["of the tool"]
    provider.server.close()
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "STAND_IN_ACCOUNT"):
        monkeypatch.delenv(name)
    move(monkeypatch, tmp_path / "second", "2" * 64)
    monkeypatch.setenv("STAND_IN_DAY", "2027-07-03")
    monkeypatch.setenv("SHELL", "/bin/other")
    for name, value in moved_clock(tmp_path).items():
        monkeypatch.setenv(name, value)
    other = start_folder(next(homes) / "elsewhere" / "here", "two") / "n.ipynb"
    other.write_text(path.read_text())
    assert not [p.text for p in check_notebook(other).problems]
    again = execute_notebook(other, ExecutionOptions(rerun="replay"))
    assert "Hello from the server." in printed(again)[-1]
    line = json.dumps(again.notebook.cells[2], ensure_ascii=False)
    assert "2 model calls" in line
    assert "22 in, 14 out" in line
    assert "replayed" in line


def test_the_ids_of_device_and_account_are_sent_and_not_stored(command, provider, homes):
    path = write(next(homes).with_suffix(".ipynb"), TAPE, ASK.format(command=command), "ask('hi')")
    record(path)
    sent = json.loads(provider.server.asked[0].body["metadata"]["user_id"])
    assert len(sent["device_id"]) == 64
    text = path.read_text()
    assert sent["device_id"] not in text
    assert ACCOUNT not in text
    assert "[redacted device_id]" in text


@pytest.mark.long  # test_packed has conversations of many requests
def test_what_requests_repeat_is_stored_once(command, provider, homes):
    path = write(next(homes).with_suffix(".ipynb"), TAPE, ASK.format(command=command), "ask('one')")
    record(path)
    change(path, 2, "for n in range(3):\n    ask(f'number {n}')")
    record(path)
    assert len(taped(path)) == 8
    body, text = provider.server.asked[0].body, path.read_text()
    texts = [part["text"] for part in body["system"]] + [t["description"] for t in body["tools"]]
    middles = [json.dumps(t[1000:1800], ensure_ascii=False)[1:-1] for t in texts if len(t) > 3_000]
    assert middles
    assert [text.count(middle) for middle in middles] == [1] * len(middles)
    assert len(text) < 4 * len(json.dumps(body))


def test_the_program_says_that_the_budget_is_used_up(command, provider, homes, monkeypatch):
    config = next(homes).with_suffix(".toml")
    config.write_text('[prices."anthropic/claude*"]\ninput = 1.0\noutput = 99999.0\n')
    monkeypatch.setenv("AGENT_NB_CONFIG", str(config))
    path = config.with_suffix(".ipynb")
    cell = "ask('hi')\nask('you')"
    write(path, TAPE + " --budget 0.5", ASK.format(command=command), cell)
    provider.call = None
    outcome = record(path)
    assert "Hello from the server." in printed(outcome)[-1]
    assert "429" in printed(outcome)[-1]
    assert "budget of $0.50 is used up" in printed(outcome)[-1]
    assert len(taped(path)) == len(provider.asked) == 1


def test_another_version_of_the_program_is_named(provider, homes, monkeypatch):
    path = write(
        next(homes).with_suffix(".ipynb"), TAPE, ASK.format(command=stand_in()), "ask('hi')"
    )
    record(path)
    monkeypatch.setenv("STAND_IN_VERSION", "2.2.0")
    (problem, *_) = check_notebook(path).problems
    assert "Claude Code was 2.1.332 and is 2.2.0." in problem.text


def test_an_own_text_of_the_user_about_a_system_counts(provider, homes):
    path = write(
        next(homes).with_suffix(".ipynb"),
        TAPE,
        ASK.format(command=stand_in()),
        "ask('Platform: a')",
    )
    record(path)
    change(path, 2, "ask('Platform: b')")
    assert "differs from the recorded request" in check_notebook(path).problems[0].text
