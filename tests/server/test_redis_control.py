"""Control over Redis: what a signed message does, and that no other approves or stops anything."""

import asyncio
import logging
import time

import httpx
import msgspec
import pytest
from helpers.redis_server import KEY, PATIENCE, Apart, need_redis, until
from helpers.scripts import calling

import agent_nb
from agent_nb import Agent, EventLog, Scripted, tool
from agent_nb import events as ev
from agent_nb.agent import REGISTRY
from agent_nb.errors import UsageError
from agent_nb.external import server_notes
from agent_nb.external.attached_run import attach
from agent_nb.server import serve
from agent_nb.server.app import Server, Settings
from agent_nb.server.redis.address import parse_address
from agent_nb.server.redis.hub import RedisHub
from agent_nb.server.redis.messages import (
    LIFE,
    SKEW,
    Gate,
    Refused,
    hub_key,
    new_message,
    question_hash,
    seal_message,
)

CALL = calling("touch", name="a")
ASKED = ev.Approval(seq=1, call_id="c", stage="requested", args={"name": "a", "n": 1})
OPEN = question_hash([ASKED], "c")


# Messages, without a server.


def approve(**changes):
    values = {"call": "c", "question": OPEN, "allow": True, "back": "p:inbox:x", **changes}
    return new_message("approve", values.pop("run", "r"), **values)


def test_a_message_comes_back_as_it_was_sent_once():
    gate, sent = Gate("r", KEY), approve(args={"name": "b"}, reason="fine")
    fields = seal_message(sent, KEY)
    assert gate.open(fields) == sent
    with pytest.raises(Refused, match="came before"):
        gate.open(fields)


def lasting(seconds):
    return msgspec.structs.replace(approve(), expires=time.time() + seconds)


# Made in the test: a message that is made when pytest collects is older when its turn comes.
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (lambda: seal_message(approve(), b"another key"), "forged"),
        (lambda: seal_message(approve(), b""), "forged"),
        (lambda: [b"m", msgspec.json.encode(approve()), b"s", b""], "forged"),
        (lambda: [b"m", msgspec.json.encode(approve())], "not a message"),
        (list, "not a message"),
        (lambda: [b"m"], "not a message"),
        (lambda: seal_message(approve(run="other"), KEY), "another run"),
        (lambda: seal_message(lasting(-SKEW - 1), KEY), "expired"),
        (lambda: seal_message(lasting(LIFE + SKEW + 60), KEY), "expired"),
        (lambda: [b"m", b"x" * (2 << 20), b"s", b"0"], "too large"),
    ],
)
def test_a_forged_foreign_expired_or_malformed_message_does_not_count(fields, why):
    with pytest.raises(Refused, match=why):
        Gate("r", KEY).open(fields())


def test_a_message_altered_in_any_field_does_not_count():
    sent = approve(allow=False)
    _, data, _, signature = seal_message(sent, KEY)
    for name in sent.__struct_fields__:
        old = getattr(sent, name)
        new = {str: "x", bool: not old, float: old + 1 if isinstance(old, float) else 0}.get(
            type(old), {"x": 1}
        )
        changed = {**msgspec.to_builtins(sent), name: new}
        with pytest.raises(Refused, match="signature"):
            Gate("r", KEY).open([b"m", msgspec.json.encode(changed), b"s", signature])
    for place in range(0, len(data), 7):
        bad = bytearray(data)
        bad[place] ^= 1
        with pytest.raises(Refused, match="signature"):
            Gate("r", KEY).open([b"m", bytes(bad), b"s", signature])


def test_the_hash_of_a_question_is_of_all_that_it_shows():
    call = ev.Call(seq=1, call_id="c", name="touch", args={"name": "a"})
    asked = ev.Approval(seq=2, call_id="c", args={"name": "a"}, extra={"preview": "touches a"})
    right = question_hash([call, asked], "c")
    others = [
        [asked],
        [msgspec.structs.replace(call, name="other"), asked],
        [msgspec.structs.replace(call, args={"name": "b"}), asked],
        [call, msgspec.structs.replace(asked, args={"name": "b"})],
        [call, msgspec.structs.replace(asked, extra={"preview": "touches nothing"})],
        [call, asked, msgspec.structs.replace(asked, args={"name": "c"})],
    ]
    hashes = [question_hash(events, "c") for events in others]
    assert len({right, *hashes, ""}) == len(others) + 2
    decided = msgspec.structs.replace(asked, stage="decided", args={})
    assert question_hash([ASKED, call, asked, decided, ev.Call(call_id="d")], "c") == right
    assert question_hash([call, asked], "other") == ""


def test_the_key_is_the_configured_one_or_the_users_and_never_short(monkeypatch, tmp_path):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    own = hub_key()
    assert own == hub_key() != b""
    monkeypatch.setenv("AGENT_NB_HUB_KEY", "a long random text for servers")
    shared = hub_key()
    assert len(shared) == 32
    assert shared != own
    monkeypatch.setenv("AGENT_NB_HUB_KEY", "k" * 20 + "\udcff")  # bytes that are not UTF-8
    assert len(hub_key()) == 32
    monkeypatch.setenv("AGENT_NB_HUB_KEY", "short")
    with pytest.raises(UsageError, match="too short"):
        hub_key()


# Over Redis.

pytest_extra = pytest.mark.extra


@tool(effect="outside")
def touch(name: str) -> str:
    """Touch a thing."""
    return f"touched {name}"


@pytest.fixture
def kernel(redis_server, monkeypatch, tmp_path):
    """`agent_nb.serve(store=…)` of this process, as in a kernel."""
    monkeypatch.setattr(server_notes, "notes_folder", lambda: tmp_path / "servers")
    monkeypatch.setenv("AGENT_NB_HUB_KEY", KEY.decode() * 2)
    serving = agent_nb.serve(keepalive=0, store=redis_server.url)
    yield serving
    serving.stop()
    serve._current.serving = None


@pytest.fixture
def server(kernel):
    """A server elsewhere, which makes no runs; `token` is its token."""
    hub = RedisHub(kernel._hub.address, key=hub_key())
    made = Server(hub, token="test-token-123", settings=Settings(keepalive=0)).start()
    yield made
    made.stop()
    hub.stop()


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 40))


async def asked(server, answer, *, script=(CALL, "Done."), **options):
    """Run an agent in the kernel; `answer(attached, event)` answers its question from elsewhere."""
    stream = Agent(Scripted(list(script)), tools=[touch], **options)("go")
    stream._announced = REGISTRY.announce(
        stream.log, questions=stream.questions, cancel=stream.stop
    )
    attached = attach(f"{server.url}/runs/{stream.log.run}", server.token)

    async def follow():
        async for event in attached:
            if event.type == "approval" and event.stage == "requested":
                await answer(attached, event)

    following = asyncio.create_task(follow())
    hub = serve._current.serving._hub
    while not hub.listeners(stream.log.run):
        await asyncio.sleep(0.01)
    ran = await stream
    await following
    return ran


@pytest_extra
def test_a_cell_is_read_from_a_server_that_did_not_make_the_run(agent, server, kernel):
    done = agent(model=Scripted(["<think>hm</think>Hello."]))
    assert kernel._hub.flush(PATIENCE)
    with httpx.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, trust_env=False
    ) as http:
        listed = http.get("/runs").json()["runs"]
        text = http.get(
            f"/runs/{done.id}/events",
            params={"internal": "1", "deltas": "0"},
            headers={"Accept": "application/x-ndjson"},
        ).text
    (info,) = [info for info in listed if info["run"] == done.id]
    assert (info["status"], info["prompt"]) == ("ok", "hello")
    assert text == done.log.to_ndjson()


@pytest_extra
def test_a_question_is_answered_from_a_server_that_did_not_make_the_run(server):
    async def yes(attached, event):
        await attached.approve(event.call_id, allow=True, args={"name": "b"})

    ran = run(asked(server, yes))
    assert [e.content for e in ran.log.of("result")] == ["touched b"]
    assert [e.by for e in ran.log.of("approval") if e.stage == "decided"] == ["remote"]


@pytest_extra
def test_the_policy_of_the_kernel_judges_edited_arguments_again(server, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("rules:\n- deny: touch\n  args: {name: 'secret*'}\n- ask: touch\n")

    async def sly(attached, event):
        await attached.approve(event.call_id, allow=True, args={"name": "secret"})

    ran = run(asked(server, sly, approve=str(policy)))
    assert [e.status for e in ran.log.of("result")] == ["denied"]


@pytest_extra
def test_a_run_is_stopped_from_a_server_that_did_not_make_it(server):
    async def stop(attached, event):
        assert await attached._may_cancel()
        await attached.cancel()

    ran = run(asked(server, stop))
    assert ran.status == "interrupted"


@pytest_extra
def test_forged_altered_expired_and_replayed_messages_approve_nothing(
    server, redis_server, kernel, caplog
):
    key = kernel._hub._remote.key
    place = kernel._hub.address

    def put(name, fields):
        redis_server.command("XADD", place.key("run", name, "control"), "*", *fields)

    async def attack(attached, event):
        name, call = attached.run.id, event.call_id
        right = question_hash(kernel._hub.channel(name).stored(), call)
        back = place.key("inbox", "mine")
        good = {"call": call, "question": right, "allow": True, "back": back}
        denial = new_message("approve", name, **{**good, "allow": False})
        _, data, _, signature = seal_message(denial, key)
        late = msgspec.structs.replace(
            new_message("approve", name, **good), expires=time.time() - 99
        )
        attacks = [
            seal_message(new_message("approve", name, **good), b"a guessed key"),
            [b"m", data.replace(b'"done":false', b'"done":true'), b"s", signature],
            seal_message(late, key),
            seal_message(new_message("approve", "another", **good), key),
            seal_message(
                new_message("approve", name, **{**good, "question": question_hash([ASKED], "c")}),
                key,
            ),
            seal_message(new_message("approve", name, **{**good, "question": ""}), key),
            seal_message(new_message("approve", name, **{**good, "back": "runs"}), key),
            [b"e", b"garbage"],
        ]
        for fields in attacks:
            await asyncio.to_thread(put, name, fields)
        while caplog.text.count("does not count") < len(attacks):
            await asyncio.sleep(0.01)
        assert not attached.run.log.of("result")
        # a denial that counts, and its second coming
        for _ in range(2):
            await asyncio.to_thread(put, name, [b"m", data, b"s", signature])
        while "came before" not in caplog.text:
            await asyncio.sleep(0.01)

    with caplog.at_level(logging.WARNING, "agent_nb.hub"):
        ran = run(asked(server, attack))
    assert [e.status for e in ran.log.of("result")] == ["denied"]
    decided = [e.decision for e in ran.log.of("approval") if e.stage == "decided"]
    assert decided == ["deny"]
    for words in ("forged or altered", "expired", "another run", "not the question", "no inbox"):
        assert words in caplog.text


@pytest_extra
def test_events_forged_in_redis_make_nobody_approve_what_was_not_asked(
    server, redis_server, kernel
):
    """Another event is shown to the person than the kernel's: the hash gives it away."""
    hub = server.hub

    async def deceived(attached, event):
        mirror = hub.channel(attached.run.id)
        for entry in mirror._stored:
            if entry.event.type == "approval":
                entry.event = msgspec.structs.replace(entry.event, args={"name": "harmless"})
        with pytest.raises(UsageError, match="not the question"):
            await attached.approve(event.call_id, allow=True)
        await attached.cancel()

    ran = run(asked(server, deceived))
    assert ran.status == "interrupted"
    assert [e.status for e in ran.log.of("result")] == ["cancelled"]


@pytest_extra
def test_a_server_with_another_key_can_only_follow(kernel, redis_server, monkeypatch):
    monkeypatch.setattr("agent_nb.server.redis.remote_control.PATIENCE", 0.3)
    log = EventLog("r")
    stopped = []
    kernel._hub.attach(log, cancel=lambda: stopped.append(1))
    log.append(ev.User(content="hi"))
    assert kernel._hub.flush(PATIENCE)
    for key, said in ((b"another", 409), (b"", 405)):
        hub = RedisHub(kernel._hub.address, key=key)
        made = Server(hub, token="test-token-123", settings=Settings(keepalive=0)).start()
        try:
            with httpx.Client(
                base_url=made.url,
                headers={"Authorization": "Bearer test-token-123"},
                trust_env=False,
            ) as http:
                assert http.get("/runs/r").json()["events"] == 1
                assert http.post("/runs/r/cancel").status_code == said
        finally:
            made.stop()
            hub.stop()
    assert stopped == []


@pytest_extra
def test_without_readers_anywhere_a_question_is_not_waited_for(kernel, server):
    async def main():
        return await Agent(Scripted([CALL, "Done."]), tools=[touch])("go")

    ran = run(main())
    assert [e.status for e in ran.log.of("result")] == ["denied"]


@pytest_extra
def test_a_reader_that_connects_again_is_heard_after_its_slow_goodbye(redis_server, monkeypatch):
    hubs = Apart(redis_server.url)
    add_message = hubs.server._link.add_message
    kinds = []

    async def add_slowly(key, fields, lifetime):
        kind = msgspec.json.decode(fields[1])["kind"]
        if kind == "gone":
            await asyncio.sleep(0.05)  # another connection overtakes it
        kinds.append(kind)
        return await add_message(key, fields, lifetime)

    try:
        hubs.attach(EventLog("r"), cancel=print)
        hubs.subscribe("r")
        until(lambda: hubs.kernel.listeners("r"))
        monkeypatch.setattr(hubs.server._link, "add_message", add_slowly)
        (reader,) = hubs.server._list_readers("r")
        reader.close()
        hubs.server.subscribe("r")
        until(lambda: len(kinds) == 2)
        assert kinds[-1] == "listening"
    finally:
        hubs.stop()


@pytest_extra
def test_a_reader_of_another_server_that_left_counts_for_some_seconds(redis_server):
    hubs = Apart(redis_server.url)
    try:
        hubs.attach(EventLog("r"), cancel=print)
        assert not hubs.kernel.had_reader("r", 60.0)
        hubs.subscribe("r")
        until(lambda: hubs.kernel.listeners("r"))
        (reader,) = hubs.server._list_readers("r")
        reader.close()
        until(lambda: not hubs.kernel.listeners("r"))
        assert hubs.kernel.had_reader("r", 60.0)
        assert not hubs.kernel.had_reader("r", 0.0)
    finally:
        hubs.stop()


@pytest_extra
def test_what_the_handle_shows_holds_no_secret_of_the_address(redis_folder, monkeypatch, tmp_path):
    monkeypatch.setattr(server_notes, "notes_folder", lambda: tmp_path / "servers")
    redis = redis_folder("--requirepass", "s3cret-word-of-redis")
    monkeypatch.setenv(
        "AGENT_NB_HUB", f"redis://default:s3cret-word-of-redis@127.0.0.1:{redis.port}/0"
    )
    with agent_nb.serve(keepalive=0) as serving:
        shown = repr(serving) + str(serving._repr_mimebundle_()) + repr(serving._hub)
        assert f"shared over redis://127.0.0.1:{redis.port}/0" in shown
        assert "s3cret" not in shown
        ran = run(_said("The password is s3cret-word-of-redis."))
        assert "s3cret" not in ran.log.to_ndjson()
        assert serving._hub.flush(PATIENCE)
        until(lambda: len(run(_listed(serving._hub))) >= 1)


async def _said(words):
    return await Agent(Scripted([words]))("hi")


async def _listed(hub):
    return await hub.list_runs()


@pytest_extra
def test_a_kernel_without_redis_at_its_start_is_an_error_that_names_it(
    free_port, monkeypatch, tmp_path
):
    need_redis()
    monkeypatch.setattr(server_notes, "notes_folder", lambda: tmp_path / "servers")
    with pytest.raises(UsageError, match=f"redis://127.0.0.1:{free_port}/0 cannot be used"):
        agent_nb.serve(store=f"redis://127.0.0.1:{free_port}")


def test_without_the_extra_the_install_line_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(UsageError, match=r"pip install 'jupyter-agent-nb\[redis\]'"):
        RedisHub(parse_address("redis://127.0.0.1"), key=KEY)
