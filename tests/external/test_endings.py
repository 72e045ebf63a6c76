"""How foreign runs end whose stream stops without its end marker."""

import asyncio
import json

import anyio
import pytest
from helpers.codec_io import logs
from helpers.tcp_server import listen

import agent_nb
from agent_nb.events import Approval, Call, End, Respond, RunStart, Settler
from agent_nb.events.log import EventLog
from agent_nb.external.importer import CUT
from agent_nb.host import plugins

# a whole run of each format; its last object is the end marker
RUNS = {
    "looopy": [
        {"kind": "task-created", "taskId": "t", "contextId": "c"},
        {"kind": "content-delta", "taskId": "t", "contextId": "c", "delta": "Hi.", "index": 0},
        {"kind": "content-complete", "taskId": "t", "contextId": "c", "content": "Hi."},
        {"kind": "task-complete", "taskId": "t", "contextId": "c", "content": "Hi."},
    ],
    "agent-event": [
        {"type": "tool_call", "toolName": "ls", "toolArgs": "{}"},
        {"type": "tool_result", "toolName": "ls", "output": "a"},
        {"type": "stream", "content": "Hi."},
        {"type": "thought", "content": "done"},
        {"type": "final"},
    ],
    "ag-ui": [
        {"type": "RUN_STARTED", "runId": "r", "threadId": "t"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi."},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
        {"type": "RUN_FINISHED", "runId": "r", "threadId": "t"},
    ],
    "ui-message": [
        {"type": "start", "messageId": "r"},
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": "Hi."},
        {"type": "text-end", "id": "1"},
        {"type": "finish"},
    ],
}
NODE = {"session_id": "s", "node_id": "n"}
LOOM = [
    {**NODE, "event_id": 1, "type": "node_enter", "id": "think"},
    {**NODE, "event_id": 2, "type": "message_chunk", "content": "Hi.", "id": "think"},
    {**NODE, "event_id": 3, "type": "usage", "prompt_tokens": 1, "completion_tokens": 1},
    {**NODE, "event_id": 4, "type": "node_exit", "id": "think", "result": "Ok"},
    {"session_id": "s", "event_id": 5, "reply": "Hi."},
]
CALL = {"call_id": "c", "name": "rm", "arguments": {}}


def watched(source, codec=None):
    """Return the run that a source gives."""

    async def main():
        return await asyncio.wait_for(
            agent_nb.watch(source, codec, show=False, secrets={}), timeout=20
        )

    return asyncio.run(main())


def test_reading_a_watch_cancelled_before_its_first_step_ends():
    async def main():
        following = agent_nb.watch([], "canonical", show=False, secrets={}).start()
        following._task.cancel()
        with anyio.fail_after(20):
            return [event async for event in following]

    assert anyio.run(main) == []


@pytest.mark.parametrize("codec", RUNS)
def test_a_run_without_its_end_marker_is_interrupted(codec):
    whole, cut = watched(RUNS[codec], codec), watched(RUNS[codec][:-1], codec)
    assert (whole.status, cut.status) == ("ok", "interrupted")
    assert cut.answer == whole.answer == "Hi."
    assert [(e.code, e.message) for e in cut.log.of("error")] == [("truncated", CUT)]


@pytest.mark.parametrize("codec", RUNS)
def test_it_is_interrupted_when_the_server_closes_cleanly(codec):
    data = "".join(f"data: {json.dumps(o)}\n\n" for o in RUNS[codec][:-1]).encode()

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(data), data)
        )
        await writer.drain()
        writer.close()

    async def main():
        async with listen(serve) as port:
            url = f"http://127.0.0.1:{port}/x"
            return await agent_nb.watch(url, codec, show=False, secrets={})

    assert anyio.run(main).status == "interrupted"


@pytest.mark.parametrize("codec", RUNS)
def test_a_converted_run_without_its_end_is_interrupted_too(codec):
    (log,) = logs(RUNS[codec][:-1], codec)
    assert log[-1].status == "interrupted"


def test_a_run_followed_by_another_has_not_ended_by_itself():
    again = [{**o, "runId": "q"} if "runId" in o else o for o in RUNS["ag-ui"]]
    first, second = logs([*RUNS["ag-ui"][:-1], *again], "ag-ui")
    assert (first[-1].status, second[-1].status) == ("interrupted", "ok")


@pytest.mark.parametrize(
    ("size", "status"), [(2, "interrupted"), (3, "interrupted"), (4, "ok"), (5, "ok")]
)
def test_a_loom_stream_that_stops_inside_an_open_node_is_interrupted(size, status):
    assert watched(LOOM[:size], "loom").status == status


def test_formats_that_are_stored_without_an_end_are_done():
    said = [{"type": "user", "content": "q", "timestamp": 1.0}, {"type": "respond", "content": "a"}]
    assert watched(said, "cogency").status == "ok"
    assert watched([{"type": "respond", "content": "a"}], "canonical").status == "ok"


def test_a_log_of_ours_that_lacks_its_end_is_interrupted():
    log = EventLog("r")
    for event in (RunStart(), Respond(content="a", turn=1), End()):
        log.append(event)
    lines = log.to_ndjson().splitlines(keepends=True)
    assert watched("".join(lines)).status == "ok"
    assert watched("".join(lines[:-1])).status == "interrupted"


@pytest.mark.parametrize(
    "asked",
    [
        [
            {"session_id": "s", "event_id": 1, "type": "tool_call", **CALL},
            {"session_id": "s", "event_id": 2, "type": "tool_approval", **CALL},
        ],
        [
            {"type": "start", "messageId": "r"},
            {"type": "tool-input-available", "toolCallId": "c", "toolName": "rm", "input": {}},
            {"type": "tool-approval-request", "toolCallId": "c", "approvalId": "a"},
        ],
        [
            RUNS["looopy"][0],
            {"kind": "task-status", "taskId": "t", "contextId": "c", "status": "waiting-input"},
        ],
    ],
    ids=["loom", "ui-message", "looopy"],
)
def test_a_stream_that_stops_at_a_question_awaits(asked):
    assert watched(asked).status == "awaiting"


def test_a_question_that_was_answered_awaits_nothing():
    done = {"type": "tool-output-available", "toolCallId": "c", "output": "x"}
    asked = [
        {"type": "tool-input-available", "toolCallId": "c", "toolName": "rm", "input": {}},
        {"type": "tool-approval-request", "toolCallId": "c", "approvalId": "a"},
    ]
    assert watched([*asked, done], "ui-message").status == "interrupted"


@pytest.mark.parametrize("name", plugins.list_plugins("codecs"))
def test_only_formats_that_are_stored_without_an_end_may_lack_it(name):
    may = plugins.load_plugin("codecs", name).may_lack_end
    assert may == (name in ("canonical", "cogency", "loom"))


def test_questions_that_nobody_answers_take_linear_time():
    """In quadratic time they would exceed the test's time limit."""
    settler = Settler("x")
    for number in range(30_000):
        settler.feed(Call(run="r", call_id=str(number), span="a"))
        settler.feed(Approval(run="r", call_id=str(number), span="a"))
        settler.feed(Respond(run="r", span="b"))
    assert settler.close()[-1].status == "awaiting"
