"""Cells of a real kernel behind `agent_nb.serve()`: followed, stopped and answered from another
process.
"""

import json
import threading

import httpx
import pytest

pytestmark = pytest.mark.kernel

STOPPED = "agent: stopped (from elsewhere); what is queued behind this cell does not run"

SETUP = """
%load_ext agent_nb
import agent_nb, sys
from agent_nb import Scripted, tool
server = agent_nb.serve(keepalive=0)

@tool(effect="outside")
def touch(name: str) -> str:
    "Touch a thing."
    return f"touched {name}"

ask = Scripted(['<execute>[{"name": "touch", "args": {"name": "a"}}]</execute>', "Done."])
slow = Scripted([{"chunks": ["One ", "two."], "delay": 100}])
quick = Scripted(["Hello."])
print(server.url, server.token)
"""


@pytest.fixture
def http(kernel):
    """A client of the server in the kernel."""
    status, said, _ = kernel.run(SETUP)
    assert status == "ok", said
    url, token = said.split()[-2:]
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=60
    ) as client:
        yield client
    kernel.run("server.stop()")


def newest(http, status):
    """Return the newest run of a status, waiting for it."""
    while True:
        runs = [
            info["run"] for info in http.get("/runs").json()["runs"] if info["status"] == status
        ]
        if runs:
            return runs[-1]


def events(http, run):
    """Yield the events of a run as they come."""
    with http.stream(
        "GET", f"/runs/{run}/events", headers={"Accept": "application/x-ndjson"}
    ) as answer:
        for line in answer.iter_lines():
            if line.strip():
                yield json.loads(line)


def test_a_cell_that_ran_before_and_one_that_runs_now_are_published(kernel, http):
    kernel.run("%%agent -m quick --context none\nhi", cell="one")
    run = newest(http, "ok")
    assert [e["type"] for e in events(http, run) if e["type"] not in ("delta", "metric")] == [
        "run_start",
        "user",
        "respond",
        "end",
    ]
    info = http.get(f"/runs/{run}").json()
    assert (info["prompt"], info["conversation"]) == ("hi", "main")


def test_a_cell_is_stopped_from_elsewhere_and_the_next_one_works(kernel, http):
    request = kernel.send("%%agent -m slow\nhi", cell="slow")
    run = newest(http, "running")
    assert http.post(f"/runs/{run}/cancel").status_code == 202
    assert kernel.finish(request)[:2] == ("error", STOPPED)
    last = list(events(http, run))
    assert [(e["type"], e.get("detail")) for e in last[-2:]] == [
        ("interrupt", "from elsewhere"),
        ("end", None),
    ]
    assert kernel.run("print(_agent.status)")[1].strip() == "interrupted"


def answered(http):
    """Wait for the question of the running cell and allow it with other arguments."""
    run = newest(http, "running")
    for event in events(http, run):
        if event["type"] == "approval" and event.get("stage", "requested") == "requested":
            body = {"decision": "allow", "args": {"name": "b"}}
            assert (
                http.post(f"/runs/{run}/approvals/{event['call_id']}", json=body).status_code == 200
            )
            return


@pytest.mark.parametrize(
    "front_end", [{"cell": "ask", "stdin": True}, {"stdin": True}], ids=["notebook", "console"]
)
def test_the_question_of_a_cell_is_answered_from_elsewhere(front_end, kernel, http):
    request = kernel.send("%%agent -m ask -t touch\ntouch a", **front_end)
    answering = threading.Thread(target=answered, args=(http,), daemon=True)
    answering.start()
    status, said, _ = kernel.finish(request)
    answering.join(60)
    assert status == "ok", said
    status, said, _ = kernel.run(
        "print([e.content for e in _agent.log.of('result')], _agent.log.of('approval')[1].by)"
    )
    assert said.strip() == "['touched b'] remote"
    assert kernel.run("print(6 * 7)")[1].strip() == "42"


def test_an_awaited_agent_is_published_and_stopped(kernel, http):
    request = kernel.send("await agent_nb.Agent(slow)('hi')")
    run = newest(http, "running")
    http.post(f"/runs/{run}/cancel")
    assert kernel.finish(request)[:2] == ("error", STOPPED)
    assert kernel.run("print(_agent.id, _agent.status)")[1].split() == [run, "interrupted"]


def test_the_handle_in_an_output_holds_no_token(kernel, http):
    _, _, shown = kernel.run("display(server)")
    token = http.headers["authorization"].split()[1]
    assert str(http.base_url).rstrip("/") in str(shown)
    assert token not in str(shown)
