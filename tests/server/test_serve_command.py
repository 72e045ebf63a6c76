"""`jupyter agent-nb serve` as a real process: started, asked, followed, stopped by signals, started
again.
"""

import asyncio
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from typing import get_type_hints

import httpx
import pytest
from helpers.lacking import lacking
from helpers.marks import starts
from helpers.paths import CHECKOUT, python_path
from helpers.waiting import wait

from agent_nb import Agent, Scripted
from agent_nb.cli.main import main
from agent_nb.errors import UsageError
from agent_nb.external import server_notes
from agent_nb.external.attached_run import attach
from agent_nb.external.connect import Backoff
from agent_nb.server.agents import Agents
from agent_nb.server.store import Store
from agent_nb.server.toolfile import load_tools

QUICK = Backoff(first_wait=0.01, longest_wait=0.1, patience=60, missing=0.5)
TOOLS = '''
from agent_nb import tool

@tool(effect="outside")
def touch(name: str) -> str:
    """Touch a thing."""
    return f"touched {name}"

def helper():
    """Not a tool."""
'''
ASK = 'turns:\n- text: \'<execute>[{"name": "touch", "args": {"name": "a"}}]</execute>\'\n- text: Done.\n'
SLOW = "turns:\n- chunks: ['One.', ' Two.', ' Three.']\n  delay: 600\n"


class Process:
    """A server process and what it printed before it was ready."""

    def __init__(self, folder, *arguments, **env):
        environment = {k: v for k, v in os.environ.items() if k != "AGENT_NB_TOKEN"}
        path = python_path()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "agent_nb", "serve", "--keep-alive", "0", *arguments],
            cwd=folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                **environment,
                "PYTHONPATH": path,
                "XDG_STATE_HOME": str(folder / "state"),
                "HOME": str(folder),
                **env,
            },
        )
        self.said = []
        for line in self._process.stdout:
            self.said.append(line)
            if line.startswith("stop:"):
                break
        self.url = self.said[0].split()[-1] if self.said else ""

    def client(self, token):
        return httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            trust_env=False,
            timeout=60,
        )

    def end(self, number=signal.SIGTERM):
        """Send a signal and return (exit code, all output)."""
        self._process.send_signal(number)
        out, err = self._process.communicate(timeout=60)
        return self._process.returncode, "".join(self.said) + out + err

    def close(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture
def folder(tmp_path):
    """Return a folder with two scripts, a file of tools and a token."""
    (tmp_path / "ask.yaml").write_text(ASK)
    (tmp_path / "slow.yaml").write_text(SLOW)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "token").write_text("a-token-of-a-file\n")
    return tmp_path


@pytest.fixture
@starts("slow")
def serve(folder):
    """Start a server process in the folder; it is ended with the test."""
    made = []

    def serve(*arguments, port="0", **env):
        made.append(Process(folder, "--port", port, *arguments, **env))
        return made[-1]

    yield serve
    for process in made:
        process.close()


TOKEN = "a-token-of-a-file"


def test_an_agent_is_asked_answers_over_http_and_curl_shows_it_live(serve):
    server = serve("--model", "scripted/ask.yaml", "--tools", "tools.py", "--token-file", "token")
    curl = shutil.which("curl")
    if curl is None:
        lacking("curl is not here")
    with server.client(TOKEN) as http:
        run = http.post("/runs", json={"message": "Touch a."}).json()["run"]
        command = [
            curl,
            "-sN",
            "--noproxy",
            "*",
            "-H",
            f"Authorization: Bearer {TOKEN}",
            f"{server.url}/runs/{run}/events",
        ]
        seen = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if not line.startswith("data: "):
                    continue
                event = json.loads(line[6:])
                seen.append(event["type"])
                if event["type"] == "approval" and event.get("stage", "requested") == "requested":
                    answer = http.post(
                        f"/runs/{run}/approvals/{event['call_id']}", json={"decision": "allow"}
                    )
                    assert answer.status_code == 200
            assert process.wait(60) == 0
        assert [t for t in seen if t in ("approval", "result", "respond", "end")] == [
            "approval",
            "approval",
            "result",
            "respond",
            "end",
        ]
        assert http.get(f"/runs/{run}").json()["status"] == "ok"
    code, said = server.end()
    assert (code, TOKEN in said) == (0, False)
    assert "token: in token" in said


def finished(http, run):
    """Return the events of a run at its end."""
    text = http.get(f"/runs/{run}/events", headers={"Accept": "application/x-ndjson"}).text
    return [json.loads(line) for line in text.splitlines() if line.strip()]


@pytest.mark.few(1)
@pytest.mark.parametrize("edited", ["a", "secret"])
def test_arguments_edited_over_http_are_judged_and_only_a_denial_counts(serve, tmp_path, edited):
    (tmp_path / "p.yaml").write_text(
        "rules: [{deny: touch, args: {name: 'secret*'}, reason: never}, {ask: touch}]"
    )
    server = serve(
        "--model",
        "scripted/ask.yaml",
        "--tools",
        "tools.py",
        "--token-file",
        "token",
        "--approve",
        "p.yaml",
    )
    with server.client(TOKEN) as http:
        run = http.post("/runs", json={"message": "Touch a."}).json()["run"]
        with http.stream(
            "GET", f"/runs/{run}/events", headers={"Accept": "application/x-ndjson"}
        ) as events:
            asked = next(
                e
                for line in events.iter_lines()
                if line.strip() and (e := json.loads(line))["type"] == "approval"
            )
        answer = {"decision": "allow", "args": {"name": edited}}
        assert (
            http.post(f"/runs/{run}/approvals/{asked['call_id']}", json=answer).status_code == 200
        )
        events = finished(http, run)
    result = next(e for e in events if e["type"] == "result")
    if edited == "a":
        assert (result.get("status", "ok"), result["content"]) == ("ok", "touched a")
    else:
        said = "Not run: the policy denies it with the edited arguments (never; p.yaml, line 1)."
        assert (result["status"], result["content"]) == ("denied", said)
    assert [e.get("stage", "requested") for e in events if e["type"] == "approval"] == [
        "requested",
        "decided",
    ]


def test_a_policy_named_on_the_command_line_is_the_users_word(serve, tmp_path):
    (tmp_path / "p.yaml").write_text("rules: [{allow: touch}]")
    server = serve(
        "--model",
        "scripted/ask.yaml",
        "--tools",
        "tools.py",
        "--token-file",
        "token",
        "--approve",
        "p.yaml",
    )
    with server.client(TOKEN) as http:
        run = http.post("/runs", json={"message": "Touch a."}).json()["run"]
        assert [e["content"] for e in finished(http, run) if e["type"] == "result"] == ["touched a"]


@pytest.fixture
def refused(folder, monkeypatch, capsys):
    """Return what the command says that ends before its server starts, in this process."""
    monkeypatch.chdir(folder)

    def refused(*arguments):
        assert main(["serve", "--port", "0", *arguments]) == 2
        return capsys.readouterr().err

    return refused


def test_a_policy_that_names_no_tool_is_refused_before_the_server_starts(refused, tmp_path):
    (tmp_path / "p.yaml").write_text("rules: [{deny: tuch}]")
    said = refused(
        "--model",
        "scripted/ask.yaml",
        "--tools",
        "tools.py",
        "--token-file",
        "token",
        "--approve",
        "p.yaml",
    )
    assert (
        "p.yaml, line 1: there is no tool 'tuch', so this rule restricts nothing. Did you mean 'touch'?"
        in said
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_runs_and_streams_properly(number, serve):
    server = serve("--model", "scripted/slow.yaml", "--token-file", "token")
    with server.client(TOKEN) as http:
        run = http.post("/runs", json={"message": "Go."}).json()["run"]
        with http.stream(
            "GET", f"/runs/{run}/events", headers={"Accept": "application/x-ndjson"}
        ) as answer:
            lines = answer.iter_lines()
            assert json.loads(next(lines))["type"] == "run_start"
            ending = []
            thread = threading.Thread(target=lambda: ending.append(server.end(number)))
            thread.start()
            # a stream that is cut would raise
            types = [json.loads(line)["type"] for line in lines if line.strip()]
            thread.join()
    assert types[-2:] == ["interrupt", "end"]
    assert ending[0][0] == 0
    assert "Traceback" not in ending[0][1]


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_a_restart_broke_is_followed_to_its_end_exactly_once(number, serve, free_port):
    options = ("--model", "scripted/slow.yaml", "--token-file", "token", "--keep", "runs")
    server = serve(*options, port=str(free_port))
    with server.client(TOKEN) as http:
        run = http.post("/runs", json={"message": "Go."}).json()["run"]

    async def follow():
        attached = attach(f"{server.url}/runs/{run}", TOKEN, backoff=QUICK)
        restarted = None
        async for event in attached:
            if event.type == "node" and restarted is None:
                await asyncio.to_thread(server.end, number)
                restarted = await asyncio.to_thread(lambda: serve(*options, port=str(free_port)))
        return attached, restarted

    attached, again = asyncio.run(asyncio.wait_for(follow(), 100))
    with again.client(TOKEN) as http:
        text = http.get(
            f"/runs/{run}/events",
            params={"internal": "1", "deltas": "0"},
            headers={"Accept": "application/x-ndjson"},
        ).text
    assert attached.log.to_ndjson() == text
    assert [e.type for e in attached.log][-2:] == ["interrupt", "end"]


def test_the_runs_of_a_notebook_are_published_and_none_is_started(serve):
    server = serve(
        "--notebook", str(CHECKOUT / "examples" / "scripted.ipynb"), "--token-file", "token"
    )
    with server.client(TOKEN) as http:
        runs = http.get("/runs").json()["runs"]
        assert {r["status"] for r in runs} >= {"ok"}
        assert http.get(f"/runs/{runs[0]['run']}/events").text.count("data: ") > 3
        assert http.post("/runs", json={"message": "hi"}).status_code == 405


def test_a_notebook_without_runs_is_refused_whatever_runs_are_kept(tmp_path):
    from types import SimpleNamespace

    from agent_nb.cli.serve import _publish_notebooks
    from agent_nb.errors import UsageError

    empty = tmp_path / "n.ipynb"
    empty.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    hub = SimpleNamespace(runs=lambda: [SimpleNamespace(run="kept")], attach=None)
    with pytest.raises(UsageError, match="hold no recorded run"):
        _publish_notebooks(SimpleNamespace(notebook=[str(empty)]), hub)


def test_the_token_is_made_left_for_the_user_and_never_printed(serve, tmp_path):
    server = serve("--model", "scripted/slow.yaml", "--cors", "https://page.example")
    (note,) = (tmp_path / "state").rglob("*.json")
    token = json.loads(note.read_text())["token"]
    with server.client(token) as http:
        assert http.get("/runs").json() == {"runs": []}
        answer = http.get("/health", headers={"Origin": "https://page.example"})
        assert answer.headers["access-control-allow-origin"] == "https://page.example"
    with server.client("wrong-token") as http:
        assert http.get("/runs").status_code == 401
    code, said = server.end()
    assert (code, token in said, "~/state" in said) == (0, False, True)
    assert not note.exists()


def test_the_token_of_the_environment_counts(serve):
    server = serve("--model", "scripted/slow.yaml", AGENT_NB_TOKEN="from-the-environment")
    with server.client("from-the-environment") as http:
        assert http.get("/runs").status_code == 200
    assert "in AGENT_NB_TOKEN" in "".join(server.said)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tools", "none.py", "--model", "scripted/x"], "no Python file none.py"),
        (["--token", "short", "--model", "scripted/ask.yaml"], "too short"),
        (["--notebook", "none.ipynb"], "File not found: none.ipynb"),
        (["--model", "nobody/x"], "nobody"),
        (["--token-file", "/nowhere/at/all", "--model", "scripted/ask.yaml"], "cannot be written"),
        (["--port", "70000", "--model", "scripted/ask.yaml"], "Cannot listen at 127.0.0.1:70000"),
    ],
)
def test_what_is_wrong_with_the_command_is_said(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ask.yaml").write_text(ASK)
    assert main(["serve", "--port", "0", *arguments]) == 2
    assert words in capsys.readouterr().err


# The parts.


def test_a_file_gives_its_marked_tools_or_else_its_functions(tmp_path):
    (tmp_path / "marked.py").write_text(TOOLS)
    (tmp_path / "plain.py").write_text(
        "from json import loads\ndef add(a: int) -> int:\n    'Add.'\n    return a\ndef _own(): pass\n"
    )
    (tmp_path / "bad.py").write_text("1 / 0")
    (tmp_path / "none.py").write_text("x = 1")
    assert [t.tool.name for t in load_tools([str(tmp_path / "marked.py")])] == ["touch"]
    assert [t.__name__ for t in load_tools([str(tmp_path / "plain.py")])] == ["add"]
    assert load_tools(["files, python", "shell"]) == ["files", "python", "shell"]
    for name, words in (("bad", "ZeroDivisionError"), ("none", "no tools")):
        with pytest.raises(UsageError, match=words):
            load_tools([str(tmp_path / f"{name}.py")])


def test_a_file_with_a_dataclass_of_quoted_types_gives_its_functions(tmp_path):
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n"
    for folder, name in (("one", "first"), ("two", "second")):
        (tmp_path / folder).mkdir()
        code = f"{text}def {name}(point: Point) -> int:\n    'Give x.'\n    return point.x\n"
        (tmp_path / folder / "points.py").write_text(code)
    first, second = load_tools([str(tmp_path / each / "points.py") for each in ("one", "two")])
    assert (first.__name__, second.__name__) == ("first", "second")
    assert [get_type_hints(each)["point"].__name__ for each in (first, second)] == ["Point"] * 2
    assert get_type_hints(first)["point"] is not get_type_hints(second)["point"]


def test_a_token_file_is_made_for_the_user_alone_and_read_again(tmp_path):
    from agent_nb.cli.serve import read_token

    token = read_token(tmp_path / "new")
    assert read_token(tmp_path / "new") == token
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_a_conversation_goes_on_and_has_one_run_at_a_time():
    async def main():
        agents = Agents(Agent(Scripted([{"chunks": ["a", "b"], "delay": 600}])))
        first = await agents("one", "c")
        with pytest.raises(UsageError, match="goes on"):
            await agents("two", "c")
        await agents("alone", "")
        await agents.stop()
        assert first.log.ended
        second = Agents(Agent(Scripted(["Yes."])))
        await second("one", "c")
        await second._streams[-1]
        launched = await second("two", "c")
        await second._streams[-1]
        return launched.log

    log = wait(main)
    assert [e.data["messages"] for e in log.of("node") if e.phase == "enter"] == [4]


def test_a_server_that_stops_ends_runs_begun_meanwhile(monkeypatch):
    async def begin_and_fail():
        begun.append(await agents("two", ""))
        raise OSError("no")

    async def close():
        closed.append(begun[0].log.ended)

    async def main():
        await agents("one", "")
        monkeypatch.setattr(agents._streams[0], "aclose", begin_and_fail)
        monkeypatch.setattr(agent, "aclose", close)
        await agents.stop()

    begun, closed, agent = [], [], Agent(Scripted([{"chunks": ["a", "b"], "delay": 600}]))
    agents = Agents(agent)
    wait(main)
    assert closed == [True]


def test_a_run_that_does_not_stop_keeps_no_other_from_its_end(monkeypatch):
    async def main():
        agents = Agents(Agent(Scripted([{"chunks": ["a", "b"], "delay": 600}])))
        _, other = await agents("one", ""), await agents("two", "")
        stuck, stopped = agents._streams
        monkeypatch.setattr(stuck, "aclose", asyncio.Event().wait)
        stopping = asyncio.ensure_future(agents.stop())
        await stopped
        stopping.cancel()
        assert other.log.ended

    wait(main)


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        Store(tmp_path / "file" / "runs")


@pytest.mark.long
@pytest.mark.extra
def test_a_server_serves_and_answers_the_runs_of_a_kernel_through_redis(
    serve, redis_server, monkeypatch, tmp_path
):
    monkeypatch.setattr(server_notes, "notes_folder", lambda: tmp_path / "servers")
    monkeypatch.setenv("AGENT_NB_HUB_KEY", "a key that both machines have")
    monkeypatch.setenv("AGENT_NB_HUB", redis_server.url)
    script = tmp_path / "kernel.py"
    script.write_text(KERNEL)
    server = serve("--token-file", "token")
    assert f"over redis://127.0.0.1:{redis_server.port}/0" in "".join(server.said)
    kernel = subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": python_path(), "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        run = kernel.stdout.readline().strip()

        async def follow():
            attached = attach(f"{server.url}/runs/{run}", TOKEN, backoff=QUICK)
            async for event in attached:
                if event.type == "approval" and event.stage == "requested":
                    await attached.approve(event.call_id, allow=True, args={"name": "b"})
            return attached.log

        log = wait(follow, 60)
        said = json.loads(kernel.stdout.readline())
    finally:
        kernel.communicate("", timeout=30)
    assert [e.content for e in log.of("result")] == ["touched b"]
    assert said == log.to_ndjson()
    with server.client(TOKEN) as http:
        assert http.get("/runs").json()["runs"][-1]["status"] == "ok"
        assert http.post("/runs", json={"message": "x"}).status_code == 405
    code, out = server.end()
    assert code == 0
    assert "prefix" not in out


KERNEL = """
import asyncio, json
import agent_nb
from agent_nb.agent import REGISTRY

@agent_nb.tool(effect="outside")
def touch(name: str) -> str:
    "Touch a thing."
    return f"touched {name}"

async def main():
    with agent_nb.serve() as serving:
        call = '<execute>[{"name": "touch", "args": {"name": "a"}}]</execute>'
        stream = agent_nb.Agent(agent_nb.Scripted([call, "Done."]), tools=[touch])("go")
        kept = REGISTRY.announce(stream.log, questions=stream.questions, cancel=stream.stop)
        print(stream.log.run, flush=True)
        while not serving._hub.listeners(stream.log.run):
            await asyncio.sleep(0.01)
        run = await stream
        print(json.dumps(run.log.to_ndjson()), flush=True)

asyncio.run(main())
"""


def test_a_script_that_needs_another_dialect_is_refused_before_the_start(refused, tmp_path):
    (tmp_path / "native.yaml").write_text("turns: [{calls: [{name: touch, args: {name: a}}]}]")
    said = refused("--model", "scripted/native.yaml", "--tools", "tools.py")
    assert "`calls:`, which only the dialect native has" in said
    assert "serve --dialect native" in said


def test_a_conversation_whose_run_goes_on_is_not_forgotten(monkeypatch):
    monkeypatch.setattr("agent_nb.server.agents.CONVERSATIONS", 1)

    async def main():
        agents = Agents(Agent(Scripted([{"chunks": ["a", "b"], "delay": 600}])))
        await agents("one", "busy")
        await agents("two", "other")
        with pytest.raises(UsageError, match="goes on"):
            await agents("three", "busy")
        await agents.stop()
        await agents("four", "other")
        assert list(agents._turns) == ["other"]
        await agents.stop()

    wait(main)
