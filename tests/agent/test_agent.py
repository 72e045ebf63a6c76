"""The loop: what a run does, in which order, and that it always ends properly."""

import asyncio
import pickle
import time

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from helpers.scripts import batch, calling
from helpers.waiting import move_on, wait
from pydantic import SecretStr

from agent_nb import Agent, Scripted, tool
from agent_nb import events as e
from agent_nb.agent.batch import Batch
from agent_nb.agent.compaction import ask_for_summary, request_summary
from agent_nb.agent.limits import Limits, Meter, limits_from
from agent_nb.agent.stream import Stream
from agent_nb.errors import AgentError, RunFailed, UsageError
from agent_nb.events import EventLog
from agent_nb.models import parts
from agent_nb.models.parts import Text
from agent_nb.tools.kernel_permissions import KernelPermissions

CALL = calling("echo", x="1")


@tool
def echo(x: str) -> str:
    """Say it again."""
    return f"echo {x}"


@tool
def boom() -> str:
    """Fail."""
    raise ValueError("kaput")


KEY = "sk-proj-" + "a1B2" * 8


def agent(turns, tools=(echo, boom), **options):
    return Agent(Scripted(turns), tools, secrets=options.pop("secrets", {}), **options)


def run(turns, prompt="go", history=(), **options):
    return wait(lambda: agent(turns, **options)(prompt, history=history, check=False))


def kinds(done, *hidden):
    return [
        e.type
        for e in done.log
        if e.type not in ("run_start", "node", "metric", "started", *hidden)
    ]


def test_a_plain_answer():
    done = run(["Hello."])
    assert (done.answer, done.status, kinds(done)) == ("Hello.", "ok", ["user", "respond", "end"])


def test_a_call_is_run_and_its_result_read():
    done = run([f"<think>try</think>{CALL}", "It said echo 1."])
    assert kinds(done) == ["user", "think", "call", "execute", "result", "respond", "end"]
    assert done.log.of("result")[0].content == "echo 1"
    assert done.answer == "It said echo 1."


def test_what_is_no_model_is_named_when_the_agent_is_made():
    class Client:
        stream = None

    for other in (5, [Scripted(["a"]), print], Client()):
        with pytest.raises(UsageError, match="is not a model: give a name"):
            Agent(other)
    with pytest.raises(UsageError, match=r"Client is not a model"):
        Agent("client", namespace={"client": Client()})


def test_an_empty_prompt_is_refused():
    with pytest.raises(UsageError, match="empty"):
        agent(["x"])("  ")


def test_results_come_in_call_order_whatever_ends_first():
    gate = anyio.Event()

    @tool
    async def slow() -> str:
        """Wait for quick."""
        await gate.wait()
        return "slow"

    @tool
    async def quick() -> str:
        """Be done at once."""
        gate.set()
        return "quick"

    done = run(
        [batch(("slow", {}), ("quick", {})), "ok"],
        tools=[slow, quick],
    )
    assert [e.content for e in done.log.of("result")] == ["slow", "quick"]


def test_an_early_end_is_announced_live():
    gate = anyio.Event()

    @tool
    async def slow() -> str:
        """Wait."""
        await gate.wait()
        return "s"

    @tool
    async def quick() -> str:
        """Go."""
        return "q"

    async def main():
        seen = []
        stream = agent(
            [batch(("slow", {}), ("quick", {})), "ok"],
            tools=[slow, quick],
        )("go")
        async for event in stream:
            if event.type == "delta" and event.of == "result":
                seen.append(event.text)
                gate.set()
        return seen

    assert anyio.run(main) == ["ok"]


def test_an_unknown_tool_is_an_error_result_and_the_others_run():
    done = run([batch(("echo", {"x": "1"}), ("nope", {})), "ok"])
    assert [(e.name, e.status) for e in done.log.of("result")] == [
        ("echo", "ok"),
        ("nope", "error"),
    ]
    assert "echo" in done.log.of("result")[1].content


def test_a_raising_tool_is_an_error_result():
    done = run([calling("boom"), "sorry"])
    (result,) = done.log.of("result")
    assert result.status == "error"
    assert "kaput" in result.content
    assert done.status == "ok"


def test_a_malformed_batch_goes_back_to_the_model():
    done = run(['<execute>[{"name":</execute>', "sorry<end>"])
    assert kinds(done) == ["user", "error", "respond", "end"]
    assert done.log.of("error")[0].code == "malformed_execute"
    assert any(m["role"] == "user" and "malformed_execute" in m["content"] for m in done.messages())


def test_the_model_is_not_read_past_a_complete_batch():
    done = run([{"chunks": [CALL, "<results>[]</results>I have it."]}, "real answer"])
    assert done.answer == "real answer"
    assert not done.log.of("error")


def test_end_is_the_last_event_exactly_once():
    for turns in (
        ["a"],
        [CALL, "b"],
        [{"chunks": ["x"], "cut": True}],
        [{"error": {"status": 401, "message": "no"}}],
        [],
    ):
        done = run(turns)
        assert [e.type for e in done.log].count("end") == 1
        assert done.log[-1].type == "end"


def test_a_cut_stream_keeps_what_came_and_ends_in_error():
    done = run([{"chunks": ["half an ans"], "cut": True}])
    assert done.status == "error"
    assert done.log.of("respond")[0].incomplete
    assert done.log.of("error")


def test_a_fault_before_the_first_part_is_retried_and_said():
    done = run([{"error": {"status": 503, "message": "busy", "retry_after": 0}}, "fine"])
    assert (done.status, done.answer) == ("ok", "fine")
    assert [e.code for e in done.log.of("error")] == ["retry"]


BUSY = {
    "error": {"status": 429, "message": "Rate limit at Lab (429): slow down.", "retry_after": 0}
}


def test_each_further_request_is_one_event_and_its_wait_is_in_the_node():
    done = run([BUSY, BUSY, "fine"])
    first, second = done.log.of("error")
    assert first.message.startswith("Rate limit at Lab (429): slow down. Trying again in 0.")
    assert "(attempt 2)" in first.message
    assert "(attempt 3)" in second.message
    ends = [e.data for e in done.log.of("node") if e.phase == "exit"]
    assert [0 <= data["retry_in"] < 0.3 for data in ends[:2]] == [True, True]
    assert "retry_in" not in ends[2]
    assert (done.answer, len(done.log.of("node"))) == ("fine", 6)


def test_a_stop_ends_the_wait_for_another_request_at_once():
    async def main():
        asleep = {"error": {"status": 429, "message": "later", "retry_after": 100}}
        stream = agent([asleep, "never"])("go")
        with anyio.fail_after(20):
            async for event in stream:
                if event.type == "error":
                    stream.cancel("user")
        return stream.run

    done = anyio.run(main)
    assert (done.status, done.answer) == ("interrupted", "")
    assert [e.type for e in done.log][-3:] == ["error", "interrupt", "end"]


def test_a_refused_key_is_not_retried():
    done = run([{"error": {"status": 401, "message": "bad key"}}, "never"])
    assert done.status == "error"
    assert "bad key" in done.error


def test_running_out_of_turns_is_an_error_event():
    assert run([CALL]).log.of("error")[-1].code == "script"


def test_the_turn_limit_interrupts_and_keeps_the_answer_so_far():
    done = run([f"so far {CALL}"] * 9, limits={"turns": 3})
    assert done.status == "limit"
    assert "stopped at the limit of 3 turns" in done.log.of("interrupt")[0].detail
    assert done.answer == "so far"


def test_three_tool_failures_in_a_row_stop_the_run():
    done = run([calling("boom")] * 9)
    assert len(done.log.of("result")) == 3
    assert done.status == "limit"


def test_the_limit_of_tool_calls_leaves_every_call_with_a_result():
    done = run(
        [batch(("echo", {"x": "1"}), ("echo", {"x": "2"}))],
        limits={"tool_calls": 1},
    )
    assert [e.status for e in done.log.of("result")] == ["cancelled", "cancelled"]
    assert done.status == "limit"


def test_the_time_limit_ends_a_model_that_never_answers():
    done = run([{"text": "late", "delay": 60}], limits={"seconds": 0.05})
    assert (done.status, done.log.of("interrupt")[0].reason) == ("limit", "timeout")


def test_a_call_that_the_time_limit_stopped_says_so():
    @tool
    def dig() -> str:
        "Dig, and report each metre."
        move_on(loops[0], 20)
        while True:
            time.sleep(0.01)
            yield 0.5

    async def main():
        loops.append(asyncio.get_running_loop())
        stream = agent([calling("dig"), "over"], [dig], limits={"seconds": 20})
        return await stream("go", check=False)

    loops = []
    (result,) = wait(main).log.of("result")
    assert result.status == "cancelled"
    assert result.content == "Stopped at the limit of 20 seconds, before it was done."


class Endless:
    """A native model that never ends: each batch is made by `part` of its number."""

    name, dialect, grammar, shots, context = "endless/x", "native", False, False, 0

    def __init__(self, part, *first):
        self.part, self.first = part, first
        self.batches = 0

    async def stream(self, request):
        yield list(self.first)
        while True:
            await anyio.lowlevel.checkpoint()
            self.batches += 1
            yield [self.part(self.batches)]

    async def aclose(self):
        pass


ENDLESS = {
    "text": lambda n: parts.Text("word " * 8),
    "thoughts": lambda n: parts.Thought("word " * 8, "t"),
    "arguments": lambda n: parts.CallDelta(
        '{"x": "' if n == 1 else "word " * 8, index=0, call_id="c", name="echo"
    ),
    "calls": lambda n: parts.CallDelta(
        '{"x": "word word word word word word"}', index=n, call_id=f"c{n}", name="echo"
    ),
    "whole calls": lambda n: parts.Call(
        "echo", {"x": "word"}, '{"x": "word word word word word word"}', f"c{n}", n
    ),
    "white space": lambda n: parts.Text(" " * 40),
}


def until_its_limit(model, **limits):
    async def main():
        with anyio.fail_after(20):
            return await Agent(model, [echo], limits=limits, secrets={})("go")

    return anyio.run(main)


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_endless_answer_ends_at_the_limit_of_tokens(kind):
    model = Endless(ENDLESS[kind])
    done = until_its_limit(model, tokens=2000)
    assert (done.status, done.log.of("interrupt")[0].reason) == ("limit", "limit")
    assert "2,000 tokens" in done.log.of("interrupt")[0].detail
    assert 150 < model.batches < 250  # of about ten tokens each
    (metric,) = done.log.of("metric")
    assert metric.estimated
    assert 2000 <= metric.total.input + metric.total.output < 2100


def test_what_came_before_the_limit_of_tokens_stays_and_no_call_runs():
    call = parts.Call("echo", {"x": "1"}, '{"x": "1"}', "c1", 0)
    done = until_its_limit(
        Endless(ENDLESS["text"], parts.Text("Kept. "), parts.Close(), call), tokens=2000
    )
    assert done.answer.startswith("Kept.")
    assert [e.status for e in done.log.of("result")] == ["cancelled"]
    assert [e.type for e in done.log][-2:] == ["interrupt", "end"]


def test_what_the_provider_tells_of_its_usage_counts_within_a_turn():
    model = Endless(lambda n: parts.Usage(input=100, output=500 * n))
    assert (until_its_limit(model, tokens=2000).status, model.batches) == ("limit", 4)
    lagging = Endless(ENDLESS["text"], parts.Usage(input=1900, output=1))
    assert until_its_limit(lagging, tokens=2000).log.of("metric")[0].total.input == 1900
    assert lagging.batches < 15


def test_a_request_beyond_the_limit_of_tokens_is_not_made():
    model = Endless(ENDLESS["text"])
    done = run([], prompt="word " * 2000, limits={"tokens": 2000})
    assert (done.status, done.log.of("node"), model.batches) == ("limit", [], 0)
    assert "2,000 tokens (this request alone has about 2," in done.log.of("interrupt")[0].detail


def test_requests_that_continue_a_paused_answer_count_as_turns():
    model = Endless(lambda n: parts.Continued())
    done = until_its_limit(model, turns=3)
    assert (done.status, model.batches) == ("limit", 3)
    assert "stopped at the limit of 3 turns" in done.log.of("interrupt")[0].detail
    assert done.log.of("node")[-1].data["continued"] == 3


def test_continued_requests_still_count_when_a_run_goes_on():
    done = until_its_limit(Endless(lambda n: parts.Continued()), turns=3)
    meter = Meter(limits_from({"turns": 3}))
    meter.recount(done.log)
    assert "stopped at the limit of 3 turns" in meter.reached_limit()


def test_an_endless_summary_is_cut_off():
    said, _ = anyio.run(ask_for_summary, Endless(ENDLESS["text"]), request_summary([]))
    assert said.startswith("word")


@pytest.mark.parametrize("note", [KEY, e.State(kind="window", payload={"note": KEY})])
def test_a_note_on_the_conversation_has_no_secret(note):
    log = agent(["x"], secrets={"K": KEY}).run_sync("go", notes=[note]).log
    assert log.of("state")
    assert KEY not in log.to_ndjson()


@pytest.mark.parametrize("name", Limits.__struct_fields__)
def test_none_means_unlimited_in_a_limits_object_too(name):
    assert agent(["x"], limits=Limits(**{name: None})).run_sync("go").status == "ok"


def test_an_unknown_limit_is_refused():
    with pytest.raises(UsageError, match="tool_calls"):
        agent(["x"], limits={"patience": 1})


def test_cancelling_a_model_wait_logs_interrupt_and_end():
    async def main():
        stream = agent([{"chunks": ["first ", "second"], "delay": 0}, "x"])("go")
        stream = agent([{"chunks": ["first ", "never"], "delay": 0.05}])("go")
        async for event in stream:
            if event.type == "delta":
                stream.cancel("user")
        return stream.run

    done = anyio.run(main)
    assert [e.type for e in done.log][-2:] == ["interrupt", "end"]
    assert done.status == "interrupted"
    assert done.log.of("respond")[0].incomplete


class Hanging:
    """A model that says something and then nothing more; `said` is set when it has."""

    name, dialect, grammar, shots, context = "hanging", "xml", False, False, 0

    def __init__(self, *pieces):
        self.pieces, self.said = pieces, anyio.Event()

    async def stream(self, request):
        for piece in self.pieces:
            yield [Text(piece)]
        self.said.set()
        await anyio.sleep_forever()

    async def aclose(self):
        """Nothing is open."""


WRITTEN = {
    "xml": '<execute>[{"name": "echo", "args": {"x": "some words"}}]',
    "section": '§CALL: {"name": "echo", "args": {"x": "some words"}',
}


@pytest.mark.parametrize("dialect", WRITTEN)
@pytest.mark.parametrize("left", [5, 16, 40])
def test_a_stop_inside_a_call_leaves_an_incomplete_not_a_malformed_one(dialect, left):
    async def main():
        model = Hanging("I look. ", WRITTEN[dialect][:-left])
        stream = Agent(model, [echo], secrets={}, dialect=dialect)("go").start()
        with anyio.fail_after(20):
            await model.said.wait()
            stream.cancel("user")
            return await stream

    done = anyio.run(main)
    calls, results = done.log.of("call"), done.log.of("result")
    assert (done.status, done.answer) == ("interrupted", "I look.")
    assert [(c.name, c.incomplete) for c in calls] == ([("echo", True)] if left < 40 else [])
    assert [r.status for r in results] == ["cancelled"] * len(calls)
    assert [e.code for e in done.log.of("error")] == ([] if calls else ["incomplete"])


def test_cancelling_before_the_start_ends_at_once():
    async def main():
        stream = agent(["x"])("go")
        stream.cancel()
        return await stream

    done = anyio.run(main)
    assert kinds(done) == ["user", "interrupt", "end"]


def test_a_run_whose_event_loop_is_shut_down_has_an_end():
    async def main():
        stream = agent([{"chunks": ["first ", "never"], "delay": 60}])("go").start()
        await asyncio.sleep(0)
        return stream

    done = asyncio.run(main()).run
    assert [e.type for e in done.log][-2:] == ["interrupt", "end"]


def test_readers_of_a_run_cancelled_before_its_first_step_see_its_end():
    async def main():
        stream = agent(["x"])("go").start()
        stream._task.cancel()
        with anyio.fail_after(20):
            return [e.type async for e in stream], stream.run

    types, done = anyio.run(main)
    assert types == ["run_start", "user", "interrupt", "end"]
    assert (done.status, done.prompt) == ("interrupted", "go")


def test_a_run_that_cannot_be_prepared_has_an_end(monkeypatch):
    monkeypatch.setenv("AGENT_NB_RERUN", "replay")  # so that the call does not resolve the model

    async def main():
        with anyio.fail_after(20):
            stream = Agent("nonesuch/x", secrets={})("go")
            return [e.type async for e in stream], stream.run

    kinds, done = anyio.run(main)
    assert kinds == ["run_start", "user", "error", "end"]
    assert (done.status, "nonesuch" in done.error) == ("error", True)


def test_a_driver_that_breaks_off_ends_its_run_with_the_error():
    class Breaking:
        def __init__(self, log):
            self.log = log

        async def run(self):
            self.log.append(e.RunStart())
            self.log.append(e.Call(call_id="a", name="echo"))
            raise LookupError("kaput")

    async def main():
        log = EventLog()
        return await Stream(log, lambda _: Breaking(log), check=False)

    done = anyio.run(main)
    assert [event.type for event in done.log] == ["run_start", "call", "result", "error", "end"]
    assert (done.status, done.error) == ("error", "LookupError: kaput")


def test_an_error_in_a_batch_is_named(monkeypatch):
    def fail(*_):
        raise LookupError("kaput")

    monkeypatch.setattr(Batch, "started", fail)
    done = run([CALL, "never"])
    assert (done.status, done.error) == ("error", "LookupError: kaput")


def test_a_stop_before_the_start_stops_the_run():
    async def main():
        stream = agent(["late"])("go")
        await anyio.to_thread.run_sync(stream.stop)
        return await stream

    done = anyio.run(main)
    assert (done.status, done.reason, done.answer) == ("interrupted", "stopped from elsewhere", "")


@pytest.mark.parametrize(
    "wait",
    [lambda stream: stream, lambda stream: anext(aiter(stream)), lambda stream: stream.aclose()],
    ids=["await", "iterate", "close"],
)
def test_a_stream_awaited_in_another_event_loop_is_an_error_with_advice(wait):
    async def here():
        await wait(stream)

    with asyncio.Runner() as first:
        stream = agent([{"text": "late", "delay": 60}])("go")
        first.run(_started(stream))
        with pytest.raises(
            UsageError,
            match=r"another event loop and can be awaited only there.* call the agent again",
        ):
            asyncio.run(here())
        first.run(stream.aclose())
    # what is over can be had everywhere
    assert asyncio.run(_awaited(stream)).status == "interrupted"


@pytest.mark.parametrize("start", [lambda by: by("go"), lambda by: by.map([{}], "go")])
def test_the_fault_of_a_run_that_cannot_begin_is_logged_without_secrets(start):
    secret = "a secret of this agent"
    stream = start(Agent(Scripted([]), secrets={"KEY": secret}))
    stream.refuse(f"It cannot begin: {secret}.")
    with pytest.raises(RunFailed):
        wait(lambda: stream)
    assert [e.message for e in stream.log.of("error")] == ["It cannot begin: [redacted KEY]."]


def test_a_model_may_return_a_value_when_it_is_closed():
    class Closing(Scripted):
        async def aclose(self):
            return True

    wait(Agent([Closing([]), Closing([])], secrets={}).aclose)


def test_a_stream_whose_event_loop_is_closed_cannot_go_on(monkeypatch):
    with asyncio.Runner() as first:
        stream = agent([{"text": "late", "delay": 60}])("go")
        first.run(_started(stream))
        with monkeypatch.context() as patched:
            patched.setattr(first.get_loop(), "is_closed", lambda: True)
            with pytest.raises(UsageError, match="which is closed"):
                asyncio.run(_awaited(stream))


async def _started(stream):
    stream.start()


async def _awaited(stream):
    return await stream


def test_cancelling_a_tool_gives_its_call_a_cancelled_result():
    @tool
    async def forever() -> str:
        """Wait."""
        await anyio.sleep_forever()

    async def main():
        stream = agent([calling("forever")], tools=[forever])("go")
        async for event in stream:
            if event.type == "started":
                stream.cancel()
        return stream.run

    done = anyio.run(main)
    assert [e.status for e in done.log.of("result")] == ["cancelled"]
    assert done.log[-1].type == "end"


def test_a_run_executes_once_however_many_iterate():
    ran = []

    @tool
    def count() -> str:
        """Count."""
        ran.append(1)
        return "x"

    async def main():
        stream = agent([calling("count"), "done"], tools=[count])("go")
        seen = [[], []]

        async def follow(i):
            seen[i] = [e.type async for e in stream if e.type != "delta"]

        async with anyio.create_task_group() as group:
            group.start_soon(follow, 0)
            group.start_soon(follow, 1)
        late = [e.type async for e in stream]
        return seen, late

    (a, b), late = anyio.run(main)
    assert ran == [1]
    assert a == b == late


def test_deltas_come_before_their_block_and_add_up():
    async def main():
        return [e async for e in agent([{"text": "Hello world", "chunk": 3}])("go")]

    seen = anyio.run(main)
    assert "".join(e.text for e in seen if e.type == "delta") == "Hello world"
    assert [e.type for e in seen if e.type in ("delta", "respond")][-1] == "respond"


def test_the_conversation_before_is_sent():
    first = run(["I am blue."], prompt="Who are you?")
    sent = []

    class Spy(type(Scripted([]))):
        def stream(self, request):
            sent.extend(request.messages)
            return super().stream(request)

        def start(self):
            return self

    anyio.run(lambda: _await(Agent(Spy(["Yes."]), secrets={})("Sure?", history=[list(first.log)])))
    assert [m.role for m in sent[-3:]] == ["user", "assistant", "user"]
    assert "I am blue." in sent[-2].text


async def _await(stream):
    return await stream


def test_usage_is_added_up_and_estimates_are_marked():
    done = run(
        [
            {"text": CALL, "usage": {"input": 10, "output": 5}},
            {"text": "ok", "usage": {"input": 20, "output": 1}},
        ]
    )
    assert (done.usage.input, done.usage.output) == (30, 6)
    assert run(["hello there"]).log.of("metric")[0].estimated


def test_a_secret_never_reaches_the_log():
    key = "sk-verysecretvalue-1234567890abcdef"

    @tool
    def leak() -> str:
        """Print the key."""
        return f"key={key}"

    done = run(
        [
            {
                "chunks": [
                    "<think>it is sk-very",
                    "secretvalue-1234567890abcdef</think>",
                    calling("leak"),
                ]
            },
            f"Done {key[:9]}",
        ],
        prompt=f"use {key}",
        tools=[leak],
        secrets={"MY_KEY": key},
    )
    text = done.log.to_ndjson()
    assert key not in text
    assert "verysecret" not in text.replace(f"Done {key[:9]}", "")
    assert "[redacted" in text


def test_progress_is_logged_before_the_result_and_nothing_is_lost():
    @tool
    def work():
        """Work."""
        for i in range(500):
            yield f"line {i}\n"
        yield 1.0
        return "all"

    done = run([calling("work"), "ok"], tools=[work])
    texts = [e.text for e in done.log.of("progress") if e.text]
    assert "".join(texts) == "".join(f"line {i}\n" for i in range(500))
    assert len(texts) < 100
    assert done.log.of("progress")[-1].fraction == 1.0
    assert max(e.seq for e in done.log.of("progress")) < done.log.of("result")[0].seq


def test_a_subscriber_that_raises_does_not_end_the_run():
    async def main():
        stream = agent(["fine"])("go")
        stream.log.subscribe(lambda e: 1 / 0)
        return await stream

    done = anyio.run(main)
    assert done.status == "ok"
    assert len(done.log.faults) == 1


def test_run_sync_runs_in_a_script():
    assert agent(["fine"]).run_sync("go").answer == "fine"


REFUSED = [{"error": {"status": 401, "message": "bad key"}}]


def test_awaiting_a_run_that_failed_raises_its_reason_and_has_the_run():
    with pytest.raises(RunFailed, match="The run failed: bad key") as caught:
        anyio.run(lambda: _await(agent(REFUSED)("go")))
    assert isinstance(caught.value, AgentError)
    assert (caught.value.run.status, caught.value.run.log[-1].type) == ("error", "end")


def test_run_sync_raises_for_a_failed_run_without_frames_of_the_loop():
    with pytest.raises(RunFailed, match="bad key") as caught:
        agent(REFUSED).run_sync("go")
    assert not [entry for entry in caught.traceback if "asyncio" in str(entry.path)]


def test_who_does_not_check_gets_the_run_that_failed():
    assert agent(REFUSED).run_sync("go", check=False).status == "error"
    assert anyio.run(lambda: _await(agent(REFUSED)("go", check=False))).error


def test_iterating_over_a_failed_run_gives_events_and_awaiting_it_raises():
    async def main():
        stream = agent(REFUSED)("go")
        seen = [e.type async for e in stream]
        with pytest.raises(RunFailed):
            await stream
        return seen, stream.run.status

    seen, status = anyio.run(main)
    assert (seen[-2:], status) == (["error", "end"], "error")


def test_only_a_run_that_failed_raises_for_its_status():
    limited = run([CALL] * 3, limits={"turns": 1})
    assert limited.status == "limit"
    assert limited.raise_for_status() is limited
    with pytest.raises(RunFailed) as caught:
        (failed := run(REFUSED)).raise_for_status()
    assert caught.value.run is failed


def test_a_run_says_in_one_line_why_it_did_not_end_well():
    assert "bad key" in repr(run(REFUSED))
    assert "'Stopped by the boss'" in repr(_stopped("Stopped by the boss"))
    assert repr(done := run(["fine"])) == f"<Run {done.id}: ok, {len(done.log)} events, 'fine'>"


def _stopped(detail):
    async def main():
        stream = agent(["x"])("go")
        stream.cancel("user", detail)
        return await stream

    return anyio.run(main)


def test_a_failed_run_in_another_process_brings_its_reason():
    failed = pickle.loads(pickle.dumps(RunFailed("The run failed: bad key", run(REFUSED))))
    assert (str(failed), failed.run) == ("The run failed: bad key", None)


def test_run_sync_inside_a_loop_says_what_to_write():
    async def main():
        agent(["x"]).run_sync("go")

    with pytest.raises(UsageError, match="await"):
        anyio.run(main)


def test_a_call_that_needs_approval_is_denied_when_nobody_can_be_asked():
    @tool(effect="outside")
    def send() -> str:
        """Send."""
        return "sent"

    done = run([calling("send"), "ok"], tools=[send])
    assert [e.status for e in done.log.of("result")] == ["denied"]
    assert "--approve" in done.log.of("result")[0].content
    assert [e.stage for e in done.log.of("approval")] == ["requested", "decided"]


def test_a_model_that_has_to_load_is_shown_live_and_leaves_no_trace():
    class Loading:
        class Now:
            state, fraction = "loading", 0.5

        now = Now()

        def subscribe(self, listener):
            listener(self.now)
            return lambda: None

    class Slow(Scripted):
        loading = Loading()

        def start(self):
            return self

    async def main():
        return [e async for e in Agent(Slow([{"text": "hi", "delay": 0.01}]), secrets={})("go")]

    seen = anyio.run(main)
    assert [e.text for e in seen if e.type == "delta"] == ["loading the model 50%", "hi"]
    assert next(e for e in seen if e.type == "respond").chunks


BROKEN = '§CALL: {"name": "echo", "args": {"x": 1,}}'
SOUND = '§CALL: {"name": "echo", "args": {"x": "a"}}'


@pytest.mark.parametrize("before", ["", f"{SOUND}\n"])
def test_a_malformed_section_call_says_what_is_wrong_with_its_json(before):
    texts = [f"{before}{BROKEN}\n§EXECUTE", "§RESPOND: sorry\n§END"]
    done = run(texts, dialect="section")
    (error,) = done.log.of("error")
    assert error.code == "malformed_execute"
    assert "trailing comma in object" in error.message
    assert [r.status for r in done.log.of("result")] == ["ok"] * bool(before)
    assert any(m["role"] == "user" and "trailing comma" in m["content"] for m in done.messages())
    assert done.answer == "sorry"


def test_an_empty_batch_goes_back_to_the_model():
    done = run(["<execute>[]</execute>", "I meant to answer."])
    assert done.answer == "I meant to answer."
    assert [e.code for e in done.log.of("error")] == ["malformed_execute"]


def test_a_server_that_refuses_tools_is_asked_in_text_and_says_so_once():
    refuse = {
        "error": {"status": 400, "code": "no_tools", "message": "This server takes no tools."}
    }
    done = run([refuse, CALL, "done"], dialect="native")
    assert [e.code for e in done.log.of("error")] == ["no_tools"]
    assert "xml" in done.log.of("error")[0].message
    assert done.log.of("result")[0].content == "echo 1"
    assert done.answer == "done"


def test_near_its_last_turn_the_model_is_asked_to_finish():
    sent = []

    class Spy(Scripted):
        def start(self):
            return self

        def stream(self, request):
            sent.append(request.messages[-1].text)
            return super().stream(request)

    anyio.run(
        lambda: _await(
            Agent(Spy([CALL, CALL, "done"]), [echo], secrets={}, limits={"turns": 3})("go")
        )
    )
    assert ["last turn" in text for text in sent] == [False, False, True]


def test_further_thought_tags_are_a_matter_of_configuration():
    text = "<analysis>hm</analysis>yes"
    assert run([text]).answer == text
    done = run([text], thought_tags=["analysis"])
    assert ([e.content for e in done.log.of("think")], done.answer) == (["hm"], "yes")


@pytest.mark.parametrize(
    ("notes", "status"),
    [([], "ok"), ([e.State(kind="foreign_turns", payload={"turns": 1})], "denied")],
)
def test_what_is_allowed_until_a_restart_is_not_used_after_others_turns(notes, status, monkeypatch):
    monkeypatch.setattr(
        "agent_nb.tools.kernel_permissions.KERNEL_PERMISSIONS", standing := KernelPermissions()
    )

    @tool(effect="outside")
    def post(text: str):
        return "posted"

    agent = Agent(
        Scripted([calling("post", text="x"), "done"]),
        [post],
        secrets={},
    )
    standing.allow(agent.tools["post"])
    run = agent.run_sync("go", notes=notes)
    assert [r.status for r in run.log.of("result")] == [status]


@pytest.mark.parametrize("option", ["limits", "settings", "secrets"])
def test_an_option_of_another_type_is_an_error_that_names_it(option):
    with pytest.raises(UsageError, match=rf"^{option} is a list\. Give "):
        Agent(Scripted(["yes"]), **{option: [1]})


def test_runs_as_history_are_an_error_that_shows_their_events():
    agent = Agent(Scripted(["yes"]), secrets={})
    run = agent.run_sync("go")
    for history in ([run], run, run.events, "go", None):
        with pytest.raises(UsageError, match=r"history=\[run\.events\]"):
            agent.run_sync("on", history=history)
    assert agent.run_sync("on", history=[run.events, run.log]).answer == "yes"


def test_a_secret_that_is_not_set_is_left_out_and_the_others_are_hidden():
    secrets = {"KEY": "a-long-secret-1", "OTHER": None}  # as `os.environ.get` gives them
    run = Agent(Scripted(["yes"]), secrets=secrets).run_sync("hide a-long-secret-1")
    assert run.log.of("user")[0].content == "hide [redacted KEY]"


def test_a_secret_that_is_added_to_the_dict_later_is_hidden_too():
    secrets = {}
    agent = Agent(Scripted(["yes"]), secrets=secrets)
    secrets["KEY"] = "a-long-secret-1"
    run = agent.run_sync("hide a-long-secret-1")
    assert run.log.of("user")[0].content == "hide [redacted KEY]"


def test_a_secret_of_pydantic_is_hidden_and_what_is_no_text_is_refused():
    agent = Agent(Scripted(["yes"]), secrets={"KEY": SecretStr("a-long-secret-1")})
    run = agent.run_sync("hide a-long-secret-1")
    assert run.log.of("user")[0].content == "hide [redacted KEY]"
    with pytest.raises(UsageError, match=r"The secret 'KEY' is of type int\. Give a text"):
        Agent(Scripted(["yes"]), secrets={"KEY": 12345678})


@pytest.mark.parametrize("option", ["system", "dialect", "name"])
def test_an_option_that_is_no_text_is_refused_when_the_agent_is_made(option):
    with pytest.raises(UsageError, match=rf"{option} is of type int\. Give a text"):
        Agent(Scripted(["yes"]), **{option: 3})
