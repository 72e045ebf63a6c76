"""Following runs of other systems: sources, detection, numbering, times, endings, secrets."""

import asyncio
import dataclasses
import gzip
import io
import json
import os
import re
import threading
import types as kinds
from collections import OrderedDict
from contextlib import aclosing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

import msgspec
import pydantic
import pytest
from helpers.paths import DATA
from helpers.streams import ndjson, sse
from pydantic.alias_generators import to_camel

import agent_nb
from agent_nb import Agent, Scripted
from agent_nb.codecs.coerce import ItemCoercer, piece_of
from agent_nb.errors import ModelError, UsageError
from agent_nb.events import End, Respond, RunStart, User
from agent_nb.events.log import EventLog
from agent_nb.external.importer import CUT, Imported

LOOM = [
    {"session_id": "s", "event_id": 1, "type": "run_start", "message": "hi", "agent": "a"},
    {
        "session_id": "s",
        "node_id": "run-think-0",
        "event_id": 2,
        "type": "node_enter",
        "id": "think",
    },
    {
        "session_id": "s",
        "node_id": "run-think-0",
        "event_id": 3,
        "type": "message_chunk",
        "content": "Hel",
        "id": "think",
    },
    {
        "session_id": "s",
        "node_id": "run-think-0",
        "event_id": 4,
        "type": "message_chunk",
        "content": "lo.",
        "id": "think",
    },
    {
        "session_id": "s",
        "node_id": "run-think-0",
        "event_id": 5,
        "type": "node_exit",
        "id": "think",
        "result": "Ok",
    },
    {"session_id": "s", "event_id": 6, "reply": "Hello."},
]
AGENT = [
    {"type": "thought", "content": "Look."},
    {"type": "tool_call", "toolName": "ls", "toolArgs": '{"path": "."}'},
    {"type": "tool_result", "toolName": "ls", "output": "a.txt"},
    {"type": "stream", "content": "One "},
    {"type": "stream", "content": "file."},
    {"type": "final"},
]
TYPES = ["run_start", "user", "node", "respond", "node", "end"]


def follow(source, *arguments, **options):
    """Follow a source to its end and return the Watch."""

    async def main():
        found = agent_nb.watch(source, *arguments, secrets=options.pop("secrets", {}), **options)
        await asyncio.wait_for(found, 20)
        return found

    return asyncio.run(main())


async def stream(items, pause=0):
    for item in items:
        yield item
        await asyncio.sleep(pause)


def types(watch):
    return [e.type for e in watch.run.log]


# Sources.


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.ndjson"
    path.write_text(ndjson(*LOOM))
    return path


class Chunk(pydantic.BaseModel):
    type: str
    content: str | None = None
    tool_name: str | None = pydantic.Field(default=None, serialization_alias="toolName")


@dataclasses.dataclass
class Plain:
    type: str
    content: str


class Struct(msgspec.Struct, omit_defaults=True):
    type: str
    content: str = ""


class ServerSentEvent:
    """As the SSE clients of httpx and of requests hand them out."""

    def __init__(self, data, event="message", number=""):
        self.data, self.event, self.id, self.retry = data, event, number, None


class MessageEvent:
    """As requests-sse and aiohttp-sse-client hand them out."""

    def __init__(self, data, event, number):
        self.data, self.type, self.last_event_id, self.origin = data, event, number, "http://x"


def test_a_path(file):
    assert types(follow(file)) == types(follow(str(file))) == TYPES


def test_a_text_and_bytes():
    assert types(follow(ndjson(*LOOM))) == types(follow(ndjson(*LOOM).encode())) == TYPES


def test_an_open_file(file):
    with file.open("rb") as binary, file.open() as written:
        assert types(follow(binary)) == types(follow(written)) == TYPES


def test_a_buffer_in_memory():
    assert types(follow(io.BytesIO(ndjson(*LOOM).encode()))) == TYPES


@pytest.mark.parametrize("make", [list, iter, stream], ids=["list", "generator", "async"])
def test_iterators_of_dicts(make):
    assert types(follow(make(LOOM))) == TYPES


def test_an_iterator_of_lines_with_and_without_ends():
    assert types(follow(stream(ndjson(*LOOM).splitlines()))) == TYPES
    assert types(follow(stream(ndjson(*LOOM).splitlines(keepends=True)))) == TYPES


@pytest.mark.parametrize("size", [1, 3, 7, 50, 10_000])
def test_an_iterator_of_bytes_in_any_chunking(size):
    data = ndjson(*LOOM).encode()
    assert types(follow(stream([data[i : i + size] for i in range(0, len(data), size)]))) == TYPES


@pytest.mark.parametrize("size", [1, 4, 9, 60])
def test_sse_in_any_chunking(size):
    data = sse(*AGENT)
    assert (
        follow(stream([data[i : i + size] for i in range(0, len(data), size)])).run.answer
        == "One file."
    )


def test_sse_lines_without_their_ends():
    assert follow(stream(sse(*AGENT).split("\n"))).run.answer == "One file."


def test_sse_lines_that_begin_with_an_event_name():
    frames = 'event: content-delta\ndata: {"contextId":"c","taskId":"t","delta":"Hi","index":0}\n\n'
    assert follow(stream(frames.split("\n"))).run.answer == "Hi"


@pytest.mark.parametrize("kind", [ServerSentEvent, MessageEvent])
def test_events_of_an_sse_client(kind):
    delta = json.dumps({"contextId": "c", "taskId": "t", "delta": "Hi"})
    found = follow(stream([kind(delta, "content-delta", "c-1")]))
    assert (found.codec, found.run.answer) == ("looopy", "Hi")


@pytest.mark.parametrize("more", [{}, {"event": "message"}, {"type": "x", "id": "1"}])
def test_another_object_with_data_is_no_sse_event_and_is_named(more):
    item = kinds.SimpleNamespace(data='{"type": "thought", "content": "x"}', **more)
    with pytest.raises(UsageError, match="A SimpleNamespace cannot be read as an event"):
        piece_of(item)


@pytest.mark.parametrize("kind", [Chunk, Plain, Struct], ids=["pydantic", "dataclass", "msgspec"])
def test_objects(kind):
    assert (
        follow(stream([kind(**o) for o in AGENT if o["type"] in ("thought", "stream")])).run.answer
        == "One file."
    )


def test_names_of_pydantic_fields_are_those_of_the_wire():
    assert piece_of(Chunk(type="tool_call", tool_name="ls")) == {
        "type": "tool_call",
        "toolName": "ls",
    }


class Usage(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(alias_generator=to_camel, populate_by_name=True)
    input_tokens: int = 0
    cost: float | None = None


class Message(pydantic.BaseModel):
    """As AG-UI's own models are: type and role are defaults that nobody sets."""

    model_config = Usage.model_config
    type: Literal["TEXT_MESSAGE_START"] = "TEXT_MESSAGE_START"
    message_id: str
    role: Literal["assistant"] = "assistant"
    name: str | None = None
    usage: list[Usage] = []


def test_defaults_of_pydantic_objects_that_say_something_are_kept():
    said = piece_of(Message(message_id="m", usage=[Usage()]))
    assert said == {
        "type": "TEXT_MESSAGE_START",
        "messageId": "m",
        "role": "assistant",
        "usage": [{"inputTokens": 0}],
    }
    assert piece_of(Message(message_id="m", name=None))["name"] is None, (
        "what was set is kept, null too"
    )


def test_pydantic_objects_whose_type_is_a_default_are_watched():
    class Start(Message):
        pass

    class Content(pydantic.BaseModel):
        model_config = Usage.model_config
        type: Literal["TEXT_MESSAGE_CONTENT"] = "TEXT_MESSAGE_CONTENT"
        message_id: str
        delta: str

    class End(pydantic.BaseModel):
        type: Literal["RUN_FINISHED"] = "RUN_FINISHED"

    found = follow(stream([Start(message_id="m"), Content(message_id="m", delta="Hi."), End()]))
    assert (found.codec, found.run.answer, found.run.status) == ("ag-ui", "Hi.", "ok")


def test_an_agent_of_ours():
    found = follow(Agent(Scripted(["Hello."]), secrets={})("hi"))
    assert (found.codec, found.run.answer) == ("canonical", "Hello.")


def test_several_runs_of_a_stream_are_several_logs():
    other = [{**o, "session_id": "t"} for o in LOOM]
    found = follow([o for pair in zip(LOOM, other, strict=True) for o in pair])
    assert [(r.id, r.answer) for r in found.runs] == [("s", "Hello."), ("t", "Hello.")]
    assert found.run.id == "t"


# What becomes of the events.


def test_events_are_imported_and_numbered_and_foreign_ids_are_kept():
    log = follow(LOOM).run.log
    assert [e.seq for e in log] == list(range(1, 7))
    assert {e.origin for e in log} == {"imported"}
    assert {e.run for e in log} == {"s"}
    assert log.of("node")[0].span == "run-think-0"


def test_an_origin_that_somebody_claims_does_not_count():
    log = EventLog("r")
    for event in (
        RunStart(),
        User(content="q", origin="user"),
        Respond(content="a", turn=1, origin="model"),
        End(),
    ):
        log.append(event)
    assert {e.origin for e in follow(log.to_ndjson()).run.log} == {"imported"}


def test_times_of_a_file_that_tells_none_are_unknown():
    assert {e.ts for e in follow(ndjson(*LOOM)).run.log} == {0.0}


def test_times_of_a_live_stream_that_tells_none_are_those_of_arrival():
    times = [e.ts for e in follow(stream(LOOM)).run.log]
    assert min(times) > 1.7e9
    assert times == sorted(times)


def test_times_that_a_stream_tells_are_kept_and_never_go_back():
    events = [
        {"type": "user", "content": "q", "timestamp": 100.5},
        {"type": "think", "content": "t"},
        {"type": "respond", "content": "a", "timestamp": 99.0},
        {"type": "end", "timestamp": 103.0},
    ]
    assert [e.ts for e in follow(stream(events)).run.log] == [100.5, 100.5, 100.5, 103.0]


def test_the_pieces_of_a_live_answer_are_kept_with_its_pace():
    log = follow(stream(LOOM)).run.log
    assert [d.text for d in log.deltas()] == ["Hel", "lo."]


def test_a_prompt_stands_before_what_a_stream_without_one_says():
    log = follow(AGENT, prompt="What is there?").run.log
    assert (log[0].type, log[0].content, log[0].origin) == ("user", "What is there?", "user")


def test_a_prompt_does_not_replace_the_streams_own():
    assert [e.content for e in follow(LOOM, prompt="other").run.log.of("user")] == ["hi"]


def test_it_is_live():
    async def main():
        seen = []
        gate = asyncio.Event()

        async def source():
            yield AGENT[0]
            await asyncio.wait_for(gate.wait(), 20)
            for item in AGENT[1:]:
                yield item

        async for event in agent_nb.watch(source(), secrets={}):
            seen.append(event.type)
            gate.set()
        return seen

    assert asyncio.run(main())[0] == "think"


def test_a_source_is_read_once_however_many_look():
    async def main():
        watch = agent_nb.watch(stream(LOOM), secrets={})
        first = [e.type async for e in watch if e.type != "delta"]
        again = [e.type async for e in watch]
        return first, again, [e.type for e in (await watch).log]

    assert asyncio.run(main()) == (TYPES, TYPES, TYPES)


# Endings.


def test_a_source_that_ends_too_early_is_closed_as_interrupted():
    log = follow(AGENT[:2]).run.log
    assert [e.type for e in log] == ["think", "call", "result", "error", "end"]
    assert (log[2].status, log[3].code, log[3].message, log[4].status) == (
        "cancelled",
        "truncated",
        CUT,
        "interrupted",
    )


def test_an_open_answer_is_cut_off():
    log = follow(AGENT[3:4]).run.log
    assert (log[0].content, log[0].incomplete, log[-1].status) == ("One ", True, "interrupted")


@pytest.mark.parametrize("size", range(1, len(LOOM)))
def test_a_stream_cut_anywhere_is_one_valid_log(size):
    log = follow(LOOM[:size]).run.log
    assert [e.type for e in log].count("end") == 1
    assert log.ended


def test_a_stream_that_breaks_is_closed_and_the_fault_is_raised():
    async def source():
        yield AGENT[0]
        raise RuntimeError("the wire is cut")

    async def main():
        watch = agent_nb.watch(source(), secrets={})
        with pytest.raises(RuntimeError, match="wire"):
            await watch
        return watch

    log = asyncio.run(main()).run.log
    assert log.of("error")[0].message == "RuntimeError: the wire is cut"
    assert log[-1].status == "interrupted"


def test_stopping_closes_the_log_as_an_interrupt():
    async def main():
        async def source():
            yield AGENT[0]
            await asyncio.sleep(60)

        watch = agent_nb.watch(source(), secrets={})
        async for _ in watch:
            watch.stop()
        return await watch

    log = asyncio.run(main()).log
    assert [e.type for e in log] == ["think", "interrupt", "end"]
    assert log[-1].status == "interrupted"


def test_cancelling_who_awaits_closes_the_source():
    closed = []

    async def source():
        try:
            yield AGENT[0]
            await asyncio.sleep(60)
        finally:
            closed.append(True)

    async def main():
        watch = agent_nb.watch(source(), secrets={})
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watch, 0.2)
        return watch

    assert asyncio.run(main()).run.log.ended
    assert closed == [True]


def test_a_source_followed_in_another_event_loop_is_an_error_with_advice():
    async def source():
        yield AGENT[0]
        await asyncio.sleep(60)

    async def begun(watch):
        async for _ in watch:
            return

    async def awaited(watch):
        await watch

    with asyncio.Runner() as first:
        watch = agent_nb.watch(source(), secrets={})
        first.run(begun(watch))
        with pytest.raises(
            UsageError,
            match=r"another event loop and can be awaited only there.* watch the source again",
        ):
            asyncio.run(awaited(watch))
        first.run(watch.aclose())


def test_what_is_no_json_is_counted():
    assert follow(ndjson(*LOOM[:1]) + "{broken\n" + ndjson(*LOOM[1:])).lost == {"malformed line": 1}


# What cannot be read.


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("there-is-none.ndjson", "No such file"),
        ("~nobody-here/x.ndjson", "No such file"),
        ('{"nothing": "known"}\n', "Name it"),
        ("\n\n", "no event"),
        (7, "A int cannot be watched"),
        ([object()], "cannot be read as an event"),
    ],
)
def test_a_source_that_cannot_be_read_is_said(source, words):
    with pytest.raises(UsageError, match=words):
        follow(source)


@pytest.mark.parametrize("count", [1, 24, 30])
def test_an_unknown_format_is_said_however_much_of_it_comes(count):
    async def main():
        watch = agent_nb.watch(
            [{"nothing": "known", "number": n} for n in range(count)], secrets={}
        )
        with pytest.raises(UsageError, match="Name it: ag-ui"):
            await watch
        await watch._task  # nothing else has failed in it

    asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("openai.types.chat", r"come from a model, not from an agent.*openai/"),
        ("anthropic.types", "anthropic/"),
        ("pydantic_ai.messages", r"pydantic_ai\.ui\.ag_ui\.AGUIAdapter.*pydantic-ai-slim\[ag-ui\]"),
        ("langchain_core.messages", "ag-ui-langgraph"),
        ("langgraph.types", "ag-ui-langgraph"),
        ("somebody.else", r"AG-UI adapter for somebody \(docs\.ag-ui\.com lists them\)"),
    ],
)
@pytest.mark.parametrize("readable", [True, False])
def test_objects_of_a_known_package_are_refused_with_what_to_watch_instead(
    package, words, readable
):
    kind = type(
        "Chunk",
        (),
        {"__module__": package, "to_dict": lambda self: {"strange": 1}}
        if readable
        else {"__module__": package},
    )
    with pytest.raises(UsageError, match=words):
        follow(stream([kind()]))


@pytest.mark.parametrize("item", [{"nothing": "known"}, OrderedDict(nothing="known")])
def test_dicts_of_no_known_format_are_refused_with_those_that_are_read(item):
    with pytest.raises(UsageError) as raised:
        follow([item])
    examples = re.findall(r"\{.*?\}(?= \()", str(raised.value))
    assert [follow([json.loads(example)]).run.answer for example in examples] == ["…", "…"]


def test_an_unknown_codec_is_refused_at_once():
    with pytest.raises(UsageError, match="morse"):
        agent_nb.watch([], "morse")


def test_a_named_codec_is_not_doubted():
    assert follow([{"type": "error", "error": "x"}], "loom").codec == "loom"


# Files that grow, pipes, addresses.


def test_an_iteration_that_is_left_early_keeps_no_events():
    async def main():
        watch = agent_nb.watch(stream(LOOM), secrets={})
        async with aclosing(aiter(watch)) as events:
            await anext(events)
            assert len(watch._queues) == 1
        assert watch._queues == []
        await watch
        return watch

    assert types(asyncio.run(main())) == TYPES


def test_a_growing_file_is_followed_until_its_run_has_ended(tmp_path):
    path = tmp_path / "live.ndjson"
    path.write_text(ndjson(*LOOM[:2]))

    async def main():
        watch = agent_nb.watch(path, follow=True, secrets={})
        async for event in watch:
            if event.type == "node" and event.phase == "enter":
                with path.open("a") as file:
                    file.write(ndjson(*LOOM[2:]))
        return watch

    assert types(asyncio.run(asyncio.wait_for(main(), 20))) == TYPES


def test_a_pipe_is_followed(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text(ndjson(*LOOM)))
    writer.start()
    found = follow(path)
    writer.join()
    assert types(found) == TYPES
    assert found.run.log[0].ts > 1.7e9


def test_a_pipe_that_nobody_writes_to_can_be_stopped(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    async def main():
        watch = agent_nb.watch(path, secrets={})
        asyncio.get_running_loop().call_later(0.1, watch.stop)
        return await watch

    try:
        assert len(asyncio.run(main()).log) == 0
    finally:
        with suppress(OSError):  # lets the thread go that opens the pipe, if it has come so far
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


@pytest.fixture
def server():
    """A server of somebody else on this machine: what it sends by path."""
    pages = {
        "/agent.sse": ("text/event-stream", sse(*AGENT)),
        "/loom": ("application/x-ndjson", ndjson(*LOOM)),
        "/cut": ("x/y", ndjson(*LOOM[:3])),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            kind, body = pages.get(self.path.partition("?")[0], ("", ""))
            self.send_response(200 if kind else 404)
            self.send_header("content-type", kind or "text/plain")
            self.end_headers()
            self.wfile.write(body.encode() or b"nothing here")

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_addresses(server):
    assert follow(f"{server}/agent.sse").run.answer == "One file."
    assert types(follow(f"{server}/loom?token=secret")) == TYPES


def test_the_name_of_an_address_holds_no_secret():
    assert agent_nb.watch("http://user:pass@localhost:1/x?token=secret").name == "localhost:1/x"


def test_the_name_of_a_file_holds_no_folder():
    assert agent_nb.watch(Path("/home/me/run.ndjson")).name == "run.ndjson"


def test_an_answer_without_a_stream_is_said(server):
    with pytest.raises(UsageError, match="404"):
        follow(f"{server}/none")


def test_nobody_at_an_address_is_said():
    with pytest.raises(ModelError):
        follow("http://127.0.0.1:9/x")


def test_an_address_that_breaks_off_is_closed(server):
    assert follow(f"{server}/cut").run.status == "interrupted"


# Secrets.


KEY = "sk-ant-abcdefghijklmnop1234"


def test_secrets_are_taken_out_of_events_and_their_pieces():
    found = [
        {"type": "stream", "content": f"The key is {KEY[:9]}"},
        {"type": "stream", "content": f"{KEY[9:]}."},
        {"type": "final"},
    ]
    log = follow(stream(found)).run.log
    assert KEY[9:] not in log.to_ndjson()
    assert log.of("respond")[0].content == "The key is [redacted API key]."
    assert "".join(d.text for d in log.deltas()) == "The key is [redacted API key]."


def test_secrets_by_name_are_taken_out_of_results_and_prompts():
    found = follow(AGENT, prompt="use hunter2hunter2", secrets={"PASSWORD": "hunter2hunter2"})
    assert found.run.prompt == "use [redacted PASSWORD]"


# The halves.


def test_pieces_hold_nothing_but_a_first_line_of_sse():
    pieces = ItemCoercer()
    assert pieces.feed('{"a": 1}') == [b'{"a": 1}\n']
    assert ItemCoercer().feed("event: x") == []
    assert ItemCoercer().feed("event: x\n") == [b"event: x\n"]


def test_deltas_of_a_file_are_left_out_of_its_log_but_not_lost():
    found = Imported("loom")
    events = [e for o in LOOM for e in found.feed(o)] + found.close()
    assert [e.type for e in events] == TYPES
    assert [d.text for d in found.logs[0].deltas()] == ["Hel", "lo."]


@pytest.mark.parametrize(
    "name", ["loom.ndjson", "loom-export.ndjson", "looopy.sse", "cogency.ndjson", "agent-event.sse"]
)
def test_the_corpora_of_every_format_are_valid_runs(name):
    found = follow(DATA / "corpora" / name)
    for log in found.logs:
        assert [e.type for e in log if not e.span].count("end") == 1
        assert log.ended
        calls = {e.call_id for e in log.of("call")}
        assert calls <= {e.call_id for e in log.of("result")}


def test_frames_are_shown_as_they_come_though_ids_are_skipped():
    seen = []

    async def main():
        going = asyncio.Event()

        async def source():
            for number in (5, 7, 6, 20):
                yield {
                    "session_id": "s",
                    "event_id": number,
                    "type": "message_chunk",
                    "content": f"{number} ",
                    "id": "a",
                }
            await going.wait()

        found = agent_nb.watch(source(), "loom", secrets={})
        async for event in found:
            seen.append(event)
            if event.type == "delta" and event.text == "20 ":
                going.set()

    asyncio.run(asyncio.wait_for(main(), 20))
    assert [e.text for e in seen if e.type == "delta"] == ["5 ", "7 ", "6 ", "20 "]


def test_a_fault_while_no_item_comes_ends_the_watch(monkeypatch):
    calls = []

    def break_off(imported):
        calls.append(imported)
        if len(calls) > 2:
            raise RuntimeError("broken")
        return []

    async def source():
        yield {"type": "respond", "content": "hi"}
        await asyncio.Event().wait()

    async def main():
        watched = agent_nb.watch(source(), "canonical", secrets={})
        with pytest.raises(RuntimeError, match="broken"):
            await asyncio.wait_for(watched, 20)
        return watched

    monkeypatch.setattr(Imported, "tick", break_off)
    (fault,) = asyncio.run(main()).run.log.of("error")
    assert fault.message == "RuntimeError: broken"


@pytest.mark.parametrize("form", ["path", "bytes", "file"])
def test_a_gzipped_run_is_watched_and_decoded_as_it_is(tmp_path, form):
    lines = [{"type": "respond", "content": "é" * 99_000}, {"type": "end", "status": "ok"}]
    data = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    path = tmp_path / "run.ndjson.gz"
    path.write_bytes(data)
    make = {"path": lambda: path, "bytes": lambda: data, "file": lambda: io.BytesIO(data)}[form]
    assert follow(make(), "canonical").run.answer == "é" * 99_000
    assert agent_nb.decode(make(), "canonical")[0].content == "é" * 99_000
    if form == "path":
        assert follow(path, "canonical", follow=True).run.answer == "é" * 99_000
