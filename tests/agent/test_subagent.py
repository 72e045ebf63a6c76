"""An agent as a tool: its run travels inside the parent's, bounded by it, stopped with it."""

import anyio
import pytest
from helpers.scripts import calling
from helpers.waiting import wait

from agent_nb import CALLS, TURNS, Agent, Scripted, ToolContext, tool
from agent_nb.agent.limits import Limits, Meter
from agent_nb.agent.subagent import tighten
from agent_nb.errors import UsageError
from agent_nb.events import Counts
from agent_nb.events.frame import to_frame

ASK = calling("helper", prompt="look")
CALL = calling("trace")


def tracing():
    @tool
    def trace() -> str:
        """Do nothing."""
        return "x"

    return trace


def child(turns, tools=(), **options):
    return Agent(Scripted(turns), tools, name="helper", secrets={}, **options)


def parent(turns, helper, **options):
    return Agent(Scripted(turns), [helper.as_tool()], secrets={}, **options)


def run(agent):
    return wait(lambda: agent("go"))


def test_the_childs_answer_is_the_result():
    done = run(parent([ASK, "It found it."], child(["found it"])))
    assert done.log.of("result")[0].content == "found it"
    assert done.answer == "It found it."
    assert done.status == "ok"


def test_the_childs_events_are_a_node_below_the_call():
    done = run(parent([ASK, "ok"], child(["<think>hm</think>found"])))
    call = done.log.of("call")[0].call_id
    inside = [e for e in done.log if e.span == call or e.span.startswith(call + "/")]
    assert [e.type for e in inside if e.type in ("think", "respond", "end")] == [
        "think",
        "respond",
        "end",
    ]
    outer = [e for e in inside if e.type == "node" and e.name == "helper"]
    assert [e.phase for e in outer] == ["enter", "exit"]
    assert outer[1].result == "ok"


def test_the_trace_id_is_constant():
    seen = []

    @tool
    def trace(context: ToolContext) -> str:
        """Say the trace."""
        seen.append(context.trace_id)
        return "x"

    run(
        Agent(
            Scripted([CALL, ASK, "ok"]),
            [child([CALL, "found"], [trace]).as_tool(), trace],
            secrets={},
            trace_id="T1",
        )
    )
    assert seen == ["T1", "T1"]


def test_the_childs_usage_counts_in_the_parents():
    helper = child([{"text": "found", "usage": {"input": 100, "output": 10}}])
    done = run(
        parent(
            [
                {"text": ASK, "usage": {"input": 5, "output": 1}},
                {"text": "ok", "usage": {"input": 7, "output": 2}},
            ],
            helper,
        )
    )
    assert (done.usage.input, done.usage.output) == (112, 13)


def test_a_child_that_uses_up_the_parents_tokens_ends_the_run():
    helper = child([{"text": "found", "usage": {"input": 1000, "output": 10}}])
    done = run(parent([ASK, "never"], helper, limits={"tokens": 500}))
    assert done.status == "limit"
    assert [e.type for e in done.log].count("result") == 1


def test_what_a_child_spent_counts_where_it_ends_the_run():
    paid = {"text": "found", "usage": {"input": 500, "output": 400, "cost": 2.0}}
    first = {"text": ASK, "usage": {"input": 5, "output": 5, "cost": 0.5}}
    done = run(parent([first, "never"], child([paid]), limits={"cost": 1}))
    assert done.status == "limit"
    assert (done.usage.input, done.usage.output, done.usage.cost) == (505, 405, 2.5)


def test_a_child_may_call_no_more_tools_than_the_parent_has_left():
    helper = child([CALL, CALL, CALL, CALL, "found"], [tracing()])
    done = run(parent([ASK, "ok"], helper, limits={"tool_calls": 3}))
    assert [e.status for e in done.log.of("result") if e.name == "trace"].count("ok") == 2
    assert next(e for e in done.log.of("end") if e.span).status == "limit"
    assert "limit" in next(e for e in done.log.of("result") if e.name == "helper").content


def test_a_childs_own_limits_count_where_they_are_tighter():
    helper = child([CALL, CALL, "found"], [tracing()], limits={"turns": 1})
    done = run(parent([ASK, "ok"], helper))
    assert next(e for e in done.log.of("end") if e.span).status == "limit"


def test_a_budget_that_is_spent_leaves_a_child_a_limit():
    meter = Meter(Limits(cost=0.5, turns=1))
    meter.turns += 1
    meter.add(Counts(cost=0.5))
    left = tighten(Limits(cost=2.0, turns=9), meter.remaining())
    assert 0 < left.cost < 0.001
    assert left.turns == 1


def test_a_childs_budget_of_whole_dollars_is_cut_to_what_is_left():
    left = tighten(Limits(cost=1, turns=9), {"cost": 0.4, "turns": 3})
    assert (left.cost, left.turns) == (0.4, 3)


def test_cancelling_the_parent_ends_the_child_properly():
    async def main():
        stream = parent([ASK], child([{"text": "late", "delay": 30}]))("go")
        async for event in stream:
            if event.type == "node" and event.name == "helper":
                stream.cancel()
        return stream.run

    done = anyio.run(main)
    ends = done.log.of("end")
    assert [e.status for e in ends] == ["interrupted", "interrupted"]
    assert ends[0].span
    assert not ends[1].span
    assert [e.status for e in done.log.of("result")] == ["cancelled"]


def test_a_child_that_fails_is_an_error_result():
    done = run(parent([ASK, "sorry"], child([{"error": {"status": 401, "message": "bad key"}}])))
    result = done.log.of("result")[0]
    assert result.status == "error"
    assert "bad key" in result.content


def test_deltas_of_the_child_fold_into_its_blocks():
    done = run(parent([ASK, "ok"], child([{"text": "found it", "chunk": 2}])))
    inner = next(e for e in done.log.of("respond") if e.span)
    assert inner.chunks
    assert "".join(d.text for d in done.log.deltas() if d.block == inner.block) == "found it"


def test_a_sub_agent_needs_a_name():
    with pytest.raises(UsageError, match="name"):
        Agent(Scripted(["x"]), secrets={}).as_tool()


def test_calls_and_turns_name_the_notebook_and_the_model_that_made_them():
    inner = Agent(Scripted([CALL, "Well."], "the child"), [tracing()], name="helper", secrets={})
    log = run(Agent(Scripted([ASK, "Done."], "the parent"), [inner.as_tool()], secrets={})).log
    calls, turns = to_frame(log, CALLS), to_frame(log, TURNS)
    assert list(calls["model"]) == ["the parent", "the child"]
    assert set(turns["model"]) == {"the parent"}
    assert {"notebook", "model"} <= {*calls.columns} & {*turns.columns}
