"""The shell tool: output as it comes, an environment without keys, and nothing left running."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.tool_calls import Record

from agent_nb.tools.approval import Approver
from agent_nb.tools.base import Outcome, ToolContext
from agent_nb.tools.policy import Policy
from agent_nb.tools.runner import ToolRunner
from agent_nb.tools.running_call import Job
from agent_nb.tools.shell import drop_secrets, shell
from agent_nb.tools.toolset import Toolset

Run = Callable[..., Any]
shell_module = sys.modules[shell.__module__]


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return ToolContext(folder=str(tmp_path))


def gone(pid: int) -> bool:
    """Whether no living process has this id (one that waits to be reaped does not live)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state in "ZX"


def wait_gone(pid: int) -> None:
    waiting = threading.Event()
    for _ in range(2_000):
        if gone(pid):
            return
        waiting.wait(0.01)
    raise AssertionError(f"{pid} is still there")


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("echo hi", "hi\n"),
        ("true", "(no output)"),
        ("echo a; echo b >&2; exit 3", "a\nb\n[exit status 3]"),
        ("printf x; exit 1", "x\n[exit status 1]"),
        ("kill -9 $$", "[killed by signal 9]"),
        ("cat", "(no output)"),
        ("printf '\\303\\244'", "ä"),
        ("printf '\\377'", "\ufffd"),
        ("exec >/dev/null 2>&1; sleep 0.2; exit 3", "[exit status 3]"),
    ],
)
def test_output_and_exit_status_are_the_result(
    context: ToolContext, command: str, content: str
) -> None:
    assert shell(command, context) == Outcome("ok", content)


def test_it_runs_in_the_notebooks_folder(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "here.txt").touch()
    assert shell("ls", context).content == "here.txt\n"


def test_output_is_progress_before_the_command_ends(tmp_path: Path) -> None:
    said: list[str] = []

    def emit(update: Any) -> None:
        said.append(update.text)
        (tmp_path / "go").touch()

    context = ToolContext(folder=str(tmp_path), emit=emit)
    outcome = shell("echo first; while [ ! -e go ]; do sleep 0.01; done; echo second", context)
    assert said[0] == "first\n"
    assert outcome.content == "first\nsecond\n"


def test_long_output_is_bounded(context: ToolContext) -> None:
    content = shell("seq 1 100000", context).content
    assert len(content) < 21_000
    assert content.startswith("1\n2\n")
    assert content.endswith("100000\n")
    assert "characters left out" in content


def test_progress_of_a_flood_is_bounded(tmp_path: Path) -> None:
    said: list[int] = []
    context = ToolContext(folder=str(tmp_path), emit=lambda update: said.append(len(update.text)))
    shell("head -c 5000000 /dev/zero | tr '\\0' x", context)
    assert 1_000_000 <= sum(said) < 1_200_000


def test_background_processes_end_with_the_command(context: ToolContext) -> None:
    content = shell("sleep 1000 & echo $!; (while true; do echo x; done) & exit 0", context).content
    wait_gone(int(content.split()[0]))


def test_a_process_that_left_the_group_does_not_hold_the_result(context: ToolContext) -> None:
    outcome = shell("setsid sleep 2 & echo done", context)
    assert outcome.content == "done\n"


def test_a_process_that_left_the_group_and_prints_on_is_cut_off(context: ToolContext) -> None:
    prints_on = "setsid sh -c 'echo $$; touch left; exec yes' &"
    content = shell(f"{prints_on} while [ ! -e left ]; do sleep 0.01; done", context).content
    wait_gone(int(content.split()[0]))


def test_a_timeout_kills_the_whole_group_and_keeps_the_output(run: Run, tmp_path: Path) -> None:
    call = ("shell", {"command": "echo $$; sleep 1000 | sleep 1000"})
    for limit in (0.5, 2, 8, 40):  # a busy machine starts a shell late
        outcomes, _ = run("shell", call, timeout=limit, folder=str(tmp_path))
        assert outcomes[0].status == "timeout"
        pid = outcomes[0].content.split()[0]
        if pid.isdigit():
            break
    wait_gone(int(pid))


def test_a_stop_kills_the_group_at_once(tmp_path: Path) -> None:
    pids: list[int] = []

    def emit(update: Any) -> None:
        pids.extend(map(int, update.text.split()))
        context.cancel()

    context = ToolContext(folder=str(tmp_path), emit=emit)
    outcome = shell("echo $$; trap '' TERM; sleep 1000", context)
    assert outcome.status == "cancelled"
    assert outcome.content.endswith("\n[stopped]")
    assert gone(pids[0])


def test_a_stopped_command_keeps_its_output_however_late_its_thread_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = shell_module._make_outcome

    def make_late(*arguments: Any) -> Outcome:
        time.sleep(0.4)
        return make(*arguments)

    async def main() -> Record:
        kept = Record()
        allow = Approver(Policy("allow"))
        runner = ToolRunner(Toolset.resolve("shell"), approver=allow, folder=str(tmp_path))
        job = Job("1", "shell", {"command": "echo first; sleep 1000"})
        running = asyncio.create_task(runner.run([job], kept))
        await kept.seen("update")
        running.cancel()
        await asyncio.wait([running])
        return kept

    monkeypatch.setattr(shell_module, "_make_outcome", make_late)
    (outcome,) = asyncio.run(main()).of("end")
    assert (outcome.status, outcome.content) == ("cancelled", "first\n[stopped]")


def test_a_command_that_was_stopped_before_it_began_is_killed(tmp_path: Path) -> None:
    context = ToolContext(folder=str(tmp_path))
    context.cancel()
    assert shell("sleep 1000", context).status == "cancelled"


def test_variables_that_look_like_secrets_are_not_passed_on(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "value-one")
    monkeypatch.setenv("PLAIN", "value-two")
    content = shell("env", context).content
    assert "value-one" not in content
    assert "PLAIN=value-two" in content
    assert "PATH=" in content


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("openai_api_key", "x"),
        ("GITHUB_TOKEN", "x"),
        ("DB_PASSWORD", "x"),
        ("PGPASSWORD", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("SSH_AUTH_SOCK", "x"),
        ("SENTRY_DSN", "x"),
        ("DB_PWD", "x"),
        ("DATABASE_URL", "postgres://u:p@h/db"),
        ("HTTPS_PROXY", "http://user:pw@proxy:80"),
        ("MODEL", "sk-abcdefghijklmnoP1"),
        ("SMTP_PASS", "x"),
        ("AZURE_DEVOPS_EXT_PAT", "x"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("SECRET_KEY_BASE", "x"),
        ("OPENAIKEY", "x"),
        ("APIKEYPROD", "x"),
        ("MYSECRETVALUE", "x"),
        ("dbConnectionString", "x"),
        ("awsAccessKeyId", "x"),
        ("tokenValue", "x"),
        ("SESSIONCOOKIE", "x"),
        ("X_AUTHENTICATION", "x"),
        ("GOOGLE_CREDENTIALSJSON", "x"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/x"),
        ("GROQ", "gsk_abcdefghijklmnop"),
        ("MAIL", "SG.abcdefghijklmnopqrst.uv"),
        ("UPLOAD", "pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAwLTAwMDA"),
        ("PAYMENT", "sk_live_abcdefghijklmnop"),
        ("GOOGLE", "ya29.abcdefghijklmnopqrst"),
        ("JPY_API_TOKEN", "x"),
        ("REDIS", "redis://:pw@h"),
    ],
)
def test_what_counts_as_a_secret_variable(name: str, value: str) -> None:
    assert drop_secrets(
        {name: value, "PATH": "/bin", "PWD": "/x", "HTTP_PROXY": "http://proxy:80"}
    ) == {
        "PATH": "/bin",
        "PWD": "/x",
        "HTTP_PROXY": "http://proxy:80",
    }


def test_variables_with_part_of_the_word_for_a_secret_are_passed_on() -> None:
    names = ("OLDPWD", "KEYBOARD", "MONKEY", "COMPASS", "TOKENIZERS_PARALLELISM", "SSH_ASKPASS")
    assert drop_secrets(dict.fromkeys(names, "x")) == dict.fromkeys(names, "x")


def test_the_author_that_git_writes_is_passed_on() -> None:
    author = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
    assert drop_secrets({**author, "HTTP_AUTHORIZATION": "x", "XAUTHORITY": "x"}) == author


def test_it_is_asked_about_and_names_its_command() -> None:
    tool = Toolset.resolve("shell")["shell"]
    assert (tool.effect, tool.command) == ("outside", "command")


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="waitid")
def test_no_signal_goes_to_an_id_that_another_process_may_have(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill, killed = os.killpg, []

    def kill_reserved(pid: int, number: int) -> None:
        # raises ChildProcessError once the process was waited for, which frees its id
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        killed.append(pid)
        kill(pid, number)

    monkeypatch.setattr(os, "killpg", kill_reserved)
    cancel: list[Callable[[], None]] = []
    monkeypatch.setattr(ToolContext, "on_cancel", lambda _, stop: cancel.append(stop))
    assert shell("sleep 60 & echo hi", context).content == "hi\n"
    cancel[0]()  # a stop that comes too late
    assert killed
