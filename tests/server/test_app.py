"""The HTTP face of runs: what each route answers, and how streams begin, resume and end."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
from urllib.parse import quote

import httpx
import pytest
from helpers.printing import print_every_way
from starlette.datastructures import URL
from starlette.requests import Request

from agent_nb import events as ev
from agent_nb.codecs.loom import codec as loom
from agent_nb.errors import UsageError
from agent_nb.events.log import EventLog
from agent_nb.server.access import Access
from agent_nb.server.app import Server, Settings, create_app
from agent_nb.server.hub import Hub
from agent_nb.wire.sse import SSEDecoder

RUN = (
    ev.RunStart(agent="a"),
    ev.User(content="hi"),
    ev.Node(name="llm", span="llm-1"),
    ev.Think(content="hm"),
    ev.Respond(content="yo"),
    ev.End(),
)


def frames(text):
    decoder = SSEDecoder()
    return [*decoder.feed(text.encode()), *decoder.close()]


# Streams.


def test_a_run_is_streamed_as_server_sent_events_with_its_ids(rig):
    server = rig()
    server.publish("r", *RUN)
    answer = server.client.get("/runs/r/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    found = frames(answer.text)
    assert [(f.event, f.id) for f in found] == [("message", i) for i in ("1", "2", "4", "5", "6")]
    assert [json.loads(f.data)["type"] for f in found] == [
        "run_start",
        "user",
        "think",
        "respond",
        "end",
    ]


@pytest.mark.parametrize(
    "accept", ["application/x-ndjson", "application/jsonl", "application/json"]
)
def test_a_run_is_streamed_as_json_lines_where_asked(accept, rig):
    server = rig()
    server.publish("r", *RUN)
    answer = server.client.get("/runs/r/events", headers={"Accept": accept})
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line)["seq"] for line in answer.text.splitlines()] == [1, 2, 4, 5, 6]


def test_events_arrive_while_the_run_goes_on_and_the_stream_ends_with_it(rig):
    server = rig()
    run = server.publish("r", ev.User(content="hi"))
    with server.client.stream(
        "GET", "/runs/r/events", headers={"Accept": "application/x-ndjson"}
    ) as answer:
        lines = answer.iter_lines()
        assert json.loads(next(lines))["type"] == "user"
        run.feed(ev.Delta(of="respond", block="b", text="y"))
        assert json.loads(next(lines))["text"] == "y"
        run.feed(ev.Respond(content="y", block="b"), ev.End())
        assert [json.loads(line)["type"] for line in lines] == ["respond", "end"]


@pytest.mark.parametrize("where", ["header", "query"])
def test_a_stream_resumes_after_the_last_event_id(where, rig):
    server = rig()
    server.publish("r", *RUN)
    asked = (
        {"headers": {"Last-Event-ID": "4"}}
        if where == "header"
        else {"params": {"lastEventId": "4"}}
    )
    assert [f.id for f in frames(server.client.get("/runs/r/events", **asked).text)] == ["5", "6"]


def test_a_stream_resumes_between_deltas(rig):
    server = rig()
    run = server.publish("r", ev.User(content="hi"))
    run.feed(
        *(ev.Delta(of="respond", block="b", text=t) for t in "abc"),
        ev.Respond(content="abc", block="b"),
        ev.End(),
    )
    server.settle()
    found = frames(server.client.get("/runs/r/events", headers={"Last-Event-ID": "1.7.2"}).text)
    assert [f.id for f in found] == ["1.7.3", "2", "3"]


def test_an_event_source_that_comes_back_after_the_end_is_told_to_stop(rig):
    server = rig()
    server.publish("r", *RUN)
    assert server.client.get("/runs/r/events", headers={"Last-Event-ID": "6"}).status_code == 204


def test_an_unknown_last_event_id_is_answered_with_a_gap_and_everything(rig):
    server = rig()
    server.publish("r", *RUN)
    found = frames(server.client.get("/runs/r/events", headers={"Last-Event-ID": "other-9"}).text)
    assert (found[0].event, json.loads(found[0].data)) == (
        "gap",
        {"run": "r", "reason": "unknown", "after": "other-9", "missed": 0},
    )
    assert [f.id for f in found[1:]] == ["1", "2", "4", "5", "6"]
    lines = server.client.get(
        "/runs/r/events", headers={"Last-Event-ID": "x", "Accept": "application/x-ndjson"}
    ).text.splitlines()
    assert json.loads(lines[0]) == {
        "type": "extension",
        "run": "r",
        "namespace": "hub",
        "name": "gap",
        "payload": {"run": "r", "reason": "unknown", "after": "x", "missed": 0},
    }


def test_evicted_events_are_answered_with_a_gap(rig):
    server = rig(keep=4)
    channel = server.hub.open("r")
    for i in range(30):
        channel.publish(ev.Think(content=str(i)))
    channel.publish(ev.End())
    found = frames(server.client.get("/runs/r/events", headers={"Last-Event-ID": "3"}).text)
    assert found[0].event == "gap"
    told = json.loads(found[0].data)
    assert (told["reason"], told["after"], int(found[1].id)) == ("evicted", "3", told["missed"] + 4)


@pytest.mark.parametrize(
    "name",
    [
        "cogency",
        "loom",
        "loom:export",
        "agent-event",
        "looopy",
        "looopy:document",
        "ag-ui",
        "ui-message",
    ],
)
def test_every_format_is_served_in_both_framings_and_decodes(name, rig):
    from agent_nb.codecs.convert import decode

    server = rig()
    server.publish("r", *RUN)
    for accept in ("text/event-stream", "application/x-ndjson"):
        text = server.client.get(
            "/runs/r/events", params={"format": name}, headers={"Accept": accept}
        ).text
        assert "respond" in {e.type for e in decode(text, name.partition(":")[0])}


def test_the_ui_message_stream_has_the_header_and_end_that_clients_want(rig):
    server = rig()
    server.publish("r", *RUN)
    answer = server.client.get("/runs/r/events", params={"format": "ui-message"})
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert "data: [DONE]\n\n" in answer.text


def test_a_format_with_state_resumes_as_if_it_had_never_stopped(rig):
    server = rig()
    server.publish("r", *RUN)
    whole = frames(server.client.get("/runs/r/events", params={"format": "loom"}).text)
    for number, frame in enumerate(whole):
        if number and frame.id != whole[number - 1].id:  # it has an id of its own
            rest = frames(
                server.client.get(
                    "/runs/r/events", params={"format": "loom"}, headers={"Last-Event-ID": frame.id}
                ).text
            )
            assert [f.data for f in rest] == [f.data for f in whole[number + 1 :]]


@pytest.mark.parametrize("name", ["ag-ui", "ui-message", "looopy", "loom", "agent-event"])
def test_resuming_inside_one_event_repeats_no_frame(rig, name):
    server = rig()
    args = '{"path": "a", "text": "abcdef"}'
    called = ev.Call(
        call_id="c", name="write", args=json.loads(args), raw_args=args, turn=1, chunks="9,9,9,4"
    )
    server.publish(
        "r",
        ev.RunStart(),
        ev.User(content="q"),
        ev.Think(content="hm", turn=1),
        called,
        ev.Result(call_id="c", name="write", content="done", turn=1),
        ev.Respond(content="yo", turn=2),
        ev.End(),
    )
    where = f"/runs/r/events?format={name}"
    whole = [f for f in frames(server.client.get(where).text) if f.data != "[DONE]"]
    inner = 0
    for number, frame in enumerate(whole):
        assert frame.id not in [f.id for f in whole[:number]]
        inner += frame.id.count(".") == 1
        got = server.client.get(where, headers={"Last-Event-ID": frame.id})
        rest = frames(got.text) if got.status_code == 200 else []
        assert [f.data for f in rest if f.data != "[DONE]"] == [f.data for f in whole[number + 1 :]]
    assert inner or name in ("looopy", "agent-event")


def test_what_a_format_cannot_carry_is_said_at_the_end_of_its_stream(rig):
    server = rig()
    server.publish("r", *RUN)
    text = server.client.get("/runs/r/events", params={"format": "agent-event"}).text
    assert text.endswith(": not carried by this format: 1 run_start, 1 user\n\n")


def test_filters_come_from_the_query(rig):
    server = rig()
    server.publish("r", *RUN)
    assert [o["type"] for o in server.lines("/runs/r/events", kinds="think,respond")] == [
        "think",
        "respond",
    ]
    assert [o["type"] for o in server.lines("/runs/r/events", exclude="run_start,user")] == [
        "think",
        "respond",
        "end",
    ]
    assert len(server.lines("/runs/r/events", internal="1")) == 6
    assert server.lines("/runs/r/events", path="other/**") == []


def test_keep_alive_comments_come_when_nothing_else_does(rig):
    server = rig(settings=Settings(keepalive=0.05))
    run = server.publish("r")
    with server.client.stream("GET", "/runs/r/events") as answer:
        lines = answer.iter_lines()
        assert [next(lines), next(lines), next(lines)] == [": keep-alive", "", ": keep-alive"]
        run.feed(ev.End())
    run = server.publish("r2")
    with server.client.stream(
        "GET", "/runs/r2/events", headers={"Accept": "application/x-ndjson"}
    ) as answer:
        lines = answer.iter_lines()
        assert next(lines) == ""
        run.feed(ev.End())


def test_no_keep_alive_comments_at_zero(rig):
    server = rig(settings=Settings(keepalive=0))
    run = server.publish("r")
    threading.Timer(0.4, lambda: run.feed(ev.End())).start()
    assert ":" not in [line[:1] for line in server.client.get("/runs/r/events").text.splitlines()]


def test_a_client_that_goes_gives_its_subscription_back(rig):
    server = rig()
    run = server.publish("r", ev.User(content="x"))
    with server.client.stream("GET", "/runs/r/events") as answer:
        lines = answer.iter_lines()
        next(lines)
        assert server.hub.listeners("r") == 1
    gone = threading.Event()

    def wait():
        while server.hub.listeners("r"):
            run.feed(ev.Delta(text="x"))
        gone.set()

    threading.Thread(target=wait, daemon=True).start()
    assert gone.wait(20)


@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_client_that_goes_before_the_first_byte_leaves_no_subscription(accept, method):
    hub, log = Hub(), EventLog("r")
    hub.attach(log)
    log.append(ev.User(content="x"))
    settings = Settings(streams=1)
    app = create_app(hub, access=Access(token="test-token-123"), settings=settings)
    headers = {"host": "localhost", "authorization": "Bearer test-token-123", "accept": accept}
    scope = {
        "type": "http",
        "method": method,
        "path": "/runs/r/events",
        "query_string": b"",
        "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
        "scheme": "http",
        "server": ("localhost", 80),
    }
    statuses = []

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        statuses.append(message["status"])
        raise OSError("the client is gone")

    async def ask():
        with pytest.raises(OSError, match="gone"):
            await app(scope, receive, send)

    for _ in range(2):
        asyncio.run(ask())
    assert (statuses, hub.listeners("r")) == ([200, 200], 0)


def test_streams_are_limited(rig):
    server = rig(settings=Settings(keepalive=0, streams=1))
    run = server.publish("r", ev.User(content="x"))
    with server.client.stream("GET", "/runs/r/events") as answer:
        lines = answer.iter_lines()
        next(lines)
        refused = server.client.get("/runs/r/events")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        run.feed(ev.End())


def test_stopping_the_server_ends_its_streams_properly(rig):
    server = rig()
    server.publish("r", ev.User(content="x"))
    with server.client.stream("GET", "/runs/r/events") as answer:
        lines = answer.iter_lines()
        assert next(lines) == "id: 1"
        stopper = threading.Thread(target=server.server.stop)
        stopper.start()
        assert [line[:5] for line in lines] == ["data:", ""]
        stopper.join(20)
    assert not server.server._thread.is_alive()


def test_a_fault_while_runs_are_ended_leaves_no_stream_open(monkeypatch):
    async def fail():
        raise ZeroDivisionError

    async def note(server, sockets=None):
        stopped.append(True)

    hub, stopped = Hub(), []
    server = Server(hub, closing=fail)
    monkeypatch.setattr("uvicorn.Server.shutdown", note)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(server._server.shutdown())
    assert (hub.closed, stopped) == (True, [True])


def test_a_server_that_shuts_down_starts_no_run():
    began, posted, started = threading.Event(), threading.Event(), []

    async def hold():
        began.set()
        await asyncio.to_thread(posted.wait, 20)

    server = Server(start=lambda *message: started.append(message), closing=hold).start()
    headers = {"Authorization": f"Bearer {server.token}"}
    stopper = threading.Thread(target=server.stop)
    stopper.start()
    try:
        assert began.wait(20)
        with httpx.Client(base_url=server.url, headers=headers, trust_env=False) as client:
            listed = client.get("/runs")
            refused = client.post("/runs", json={"message": "hi"})
    finally:
        posted.set()
        stopper.join(20)
    assert (listed.status_code, refused.status_code, started) == (200, 503, [])
    assert refused.headers["retry-after"] == "5"


def test_a_second_server_of_the_process_streams_after_the_first(rig):
    rig().close()
    server = rig()
    server.publish("r", *RUN)
    assert len(frames(server.client.get("/runs/r/events").text)) == 5


# Runs.


def test_a_run_whose_id_is_in_use_is_a_conflict_and_does_not_go_on(rig):
    server = rig()
    server.hub.open("mine", log=EventLog("mine"))
    answer = server.client.post("/runs", json={"message": "as mine"})
    assert (answer.status_code, answer.json()["error"]) == (
        409,
        "A run with the id mine is published already; ids are never used again. Start the run with a new id.",
    )
    assert server.started[0][2].cancelled.is_set()


def test_a_run_is_started_and_told_where_it_is(rig):
    server = rig()
    answer = server.client.post("/runs", json={"message": "say hello", "conversation": "c1"})
    run = server.started[0][2].log.run
    assert (answer.status_code, answer.headers["location"]) == (201, f"/runs/{run}")
    assert answer.json() == {"run": run, "conversation": "c1", "events": f"/runs/{run}/events"}
    assert [o["type"] for o in server.lines(f"/runs/{run}/events")] == [
        "run_start",
        "user",
        "respond",
        "end",
    ]


def test_the_address_of_a_started_run_encodes_its_id(rig):
    server = rig()
    answer = server.client.post("/runs", json={"message": "as ü/events"})
    server.settle()
    assert server.client.get(answer.headers["location"]).json()["run"] == "ü/events"


@pytest.mark.parametrize("name", ["a/events", "a/cancel", "a/approvals/c", "a/", "/", "a%2Fb"])
def test_an_encoded_slash_of_an_id_separates_nothing(rig, name):
    server = rig()
    for run in ("a", name):
        server.publish(run, *RUN)
    at = f"/runs/{quote(name, safe='')}"
    assert server.client.get(at).json()["run"] == name
    assert {event["run"] for event in server.lines(f"{at}/events")} == {name}


def test_ids_of_conversations_that_differ_at_their_end_are_never_one(rig):
    server = rig()
    ids = [f"{'c' * 200}{end}" for end in ("1", "2")]
    answers = [server.client.post("/runs", json={"message": "a", "contextId": i}) for i in ids]
    assert [answer.status_code for answer in answers] == [422, 422]
    assert "at most 200 characters" in answers[0].json()["error"]
    assert not server.started


@pytest.mark.parametrize("asked", ["accept", "body"])
def test_a_run_is_streamed_at_once_where_asked(asked, rig):
    server = rig()
    headers = {"Accept": "text/event-stream"} if asked == "accept" else {}
    body = {
        "message": "say hello",
        "contextId": "ctx",
        **({"stream": True} if asked == "body" else {}),
    }
    answer = server.client.post("/runs", params={"format": "looopy"}, json=body, headers=headers)
    found = frames(answer.text)
    kinds = [
        "task-created",
        "task-status",
        "task-status",
        "message",
        "content-delta",
        "content-complete",
        "task-complete",
    ]
    assert [f.event for f in found] == kinds
    assert server.started[0][:2] == ("say hello", "ctx")


def test_several_clients_share_one_execution(rig):
    server = rig()
    run = server.client.post("/runs", json={"message": "say hello"}).json()["run"]
    streams = [server.client.get(f"/runs/{run}/events").text for _ in range(3)]
    assert streams[0] == streams[1] == streams[2]
    assert len(server.started) == 1


def test_the_list_and_the_page_of_a_run(rig):
    server = rig()
    server.publish("r", *RUN)
    listed = server.client.get("/runs").json()["runs"]
    assert [
        (r["run"], r["status"], r["prompt"], r["conversation"], r["events"]) for r in listed
    ] == [("r", "ok", "hi", "main", 6)]
    assert server.client.get("/runs/r").json() == listed[0]


def test_a_run_is_cancelled_once(rig):
    server = rig()
    run = server.publish("r", ev.User(content="x"))
    assert server.client.post("/runs/r/cancel").status_code == 202
    assert run.cancelled.is_set()
    assert server.client.post("/runs/r/cancel").status_code == 409


def test_a_question_is_answered(rig):
    server = rig()
    run = server.publish("r", ev.User(content="x"))
    answer = server.client.post(
        "/runs/r/approvals/c/1", json={"decision": "allow", "args": {"a": 1}, "reason": "fine"}
    )
    assert answer.json() == {"call": "c/1", "decision": "allow"}
    assert run.answers == [
        ("c/1", {"allow": True, "args": {"a": 1}, "scope": "once", "reason": "fine"})
    ]
    assert (
        server.client.post("/runs/r/approvals/none", json={"decision": "deny"}).status_code == 404
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/runs/none/events", None, 404),
        ("GET", "/runs/none", None, 404),
        ("POST", "/runs/none/cancel", None, 404),
        ("GET", "/nowhere", None, 404),
        ("PUT", "/runs", None, 405),
        ("GET", "/runs/x/cancel", None, 405),
        ("GET", "/runs/x/approvals/c", None, 405),
        ("POST", "/runs", b"{", 422),
        ("POST", "/runs", b"[]", 422),
        ("POST", "/runs", b'{"message":" "}', 422),
        ("POST", "/runs", b'{"message":5}', 422),
        ("POST", "/runs", b'{"a":' * 60000, 422),
        ("POST", "/runs", b"x" * (1 << 21), 413),
        ("POST", "/runs", b'{"message":"' + b"x" * 300_000 + b'"}', 413),
        ("POST", "/runs/r/approvals/c", b'{"decision":"maybe"}', 422),
        ("GET", "/runs/r/events?format=morse", None, 422),
    ],
)
def test_wrong_requests_are_refused_with_what_to_do(method, path, body, status, rig):
    server = rig()
    server.publish("r", ev.User(content="x"))
    answer = server.client.request(method, path, content=body)
    assert answer.status_code == status
    assert status in (404, 405) or len(answer.json()["error"]) > 10


def test_a_server_without_a_start_only_shows(rig):
    server = rig(starts=False)
    assert server.client.post("/runs", json={"message": "x"}).status_code == 405


def test_runs_at_once_are_limited(rig):
    server = rig(settings=Settings(keepalive=0, active=1))
    assert server.client.post("/runs", json={"message": "wait"}).status_code == 201
    assert server.client.post("/runs", json={"message": "wait"}).status_code == 429


# Access.


def test_without_a_token_only_health_answers(rig):
    server = rig()
    server.publish("r", *RUN)
    with httpx.Client(base_url=server.server.url, trust_env=False) as client:
        assert client.get("/health").json() == {"status": "ok"}
        for path in ("/runs", "/runs/r", "/runs/r/events", "/nowhere"):
            assert client.get(path).status_code == 401
        for wrong in ("Bearer x", "Bearer", "Basic dGVzdA==", "Bearer test-token-1234"):
            assert client.get("/runs", headers={"Authorization": wrong}).status_code == 401
        assert client.post("/login").status_code == 401


def test_the_token_is_traded_for_a_cookie_that_does_not_hold_it(rig, token):
    server = rig()
    answer = server.client.post("/login")
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 204
    assert token not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    with httpx.Client(
        base_url=server.server.url, cookies=dict(answer.cookies), trust_env=False
    ) as client:
        assert client.get("/runs").status_code == 200


def test_with_the_cookie_a_change_must_come_from_a_page_of_the_server(rig):
    server = rig(origins=("http://lab.example",))
    cookies = dict(server.client.post("/login").cookies)
    with httpx.Client(base_url=server.server.url, cookies=cookies, trust_env=False) as client:
        for origin, status in (
            (None, 403),
            ("null", 403),
            ("http://evil.example", 403),
            (server.server.url.replace("http:", "https:"), 403),
            (server.server.url.rpartition(":")[0], 403),
            (f"{server.server.url}0", 403),
            (server.server.url, 201),
            ("http://lab.example", 201),
        ):
            headers = {"Origin": origin} if origin else {}
            assert (
                client.post("/runs", json={"message": "say x"}, headers=headers).status_code
                == status
            )


def test_the_cookies_name_holds_the_port_so_that_servers_share_a_browser(rig):
    first, second = rig(), rig()
    jar = httpx.Cookies()
    for server in (first, second):
        jar.update(server.client.post("/login").cookies)
    for server in (first, second):
        assert f"agent_nb_{httpx.URL(server.server.url).port}" in jar
        with httpx.Client(base_url=server.server.url, cookies=dict(jar), trust_env=False) as client:
            assert client.get("/runs").status_code == 200


@pytest.mark.parametrize(
    ("origin", "scheme", "host", "same"),
    [
        ("http://a.example", "http", "a.example", True),
        ("http://a.example", "http", "a.example:80", True),
        ("https://a.example:443", "https", "a.example", True),
        ("HTTP://A.example", "http", "a.example", True),
        ("http://a.example", "https", "a.example", False),
        ("https://a.example", "http", "a.example", False),
        ("http://a.example:81", "http", "a.example", False),
        ("http://[::1]:8", "http", "[::1]:8", True),
        ("http://a.example:x", "http", "a.example:x", False),
        ("null", "http", "null", False),
        ("", "http", "", False),
    ],
)
def test_an_origin_is_scheme_and_host_and_port(origin, scheme, host, same):
    access = Access(token="t", hosts=frozenset({"*"}))
    denied = access.check("POST", {"host": host, "origin": origin}, access.cookie(), scheme)
    assert (denied is None) is same


@pytest.mark.parametrize("host", ["127.0.0.1:1/health?", "localhost:1/health#"])
def test_a_host_header_with_a_path_opens_nothing(host, rig, monkeypatch):
    def join_url(request):  # as older versions of starlette do, without looking at the header
        return URL(f"http://{request.headers['host']}{request.scope['path']}")

    monkeypatch.setattr(Request, "url", property(join_url))
    with httpx.Client(base_url=rig().server.url, trust_env=False) as client:
        assert client.get("/runs", headers={"Host": host}).status_code == 401


def test_a_foreign_host_name_is_refused_against_rebinding(rig):
    server = rig()
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
        assert server.client.get("/runs", headers={"Host": host}).status_code == 421
        assert server.client.get("/health", headers={"Host": host}).status_code == 421
    for host in ("localhost:1", "127.0.0.1", "[::1]:8", "LOCALHOST"):
        assert server.client.get("/runs", headers={"Host": host}).status_code == 200


def test_other_origins_are_off_unless_named(rig):
    closed, opened = rig(), rig(origins=("http://lab.example",))
    asked = {"Origin": "http://lab.example", "Access-Control-Request-Method": "GET"}
    assert "access-control-allow-origin" not in closed.client.get("/runs", headers=asked).headers
    assert (
        opened.client.get("/runs", headers=asked).headers["access-control-allow-origin"]
        == "http://lab.example"
    )
    assert (
        "access-control-allow-origin"
        not in opened.client.get("/runs", headers={"Origin": "http://evil.example"}).headers
    )


def test_the_token_is_in_no_answer(rig, token):
    server = rig()
    server.publish("r", *RUN)
    answers = [
        server.client.get(p) for p in ("/health", "/runs", "/runs/r", "/runs/r/events", "/nowhere")
    ] + [server.client.post("/login")]
    for answer in answers:
        assert token not in answer.text + str(answer.headers)


def test_a_short_token_is_refused():
    with pytest.raises(UsageError, match="at least 8 characters"):
        Server(token="short")


def test_a_made_up_token_is_long_and_new_each_time():
    one, two = Server(), Server()
    assert len(one.token) >= 32
    assert one.token != two.token


def test_a_taken_port_is_said(rig):
    server = rig()
    with pytest.raises(UsageError, match="Choose another port"):
        Server(port=server.server.port).start()


def test_the_looopy_stream_reads_back_as_the_run(rig):
    server = rig()
    server.publish("r", *RUN)
    text = server.client.get(
        "/runs/r/events", params={"format": "loom"}, headers={"Accept": "application/x-ndjson"}
    ).text
    decoder = loom.decoder()
    events = [*decoder.feed(text), *decoder.close()]
    assert [e.content for e in events if e.type == "respond"] == ["yo"]


@pytest.mark.slow
def test_without_the_extra_the_install_line_is_told():
    code = "import sys; sys.modules['uvicorn'] = None\nimport agent_nb.server.app"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        "MissingExtra: The server is not installed. Install it with: pip install 'jupyter-agent-nb[serve]'"
        in done.stderr
    )


def test_the_message_that_a_client_sent_is_not_sent_back_to_it_as_ag_ui(rig):
    text = (
        rig()
        .client.post(
            "/runs", params={"format": "ag-ui"}, json={"message": "say hello", "stream": True}
        )
        .text
    )
    assert "say hello" not in text
    assert "hello" in text


@pytest.mark.parametrize("kinds", ["respond", "call"])
def test_an_event_source_learns_of_an_end_that_its_filter_leaves_out(kinds, rig):
    server = rig()
    server.publish("r", *RUN)
    text = server.client.get("/runs/r/events", params={"kinds": kinds}).text
    assert [f.id for f in frames(text)] == (["5"] if kinds == "respond" else [])
    assert text.endswith("id: 6\n\n")
    again = {"params": {"kinds": kinds}, "headers": {"Last-Event-ID": "6"}}
    assert server.client.get("/runs/r/events", **again).status_code == 204


@pytest.mark.parametrize("query", [{"format": "bogus"}, {}])
def test_no_run_is_started_whose_stream_would_be_refused(query, rig):
    server = rig(settings=Settings(keepalive=0, streams=len(query)))
    headers = {"Accept": "text/event-stream"}
    answer = server.client.post("/runs", params=query, json={"message": "a"}, headers=headers)
    assert answer.status_code == (422 if query else 503)
    assert not server.started


def test_half_characters_in_a_prompt_hide_no_run(rig):
    server = rig()
    server.publish("r", ev.RunStart(agent="a\ud800"), ev.User(content="x\udc00y"), ev.End())
    shown = server.client.get("/runs").json()["runs"]
    assert [(run["agent"], run["prompt"]) for run in shown] == [("a\ufffd", "x\ufffdy")]
    assert server.client.get("/runs/r").json() == shown[0]


def test_a_client_that_goes_inside_its_body_causes_no_traceback(rig, token, caplog):
    server = rig()
    head = f"POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    with socket.create_connection(("127.0.0.1", server.server.port)) as client:
        client.sendall(f"{head}Content-Length: 9\r\nExpect: 100-continue\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 100")  # now the server reads the body
    server.server.stop()
    assert not caplog.records


def test_access_is_printed_without_its_token():
    assert "correct-horse" not in print_every_way(Access(token="correct-horse"))


@pytest.mark.parametrize("token", ["schlüsselwort", "tab\tin the middle", "two lines\nof text"])
def test_a_token_that_no_client_can_send_is_refused(token):
    with pytest.raises(UsageError, match="not of ASCII"):
        Server(token=token)


def test_blanks_around_a_token_do_not_count():
    assert Server(token=" a-token-of-a-file\r\n").token == "a-token-of-a-file"
