"""The runner: one outcome per call whatever happens, order where it matters, and a prompt stop."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import msgspec
import pytest

from agent_nb.errors import Cancelled, ToolError
from agent_nb.models.messages import ToolSpec
from agent_nb.tools.approval import Approver
from agent_nb.tools.base import Outcome, Tool, ToolContext, Update
from agent_nb.tools.decorator import as_tool, tool
from agent_nb.tools.policy import Policy
from agent_nb.tools.runner import ToolRunner
from agent_nb.tools.running_call import Job
from agent_nb.tools.toolset import Toolset

Run = Callable[..., Any]


def add(a: int, b: int = 1) -> int:
    return a + b


def test_a_call_is_started_then_ended_with_its_value(run: Run) -> None:
    outcomes, record = run([add], ("add", {"a": "2"}))
    assert [(o.status, o.content) for o in outcomes] == [("ok", 3)]
    assert record.kinds("c1") == ["started", "end"]


def test_outcomes_are_in_call_order_whatever_ends_first(run: Run) -> None:
    gate = threading.Event()

    def first() -> str:
        gate.wait()
        return "first"

    def second() -> str:
        gate.set()
        return "second"

    outcomes, record = run([first, second], ("first", {}), ("second", {}))
    assert [o.content for o in outcomes] == ["first", "second"]
    assert len(record.of("end")) == 2


def test_calls_run_at_the_same_time_up_to_the_limit(run: Run) -> None:
    meeting = threading.Barrier(3, timeout=20)
    lock = threading.Lock()
    running: list[int] = [0, 0]

    def meet() -> None:
        with lock:
            running[0] += 1
            running[1] = max(running)
        meeting.wait()
        with lock:
            running[0] -= 1

    outcomes, _ = run([meet], *[("meet", {})] * 6, limit=3)
    assert [o.status for o in outcomes] == ["ok"] * 6
    assert running[1] == 3


def test_calls_that_change_the_kernel_run_one_by_one_in_call_order(run: Run) -> None:
    order: list[str] = []

    @tool(effect="kernel")
    async def step(n: int) -> None:
        order.append(f"begin {n}")
        await asyncio.sleep(0)
        order.append(f"end {n}")

    run([step], *[("step", {"n": n}) for n in range(4)])
    assert order == [f"{word} {n}" for n in range(4) for word in ("begin", "end")]


@pytest.mark.parametrize(
    ("name", "args", "fault", "said"),
    [
        ("ad", {}, "", "There is no tool named 'ad'. Did you mean add? Tools: add."),
        ("add", {"a": "x"}, "", "a: expected a valid integer"),
        ("add", {"a": 1}, "The call was malformed.", "The call was malformed."),
    ],
)
def test_a_call_that_cannot_run_is_an_error_and_never_started(
    run: Run, name: str, args: Any, fault: str, said: str
) -> None:
    outcomes, record = run([add], (name, args, fault))
    assert outcomes[0].status == "error"
    assert said in outcomes[0].content
    assert record.kinds("c1") == ["end"]


def test_a_validator_that_breaks_is_an_error_of_the_call(run: Run) -> None:
    broken = Tool(
        spec=ToolSpec("x", "", {}), invoke=lambda: None, validate=lambda args: args["missing"]
    )
    outcomes, _ = run(Toolset([broken]), ("x", {}))
    assert outcomes[0] == Outcome(
        "error", "The arguments of 'x' are not valid: KeyError: 'missing'"
    )


def raising(error: BaseException) -> Callable[[], None]:
    def f() -> None:
        raise error

    return f


def raising_async(error: BaseException) -> Callable[[], Any]:
    async def f() -> None:
        raise error

    return f


@pytest.mark.parametrize("kind", [raising, raising_async], ids=["thread", "loop"])
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("x"), "error"),
        (ToolError("x"), "error"),
        (StopIteration("x"), "error"),
        (StopAsyncIteration("x"), "error"),
        (TimeoutError("x"), "error"),
        (MemoryError("x"), "error"),
        (SystemExit(1), "error"),
        (GeneratorExit(), "error"),
        (KeyboardInterrupt(), "cancelled"),
        (Cancelled("user"), "cancelled"),
        (asyncio.CancelledError(), "cancelled"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_a_tool_raises_is_one_outcome(
    run: Run, kind: Any, error: BaseException, status: str
) -> None:
    outcomes, record = run(
        Toolset([as_tool(kind(error), "bad"), as_tool(add)]), ("bad", {}), ("add", {"a": 1})
    )
    assert [o.status for o in outcomes] == [status, "ok"]
    assert len(record.of("end", "c1")) == 1


def test_a_sync_generators_yields_are_progress_and_its_return_the_result(
    run: Run,
) -> None:
    def steps() -> Iterator[Any]:
        yield "text\n"
        yield 0.5
        yield {"any": "json"}
        yield Update(message="m", fraction=1.0)
        return "done"

    outcomes, record = run([steps], ("steps", {}))
    assert outcomes[0].content == "done"
    assert record.of("update") == [
        Update(text="text\n"),
        Update(fraction=0.5),
        Update(data={"any": "json"}),
        Update(message="m", fraction=1.0),
    ]
    assert record.kinds("c1") == ["started", *["update"] * 4, "end"]


def test_an_async_generators_last_yield_that_is_no_fraction_is_the_result(run: Run) -> None:
    async def steps() -> AsyncIterator[Any]:
        yield 0.1
        yield {"found": 3}
        yield 1.0

    outcomes, record = run([steps], ("steps", {}))
    assert outcomes[0].content == {"found": 3}
    assert len(record.of("update")) == 3


@pytest.mark.parametrize(
    ("items", "content"),
    [
        ([], "(no value)"),
        ([0.5, 1.0], "(no value)"),
        (["a", "b"], "b"),
        ([Update(text="t")], "t"),
        ([Update(data=[1])], [1]),
    ],
)
def test_the_result_of_a_generator_that_returns_nothing(
    run: Run, items: list[Any], content: Any
) -> None:
    def steps() -> Iterator[Any]:
        yield from items

    assert run([steps], ("steps", {}))[0][0].content == content


def test_a_generator_that_yields_what_is_no_json_goes_on(run: Run) -> None:
    def steps() -> Iterator[Any]:
        yield object()
        yield "\ud800"
        return 1

    outcomes, record = run([steps], ("steps", {}))
    assert outcomes[0].content == 1
    assert record.of("update") == [Update(text="<object object>"), Update(text="\ufffd")]


def test_a_generator_that_raises_keeps_its_progress(run: Run) -> None:
    def steps() -> Iterator[Any]:
        yield 0.5
        raise ValueError("half")

    outcomes, record = run([steps], ("steps", {}))
    assert outcomes[0].content == "ValueError: half"
    assert record.kinds("c1") == ["started", "update", "end"]


def test_a_plain_function_may_return_an_awaitable_or_an_async_generator(run: Run) -> None:
    async def later() -> str:
        return "later"

    async def items() -> AsyncIterator[str]:
        yield "item"

    def one() -> Any:
        return later()

    def two() -> Any:
        return items()

    assert [o.content for o in run([one, two], ("one", {}), ("two", {}))[0]] == ["later", "item"]


def test_the_context_says_who_calls_and_is_shared_state_of_the_run(run: Run) -> None:
    def look(context: ToolContext) -> Any:
        context.state["n"] = context.state.get("n", 0) + 1
        return [context.call_id, context.name, context.trace_id, context.folder, context.state["n"]]

    outcomes, _ = run([look], ("look", {}), ("look", {}), limit=1, trace_id="t", folder="/f")
    assert [o.content for o in outcomes] == [
        ["c1", "look", "t", "/f", 1],
        ["c2", "look", "t", "/f", 2],
    ]


def test_progress_of_ten_thousand_pieces_from_threads_is_whole_in_order(
    run: Run,
) -> None:
    def chatty(tag: str, context: ToolContext) -> None:
        for i in range(10_000):
            context.progress(f"{tag}{i}\n")

    _, record = run([chatty], ("chatty", {"tag": "a"}), ("chatty", {"tag": "b"}))
    for call_id, tag in (("c1", "a"), ("c2", "b")):
        assert [u.text for u in record.of("update", call_id)] == [
            f"{tag}{i}\n" for i in range(10_000)
        ]
        assert record.kinds(call_id)[-1] == "end"
    assert record.threads == {threading.get_ident()}


def test_progress_that_is_no_json_is_a_type_error_in_the_tool(run: Run) -> None:
    def f(context: ToolContext) -> None:
        context.progress(object())

    assert run([f], ("f", {}))[0][0].content.startswith("TypeError")


def test_what_is_said_after_the_end_is_dropped_and_ends_the_speaker(run: Run) -> None:
    go, seen, threads = threading.Event(), [], []

    def late(context: ToolContext) -> str:
        def speak() -> None:
            go.wait()
            try:
                context.progress("late")
            except Cancelled:
                seen.append("cancelled")

        threads.append(threading.Thread(target=speak, daemon=True))
        threads[0].start()
        return "done"

    outcomes, record = run([late], ("late", {}))
    go.set()
    threads[0].join()
    assert outcomes[0].content == "done"
    assert seen == ["cancelled"]
    assert record.of("update") == []


def test_context_variables_reach_tools_and_reports_run_outside_the_tools(
    record: Any,
) -> None:
    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="")
    seen: list[str] = []

    class Report(record):  # type: ignore[misc]
        def update(self, call_id: str, news: Update) -> None:
            seen.append(mark.get())

    def f(context: ToolContext) -> str:
        found = mark.get()
        mark.set("tool")
        context.progress("x")
        return found

    async def g(context: ToolContext) -> str:
        return f(context)

    async def main() -> list[Outcome]:
        mark.set("caller")
        return await ToolRunner(Toolset.resolve([f, g])).run(
            [Job("1", "f", {}), Job("2", "g", {})], Report()
        )

    assert [o.content for o in anyio.run(main)] == ["caller", "caller"]
    assert seen == ["caller", "caller"]


def test_a_sync_tool_for_the_main_thread_runs_there_or_without_a_host(run: Run, host: Any) -> None:
    @tool(thread="main")
    def where() -> Iterator[Any]:
        yield 0.5
        return threading.get_ident()

    with_host, record = run([where], ("where", {}), host=host)
    assert with_host[0].content == host.idents[0]
    assert record.of("update") == [Update(fraction=0.5)]
    without, _ = run([where], ("where", {}))
    assert without[0].status == "ok"
    assert without[0].content != threading.get_ident()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("x")])
def test_an_error_on_the_main_thread_is_the_calls(
    run: Run, host: Any, error: BaseException
) -> None:
    made = tool(thread="main")(raising(error))
    assert run([made], ("f", {}), host=host)[0][0].status in ("cancelled", "error")


def test_a_call_that_takes_too_long_is_a_timeout_and_hurts_no_other(run: Run) -> None:
    release = threading.Event()

    @tool(timeout=0.01)
    def stuck() -> None:
        release.wait()

    @tool(timeout=0.01)
    async def stuck_async() -> None:
        await asyncio.Event().wait()

    outcomes, _ = run(
        [stuck, stuck_async, add], ("stuck", {}), ("stuck_async", {}), ("add", {"a": 1})
    )
    release.set()
    assert [o.status for o in outcomes] == ["timeout", "timeout", "ok"]
    assert outcomes[0].content == "stuck was stopped: it took longer than 0.01 seconds."


def test_the_runners_timeout_is_for_tools_that_set_none(run: Run) -> None:
    async def stuck() -> None:
        await asyncio.Event().wait()

    assert run([stuck], ("stuck", {}), timeout=0.01)[0][0].status == "timeout"


def test_a_tool_that_stops_when_asked_keeps_what_it_had_on_a_timeout(run: Run) -> None:
    @tool(timeout=0.01)
    def polite(context: ToolContext) -> Outcome:
        asked = threading.Event()
        context.on_cancel(asked.set)
        asked.wait()
        return Outcome("cancelled", "half of it")

    # its thread may come to what it says later than the default grace allows
    patient = msgspec.structs.replace(as_tool(polite), grace=20.0)
    assert (
        run([patient], ("polite", {}))[0][0].content
        == "half of it\n[polite was stopped: it took longer than 0.01 seconds.]"
    )


def stubborn_thread() -> None:
    threading.Event().wait()


async def stubborn_task() -> None:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if not _holding:
                raise


_holding = [True]


async def cancel_when(
    record: Any, started: int, runner: ToolRunner, jobs: list[Job], ended: int = 0
) -> Any:
    """Cancel a running batch once so many calls have begun and ended; return its task."""
    task = asyncio.create_task(runner.run(jobs, record))
    await record.seen("started", started)
    await record.seen("end", ended)
    task.cancel()
    await asyncio.wait([task])
    return task


def test_a_cancelled_batch_gives_every_call_one_outcome(
    record: Any,
) -> None:
    quick = as_tool(add)

    async def main() -> tuple[Any, Any]:
        kept = record()
        tools = Toolset([as_tool(stubborn_thread), as_tool(stubborn_task), quick])
        jobs = [
            Job("1", "stubborn_thread", {}),
            Job("2", "stubborn_task", {}),
            Job("3", "add", {"a": 1}),
            Job("4", "nope", {}),
        ]
        task = await cancel_when(kept, 3, ToolRunner(tools), jobs, ended=2)
        _holding.clear()
        return task, kept

    task, kept = anyio.run(main)
    _holding.append(True)
    assert task.cancelled()
    assert {c: o.status for k, c, o in kept.all if k == "end"} == {
        "1": "cancelled",
        "2": "cancelled",
        "3": "ok",
        "4": "error",
    }
    assert len(kept.of("end")) == 4


def test_calls_that_wait_for_a_slot_or_a_turn_are_cancelled_unstarted(
    record: Any,
) -> None:
    @tool(effect="kernel")
    async def hold() -> None:
        await asyncio.Event().wait()

    async def main() -> Any:
        kept = record()
        allow = Approver(Policy("allow"))
        runner = ToolRunner(
            Toolset([as_tool(hold), as_tool(stubborn_thread)]), limit=1, approver=allow
        )
        jobs = [Job("1", "hold", {}), Job("2", "hold", {}), Job("3", "stubborn_thread", {})]
        await cancel_when(kept, 1, runner, jobs)
        return kept

    kept = anyio.run(main)
    assert [o.status for o in kept.of("end")] == ["cancelled"] * 3
    assert len(kept.of("started")) == 1


def test_a_cancelled_anyio_scope_stops_a_batch_and_ends_every_call(record: Any) -> None:
    async def main() -> Any:
        kept = record()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await ToolRunner(Toolset.resolve([add])).run([Job("1", "add", {"a": 1})], kept)
        assert scope.cancelled_caught
        return kept

    assert [o.status for o in anyio.run(main).of("end")] == ["cancelled"]


def test_a_second_cancel_while_stopping_still_ends_every_call(record: Any) -> None:
    async def main() -> Any:
        kept = record()
        task = asyncio.create_task(
            ToolRunner(Toolset.resolve([stubborn_thread, stubborn_task])).run(
                [Job("1", "stubborn_thread", {}), Job("2", "stubborn_task", {})], kept
            )
        )
        await kept.seen("started", 2)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        _holding.clear()
        return kept

    kept = anyio.run(main)
    _holding.append(True)
    assert sorted(c for k, c, _ in kept.all if k == "end") == ["1", "2"]


def test_a_stopped_tool_is_told_and_a_loop_that_reports_ends_by_itself(
    record: Any,
) -> None:
    ended: list[str] = []
    over = threading.Event()

    def loops(context: ToolContext) -> None:
        context.on_cancel(lambda: ended.append("callback"))
        try:
            while True:
                context.progress("x")
        except Cancelled:
            ended.append("raised")
        finally:
            over.set()

    async def main() -> Any:
        kept = record()
        await cancel_when(kept, 1, ToolRunner(Toolset.resolve([loops])), [Job("1", "loops", {})])
        return kept

    kept = anyio.run(main)
    assert over.wait(20)
    assert sorted(ended) == ["callback", "raised"]
    assert [o.status for o in kept.of("end")] == ["cancelled"]


def test_what_a_tool_still_returns_when_it_is_stopped_is_kept_as_cancelled(record: Any) -> None:
    async def partly(context: ToolContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "half of it"
        return "all of it"

    async def main() -> Any:
        kept = record()
        await cancel_when(kept, 1, ToolRunner(Toolset.resolve([partly])), [Job("1", "partly", {})])
        return kept

    (outcome,) = anyio.run(main).of("end")
    assert (outcome.status, outcome.content) == ("cancelled", "half of it")


def test_a_tool_may_ask_for_more_time_to_clean_up(record: Any) -> None:
    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.1)
            return "clean"
        return ""

    async def main() -> Any:
        kept = record()
        patient = msgspec.structs.replace(as_tool(slow), grace=20.0)
        await cancel_when(kept, 1, ToolRunner(Toolset([patient])), [Job("1", "slow", {})])
        return kept

    assert [o.content for o in anyio.run(main).of("end")] == ["clean"]


def test_a_cancelled_generator_is_closed(record: Any) -> None:
    closed = threading.Event()

    def steps() -> Iterator[str]:
        try:
            while True:
                yield "x"
        finally:
            closed.set()

    async def main() -> None:
        await cancel_when(
            record(), 1, ToolRunner(Toolset.resolve([steps])), [Job("1", "steps", {})]
        )

    anyio.run(main)
    assert closed.wait(20)


def test_python_code_that_loops_without_looking_up_is_ended_in_its_thread(record: Any) -> None:
    threads: list[threading.Thread] = []

    def spin() -> None:
        threads.append(threading.current_thread())
        while True:
            pass

    async def main() -> None:
        await cancel_when(record(), 1, ToolRunner(Toolset.resolve([spin])), [Job("1", "spin", {})])

    anyio.run(main)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_a_tool_that_never_returns_does_not_keep_the_interpreter_alive() -> None:
    code = """
import anyio, threading
from agent_nb.tools.runner import ToolRunner
from agent_nb.tools.running_call import Job
from agent_nb.tools.toolset import Toolset
class Report:
    def started(self, c): print("started")
    def update(self, c, n): pass
    def end(self, c, o): print(o.status)
def stuck(): threading.Event().wait()
anyio.run(ToolRunner(Toolset.resolve([stuck]), timeout=0.05).run, [Job("1", "stuck", {})], Report())
"""
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert shown.stdout.split() == ["started", "timeout"]
    assert shown.stderr == ""


def test_a_tool_that_is_an_agent_relays_events_and_knows_asker_and_limits(
    run: Run, asker: Any
) -> None:
    kept: list[Callable[[Any], None]] = []

    async def agent(context: ToolContext) -> Any:
        context.relay("event")
        kept.append(context.relay)
        return [context.ask is ask, context.remaining()]

    ask = asker()
    outcomes, record = run(
        [agent], ("agent", {}), approver=Approver(None, ask), remaining=lambda: {"turns": 3}
    )
    kept[0]("late")
    assert outcomes[0].content == [True, {"turns": 3}]
    assert record.of("relay") == ["event"]


def test_an_empty_batch_is_nothing(run: Run) -> None:
    assert run([add])[0] == []


def test_the_size_of_what_the_model_reads_is_the_runners_choice(run: Run) -> None:
    def long() -> str:
        return "x" * 1000

    assert len(run([long], ("long", {}), result_limit=100)[0][0].content) < 200


def test_every_outcome_can_be_written_as_json(run: Run) -> None:
    def odd() -> Any:
        return {"n": float("nan"), "b": b"\xff", "s": {1}, "big": 2**99, "t": "\udc00", 1: object()}

    outcomes, _ = run([odd], ("odd", {}))
    assert msgspec.json.decode(msgspec.json.encode(outcomes[0]))["content"]["n"] == "NaN"


def test_duration_is_that_of_the_tool_and_none_for_what_never_ran(run: Run) -> None:
    outcomes, _ = run([add], ("add", {"a": 1}), ("nope", {}))
    assert outcomes[0].duration > 0
    assert outcomes[1].duration == 0


def test_a_report_that_raises_does_not_hang_the_batch(record: Any) -> None:
    class Broken(record):  # type: ignore[misc]
        def started(self, call_id: str) -> None:
            raise RuntimeError("report")

    @tool(effect="kernel")
    def f() -> None: ...

    async def main() -> None:
        runner = ToolRunner(Toolset.resolve([f]), approver=Approver(Policy("allow")))
        await runner.run([Job("1", "f", {}), Job("2", "f", {})], Broken())

    with pytest.raises(RuntimeError, match="report"):
        anyio.run(main)
