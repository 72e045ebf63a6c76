"""`agent_nb.serve()`: the runs of this process for others to follow, stop and answer; nothing
secret in what it shows.
"""

import asyncio
import gc
import json
import os
import stat
import subprocess
import sys
import threading

import httpx
import pytest
from helpers.scripts import calling

import agent_nb
from agent_nb import Agent, Scripted, tool
from agent_nb.agent import REGISTRY, Announced, Questions
from agent_nb.errors import UsageError
from agent_nb.external import server_notes
from agent_nb.external.attached_run import attach
from agent_nb.server import serve
from agent_nb.server.hub import Hub

LOOM = {"format": "loom"}
SLOW = [{"chunks": ["One ", "two"], "delay": 60}]
CALL = calling("touch", name="a")


@tool(effect="outside")
def touch(name: str) -> str:
    """Touch a thing."""
    return f"touched {name}"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """A state folder of the test's own, and no server left behind."""
    gc.collect()  # runs of other tests that nobody holds
    monkeypatch.setattr(server_notes, "notes_folder", lambda: tmp_path / "servers")
    yield tmp_path / "servers"
    if serve._current.serving is not None:
        serve._current.serving.stop()


@pytest.fixture
def serving():
    return agent_nb.serve(keepalive=0)


def client(serving):
    return httpx.Client(
        base_url=serving.url,
        headers={"Authorization": f"Bearer {serving.token}"},
        trust_env=False,
        timeout=30,
    )


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 30))


async def run_of(*turns, **options):
    return await Agent(Scripted(list(turns)), **options)("hi")


# What is published.


def test_a_run_is_published_from_its_first_event_to_its_last(serving):
    done = run(run_of("Hello."))
    with client(serving) as http:
        text = http.get(
            f"/runs/{done.id}/events",
            params={"internal": "1", "deltas": "0"},
            headers={"Accept": "application/x-ndjson"},
        ).text
    assert text == done.log.to_ndjson()


def test_an_ended_run_is_published_as_long_as_it_is_referenced():
    held, lost = run(run_of("one")), run(run_of("two"))
    name = lost.id
    del lost
    gc.collect()
    runs = agent_nb.serve(keepalive=0).runs
    assert held.id in runs
    assert name not in runs


def test_recorded_runs_are_published_where_asked():
    log = agent_nb.EventLog.from_ndjson(run(run_of("old")).log.to_ndjson())
    serving = agent_nb.serve(keepalive=0)
    name = f"{log.run}x"
    log.run = name
    serving.add([agent_nb.Run(log)])
    assert name in serving.runs


def test_a_replay_of_a_published_run_is_the_same_run(serving):
    done = run(run_of("Hello."))
    again = agent_nb.EventLog.from_ndjson(done.log.to_ndjson())
    found = Announced(again, "", Questions(), None)
    serving._publish(found)
    assert serving.runs.count(done.id) == 1


def test_a_run_is_followed_while_it_goes_on_and_stopped_from_elsewhere(serving):
    async def main():
        stream = Agent(Scripted(SLOW))("hi").start()
        attached = attach(f"{serving.url}/runs/{stream.log.run}", serving.token)
        async for event in attached:
            if event.type == "node" and event.phase == "enter":
                await attached.cancel()
        return attached.run, await stream

    seen, ran = run(main())
    assert (seen.status, ran.status, seen.answer) == ("interrupted", "interrupted", ran.answer)
    assert list(seen.log) == list(ran.log)


def test_a_question_is_answered_by_whoever_follows(serving):
    async def main():
        stream = Agent(Scripted([CALL, "Done."]), tools=[touch])("go")
        attached = attach(f"{serving.url}/runs/{stream.log.run}", serving.token)
        answered = asyncio.create_task(_approve(attached))
        while not serving._hub.listeners(stream.log.run):
            stream._announced = stream._announced or REGISTRY.announce(
                stream.log, questions=stream.questions, cancel=stream.stop
            )
            await asyncio.sleep(0.01)
        ran = await stream
        await answered
        return ran

    assert [e.content for e in run(main()).log.of("result")] == ["touched b"]


async def _approve(attached):
    async for event in attached:
        if event.type == "approval" and event.stage == "requested":
            await attached.approve(event.call_id, allow=True, args={"name": "b"})


async def _asked_between_two_connections(serving):
    """Let the reader of a run leave just before its question; return the stream when it asks."""
    turns = [{"chunks": [CALL], "delay": 0.3}, "Done."]
    stream = Agent(Scripted(turns), tools=[touch])("go").start()
    while stream.log.run not in serving.runs:
        await asyncio.sleep(0.01)
    serving._hub.subscribe(stream.log.run).close()
    while not stream.log.of("approval"):
        await asyncio.sleep(0.01)
    return stream


def test_a_question_waits_for_a_follower_that_connects_again(serving):
    async def main():
        stream = await _asked_between_two_connections(serving)
        await asyncio.sleep(0.3)
        attached = attach(f"{serving.url}/runs/{stream.log.run}", serving.token)
        await _approve(attached)
        return await stream

    assert [e.content for e in run(main()).log.of("result")] == ["touched b"]


def test_a_question_does_not_wait_for_a_follower_that_stays_away(serving, monkeypatch):
    monkeypatch.setattr(serve, "RETURN", 0.5)

    async def main():
        return await (await _asked_between_two_connections(serving))

    assert [e.status for e in run(main()).log.of("result")] == ["denied"]


def test_without_anybody_who_follows_a_question_is_not_waited_for(serving):
    done = run(run_of(CALL, "Done.", tools=[touch]))
    assert [e.status for e in done.log.of("result")] == ["denied"]


def test_a_run_that_is_over_cannot_be_stopped_or_answered(serving):
    done = run(run_of("Hello."))
    with client(serving) as http:
        assert http.post(f"/runs/{done.id}/cancel").status_code == 409
        assert http.post(
            f"/runs/{done.id}/approvals/c", json={"decision": "allow"}
        ).status_code in (404, 405)


def test_a_fault_of_the_hub_does_not_reach_the_run(serving, monkeypatch):
    monkeypatch.setattr("agent_nb.server.channel.Channel.publish", lambda *_: 1 / 0)
    done = run(run_of("Hello."))
    assert (done.status, done.answer) == ("ok", "Hello.")


def test_an_agent_answers_messages_where_one_is_given():
    serving = agent_nb.serve(agent=Agent(Scripted(["First.", "Second."])), keepalive=0)
    with client(serving) as http:
        text = http.post(
            "/runs", json={"message": "hi", "stream": True}, headers={"Accept": "text/event-stream"}
        ).text
    assert "First." in text


@pytest.mark.parametrize("name", ["conversation", "contextId"])
def test_runs_that_messages_start_keep_their_conversation(name):
    serving = agent_nb.serve(agent=Agent(Scripted(["First.", "Second."])), keepalive=0)
    with client(serving) as http:
        first, second = (
            http.post(
                "/runs", json={"message": "hi", name: "talk", "stream": True}, params=LOOM
            ).text
            for _ in "12"
        )
        known = http.get("/runs").json()["runs"][-2:]
        looopy = http.get(
            f"/runs/{known[-1]['run']}/events", params={"format": "looopy:document"}
        ).text
    assert [info["conversation"] for info in known] == ["talk", "talk"]
    frames = [
        [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        for text in (first, second)
    ]
    assert {frame["session_id"] for frame in [*frames[0], *frames[1]]} == {"talk"}
    ids = [[frame["event_id"] for frame in stream] for stream in frames]
    assert ids[0] == list(range(1, len(ids[0]) + 1))
    assert sorted(ids[1]) == ids[1]
    assert ids[0][-1] < ids[1][0], "event ids are unique over the runs of a session"
    assert '"contextId":"talk"' in looopy.replace(": ", ":")


def test_a_run_that_a_message_started_waits_for_its_answer_unfollowed():
    serving = agent_nb.serve(agent=Agent(Scripted([CALL, "Done."]), [touch]), keepalive=0)
    with client(serving) as http:
        name = http.post("/runs", json={"message": "hi"}).json()["run"]
        url = f"/runs/{name}/approvals/call_1_1"
        # it is not denied while nobody looks
        while http.post(url, json={"decision": "allow"}).status_code != 200:
            assert http.get(f"/runs/{name}").json()["status"] == "running"
        text = http.get(f"/runs/{name}/events").text
    assert "touched a" in text


def test_without_an_agent_no_run_can_be_started(serving):
    with client(serving) as http:
        answer = http.post("/runs", json={"message": "hi"})
    assert (answer.status_code, "starts none" in answer.text) == (405, True)


# The handle.


def test_nothing_that_the_handle_shows_holds_the_token(serving):
    shown = [repr(serving), *serving._repr_mimebundle_().values()]
    assert all(serving.url in text for text in shown)
    assert not any(serving.token in text for text in shown)
    assert "%agent attach" in shown[1]


def test_the_token_is_hidden_from_every_run(serving):
    done = run(run_of(f"The token is {serving.token}."))
    assert serving.token not in done.log.to_ndjson()


def test_the_token_lies_in_a_private_file_and_goes_with_the_server(serving, state):
    (path,) = state.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["token"] == serving.token
    assert server_notes.find_token(serving.url) == serving.token
    serving.stop()
    assert not path.exists()


def test_a_note_of_a_dead_server_is_not_used(state):
    left = server_notes.write_server_note("http://127.0.0.1:1", "t" * 12)
    assert [note.url for note in server_notes.list_servers()] == ["http://127.0.0.1:1"]
    text = left.path.read_bytes()
    left.close()
    (state / "127-0-0-1-1.json").write_bytes(text)
    (state / "odd.json").write_text("{")
    assert server_notes.list_servers() == []


def test_a_folder_that_cannot_be_written_is_no_reason_not_to_serve(state, monkeypatch):
    state.write_text("a file")
    serving = agent_nb.serve(keepalive=0)
    assert "server.token" in serving._repr_mimebundle_()["text/plain"]
    assert serving.token not in serving._repr_mimebundle_()["text/plain"]


def test_asking_again_gives_the_same_server_another_one_stops_it(serving):
    assert agent_nb.serve(keepalive=0) is serving
    other = agent_nb.serve(keepalive=5)
    assert (serving.running, other.running) == (False, True)
    assert repr(serving).endswith("stopped>")


def test_stopping_ends_streams_properly_and_leaves_the_runs(serving):
    async def main():
        stream = Agent(Scripted(SLOW))("hi").start()
        url = f"{serving.url}/runs/{stream.log.run}/events"
        auth = {"Authorization": f"Bearer {serving.token}"}
        async with (
            httpx.AsyncClient(headers=auth, trust_env=False) as http,
            http.stream("GET", url) as answer,
        ):
            lines = answer.aiter_lines()
            await anext(lines)
            stopping = threading.Thread(target=serving.stop)
            stopping.start()
            async for _ in lines:  # a stream that is cut would raise
                pass
        await asyncio.to_thread(stopping.join)
        assert not stream.log.ended
        await stream.aclose()

    run(main())


def test_stopping_ends_the_runs_of_messages_before_their_streams():
    serving = agent_nb.serve(agent=Agent(Scripted(SLOW)), keepalive=0)
    message = {"message": "hi", "stream": True}
    with client(serving) as http, http.stream("POST", "/runs", json=message) as answer:
        lines = answer.iter_lines()
        next(lines)
        stopping = threading.Thread(target=serving.stop)
        stopping.start()
        text = "".join(lines)
    stopping.join()
    assert '"type":"end"' in text


def test_stopping_leaves_the_model_of_the_agent_open(monkeypatch):
    async def close(model):
        closed.append(model)

    closed = []
    monkeypatch.setattr(Scripted, "aclose", close)
    agent = Agent(Scripted(["First."]))
    with agent_nb.serve(agent=agent, keepalive=0) as serving, client(serving) as http:
        assert "First." in http.post("/runs", json={"message": "hi", "stream": True}).text
    assert closed == []


def test_it_is_a_context_manager():
    with agent_nb.serve(keepalive=0) as serving:
        assert serving.running
    assert not serving.running


def test_a_server_that_cannot_start_stops_its_hub(monkeypatch):
    hub, stopped = Hub(), []
    monkeypatch.setattr(hub, "stop", lambda: stopped.append(True))
    monkeypatch.setattr(serve, "open_hub", lambda store: hub)
    with pytest.raises(UsageError, match="Cannot listen"):
        agent_nb.serve(port=70_000)
    assert stopped == [True]


def test_a_token_that_is_too_short_is_refused():
    with pytest.raises(UsageError, match="too short"):
        agent_nb.serve(token="short")


@pytest.mark.slow
def test_without_the_extra_the_install_line_is_named():
    code = "import sys; sys.modules['uvicorn'] = None\nimport agent_nb\ntry: agent_nb.serve()\nexcept Exception as fault: print(fault)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "pip install 'jupyter-agent-nb[serve]'" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="without fork")
def test_a_forked_process_leaves_the_server_alone(serving, state):
    runs = serving.runs
    child = os.fork()
    if not child:
        try:
            was_running = serving.running
            serving.stop()  # as at the end of a process
            run(run_of("Hi."))
            os._exit(1 if was_running or serving.runs != runs else 0)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert server_notes.find_token(serving.url) == serving.token
    with client(serving) as http:
        assert http.get("/health").json() == {"status": "ok"}
