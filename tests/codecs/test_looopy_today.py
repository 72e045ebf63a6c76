"""Streams in the shape of Looopy's server of today: places, sub-agents, questions, usage."""

import pytest
from helpers.examples import EXHAUSTIVE
from helpers.streams import ndjson, stored

from agent_nb import events as ev
from agent_nb.agent.history import write_messages
from agent_nb.dialects import native
from agent_nb.view.cards import approval
from agent_nb.view.cards.base import Context
from agent_nb.view.state.fold import RunView

pytestmark = pytest.mark.property  # with AGENT_NB_EXHAUSTIVE a stream is cut at every character

T = {"taskId": "t1", "contextId": "c1"}


@pytest.fixture
def read(tool):
    """Read events whole, by line and cut anywhere; they come out again as they came."""

    def run(*objs):
        codec, text = tool("looopy"), ndjson(*objs)
        events = codec.read(text)
        assert codec.read(text.splitlines(keepends=True)) == events
        places = range(0, len(text), 1 if EXHAUSTIVE else 7)
        assert all(codec.read([text[:n], text[n:]]) == events for n in places)
        assert codec.lines(events) == list(objs)
        assert codec.lines(stored(events)) == list(objs)
        assert not codec.decoder.losses
        return stored(events)

    return run


# Usage.


def usage(**fields):
    return {
        "kind": "llm-usage",
        **T,
        "model": "m",
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "total_tokens": 130,
        **fields,
    }


def test_thoughts_and_cache_tokens_of_each_request_are_added_up(read):
    one = usage(
        completion_tokens_details={"reasoning_tokens": 20, "text_tokens": 10},
        cache_creation_input_tokens=40,
        cache_read_input_tokens=50,
    )
    two = usage(prompt_tokens_details={"cached_tokens": 60}, completion_tokens_details=None)
    first, second = (e for e in read(one, two) if e.type == "metric")
    assert first.step == ev.Counts(input=100, output=30, cached=50, cache_written=40, reasoning=20)
    assert second.step == ev.Counts(input=100, output=30, cached=60)
    assert second.total == ev.Counts(
        input=200, output=60, cached=110, cache_written=40, reasoning=20
    )


@pytest.mark.parametrize("value", [None, "20", -1, [], {"reasoning_tokens": "x"}, True])
def test_usage_of_another_shape_counts_as_none(value, read):
    odd = usage(completion_tokens_details=value, cache_creation_input_tokens=value)
    assert [e.step for e in read(odd) if e.type == "metric"] == [ev.Counts(input=100, output=30)]


def test_our_usage_is_written_with_thoughts_and_cache_and_nothing_is_lost(tool):
    step = ev.Counts(input=100, output=30, cached=50, cache_written=40, reasoning=20)
    codec = tool("looopy")
    (line,) = codec.lines([ev.Metric(step=step)])
    assert line["completion_tokens_details"] == {"reasoning_tokens": 20}
    assert (line["cache_read_input_tokens"], line["cache_creation_input_tokens"]) == (50, 40)
    codec.write([ev.Metric(step=step)])
    assert not codec.encoder.losses.counts()
    again = tool("looopy").read(ndjson(line))
    assert [e.step for e in again if e.type == "metric"] == [step]


# § Sub-Agent Event Namespacing: `tool:` and `agent:` in a path.


def frame(kind, task="t1", path=None, **fields):
    return {
        "kind": kind,
        "taskId": task,
        "contextId": "c1",
        **fields,
        **({"path": path} if path else {}),
    }


def tool_run(call_id, name, *, path=None, task="t1", args=None, result="r"):
    """The frames of one call as the server sends them: the call itself has no path."""
    about = {"toolCallId": call_id, "toolName": name}
    return [
        frame("tool-call", task, **about, arguments=args or {}),
        frame("tool-start", task, path, **about, arguments=args or {}),
        frame("tool-complete", task, path, **about, success=True, result=result),
    ]


ANSWER = [
    frame("content-delta", delta="It is 4.", index=0),
    frame("content-complete", content="It is 4.", finishReason="stop"),
    frame("task-complete", content="It is 4."),
]
CALCULATED = [
    frame("task-created", initiator="user"),
    *tool_run("x", "calc", path=["tool:calc"], args={"e": "2+2"}, result=4),
    *ANSWER,
]


def test_the_place_of_a_tool_in_a_path_is_no_run_of_its_own(read):
    events = read(*CALCULATED)
    assert [(e.type, e.span) for e in events] == [
        ("run_start", ""),
        ("call", ""),
        ("started", ""),
        ("result", ""),
        ("respond", ""),
        ("end", ""),
    ]
    assert [(e.path, e.content) for e in events if e.type == "result"] == [("tool:calc", 4)]


def test_messages_hold_calls_and_results_whose_events_have_a_place(read):
    text = str(write_messages(native.dialect, [read(*CALCULATED)]))
    assert "CallBlock" in text
    assert "ResultBlock" in text


@pytest.mark.parametrize("target", ["agent-event", "ag-ui", "ui-message", "loom", "cogency"])
def test_conversions_keep_calls_and_results_whose_events_have_a_place(target, read, tool):
    lines = str(tool(target).lines(read(*CALCULATED)))
    assert all(word in lines for word in ("calc", "2+2", "It is 4."))
    again = tool(target).read(ndjson(*tool(target).lines(read(*CALCULATED))))
    assert [str(e.content) for e in again if e.type == "result"] == ["4"]


DELEGATED = [
    frame("task-created"),
    frame(
        "tool-call", toolCallId="x", toolName="agent__writer__invoke", arguments={"prompt": "Go."}
    ),
    frame(
        "tool-start",
        path=["tool:agent__writer__invoke"],
        toolCallId="x",
        toolName="agent__writer__invoke",
    ),
]


def child(kind, task="t2", agent="writer", **fields):
    return frame(kind, task, [f"agent:{agent}"], parentTaskId="t1", **fields)


WRITTEN = [
    child("task-created"),
    child("content-delta", delta="Inner.", index=0),
    child("tool-call", toolCallId="y", toolName="sh", arguments={}),
    {**child("tool-start", toolCallId="y", toolName="sh"), "path": ["agent:writer", "tool:sh"]},
    {
        **child("tool-complete", toolCallId="y", toolName="sh", success=True, result="out"),
        "path": ["agent:writer", "tool:sh"],
    },
    child("task-complete", content="Inner."),
]
RETURNED = frame(
    "tool-complete",
    toolCallId="x",
    toolName="agent__writer__invoke",
    success=True,
    result="Complete",
)


def test_a_child_task_of_an_agent_is_a_sub_agent_in_the_call_that_runs_it(read):
    events = read(*DELEGATED, *WRITTEN, RETURNED, *ANSWER)
    nodes = [(e.name, e.phase, e.span, e.data, e.result) for e in events if e.type == "node"]
    assert nodes == [
        ("writer", "enter", "x", {"agent": "writer", "call_id": "x"}, ""),
        ("writer", "exit", "x", None, "ok"),
    ]
    inner = [e.type for e in events if e.span == "x" and e.type != "node"]
    assert inner == ["run_start", "respond", "call", "started", "result", "end"]
    assert {e.run for e in events} == {"t1"}


def test_the_card_of_a_call_holds_the_sub_agent_that_it_runs(read):
    view = RunView().extend(read(*DELEGATED, *WRITTEN, RETURNED, *ANSWER))
    (inside,) = view.call("x").children
    assert [type(card).__name__ for card in inside.cards] == ["RespondCard", "CallCard"]
    assert str(view.texts.answer.text) == "It is 4."
    assert [type(card).__name__ for card in view.cards] == ["CallCard", "RespondCard"]


def test_a_sub_agent_ends_with_its_call_or_stays_cut_off_without_it(read):
    started = [*DELEGATED, *WRITTEN[:2]]
    ended = read(*started, RETURNED, *ANSWER)
    cut = read(*started)
    assert [e.result for e in ended if e.type == "node" and e.phase == "exit"] == ["ok"]
    assert [e.result for e in cut if e.type == "node" and e.phase == "exit"] == ["interrupted"]
    kinds = [(e.type, e.span) for e in ended]
    assert kinds.index(("respond", "x")) < kinds.index(("result", ""))


def test_a_late_event_of_a_subtask_joins_its_ended_sub_agent(tool):
    late = [child("content-delta", delta=" More.", index=9), child("task-complete", content="")]
    lines = [*DELEGATED, *WRITTEN, late[1], RETURNED, *late, *ANSWER]
    codec = tool("looopy")
    events = codec.read(ndjson(*lines))
    assert codec.lines(events) == lines
    assert [(e.span, e.phase) for e in events if e.type == "node"] == [
        ("x", "enter"),
        ("x", "exit"),
    ]
    assert [e.span for e in events if e.type == "end"] == ["x", ""]
    assert [e.span for e in events if getattr(e, "content", "") == " More."] == ["x"]


def test_parallel_sub_agents_of_one_name_are_each_in_a_call_of_their_own(tool):
    about = {"toolName": "agent__writer__invoke"}
    lines = [
        *(frame("tool-call", toolCallId=i, **about, arguments={}) for i in "ab"),
        *(
            child("content-delta", task, delta=text, index=0)
            for task, text in (("t2", "1"), ("t3", "2"))
        ),
        *(
            child("content-delta", task, delta=text, index=1)
            for task, text in (("t2", "1"), ("t3", "2"))
        ),
        *(child("task-complete", task) for task in ("t2", "t3")),
        *(frame("tool-complete", toolCallId=i, **about, success=True, result="") for i in "ab"),
    ]
    codec = tool("looopy")
    events = codec.read(ndjson(*lines))
    assert codec.lines(events) == lines
    assert [(e.span, e.content) for e in events if e.type == "respond"] == [
        ("a", "11"),
        ("b", "22"),
    ]


def test_a_sub_agent_inside_a_sub_agent_is_in_the_card_of_its_call(read):
    call = {"toolCallId": "y", "toolName": "agent__reader__invoke"}
    events = read(
        *DELEGATED,
        child("tool-call", **call, arguments={}),
        frame(
            "content-delta",
            "t3",
            ["agent:writer", "agent:reader"],
            parentTaskId="t2",
            delta="Deep.",
        ),
        frame("task-complete", "t3", ["agent:writer", "agent:reader"], parentTaskId="t2"),
        child("tool-complete", **call, success=True, result=""),
        child("task-complete"),
        RETURNED,
    )
    enters = [(e.name, e.span, e.parent) for e in events if e.type == "node" and e.phase == "enter"]
    assert enters == [("writer", "x", ""), ("reader", "y", "x")]
    (call,) = RunView().extend(events).call("x").children[0].cards
    assert [type(card).__name__ for card in call.children[0].cards] == ["RespondCard"]


def test_a_child_task_whose_parent_is_not_in_the_stream_is_a_run(read):
    events = read(
        frame("task-created", "t2", parentTaskId="t1"),
        frame("content-delta", "t2", parentTaskId="t1", delta="All of it.", index=0),
        frame("task-complete", "t2", parentTaskId="t1"),
    )
    assert {(e.run, e.span) for e in events} == {("t2", "")}


def test_a_task_without_a_parent_after_one_without_an_id_is_a_run(read):
    events = read(
        frame("content-delta", "", delta="One.", index=0),
        frame("task-complete", ""),
        frame("content-delta", "t2", delta="Two.", index=0),
        frame("task-complete", "t2"),
    )
    assert [(e.content, e.span) for e in events if e.type == "respond"] == [
        ("One.", ""),
        ("Two.", ""),
    ]
    assert events[-1].run == "t2"


# Questions.

ASKED = frame(
    "tool-input-required",
    toolCallId="x",
    inputId="i",
    inputType="confirmation",
    prompt="Really drop it?",
    toolName="drop",
    toolArguments={"table": "t"},
)
DROP = frame("tool-call", toolCallId="x", toolName="drop", arguments={"table": "t"})


@pytest.mark.parametrize(
    "rest", [[], [frame("task-status", status="waiting-input")], [frame("task-complete")]]
)
def test_a_question_about_a_call_shows_its_prompt_and_the_run_awaits(rest, read):
    events = read(DROP, ASKED, *rest)
    asked = next(e for e in events if e.type == "approval")
    assert (asked.call_id, asked.stage, asked.reason) == ("x", "requested", "Really drop it?")
    assert [e.status for e in events if e.type == "end"] == ["awaiting"]
    (result,) = (e for e in events if e.type == "result")
    assert (result.call_id, result.status) == ("x", "cancelled")
    assert "Really drop it?" in result.content


def test_the_card_of_a_call_that_waits_shows_the_prompt(read):
    view = RunView().extend(e for e in read(DROP, ASKED) if e.type in ("call", "approval"))
    drawn = approval.card(view.call("x"), Context())
    assert "Really drop it?" in str(drawn)


def test_a_question_that_has_an_answer_awaits_nothing(read):
    done = frame("tool-complete", toolCallId="x", toolName="drop", success=True, result="ok")
    for answer in (done, frame("input-received", inputId="i")):
        events = read(DROP, ASKED, answer, frame("task-complete"))
        assert [e.status for e in events if e.type == "end"] == ["ok"]


@pytest.mark.parametrize(
    ("asks", "answers"),
    [
        (
            frame("input-required", inputId="i", prompt="Which?"),
            frame("input-received", inputId="i"),
        ),
        (
            frame("auth-required", authId="a", prompt="Log in"),
            frame("auth-completed", authId="a"),
        ),
    ],
)
def test_a_question_for_the_user_is_awaited_until_its_answer(asks, answers, read):
    text = [frame("content-delta", delta="a"), frame("content-complete", content="a")]
    assert [e.status for e in read(*text, asks) if e.type == "end"] == ["awaiting"]
    assert not [e for e in read(*text, asks, answers) if e.type == "end" and e.status == "awaiting"]


def test_a_run_awaits_what_its_sub_agent_asks(read):
    asked = child("tool-input-required", toolCallId="y", toolName="sh", inputId="i", prompt="Run?")
    events = read(
        *DELEGATED, child("tool-call", toolCallId="y", toolName="sh", arguments={}), asked
    )
    assert [(e.span, e.status) for e in events if e.type == "end"] == [
        ("x", "awaiting"),
        ("", "awaiting"),
    ]


def test_our_question_is_written_with_its_own_words(tool):
    run = [ev.Call(call_id="x", name="drop"), ev.Approval(call_id="x", reason="Really?")]
    (asked,) = (o for o in tool("looopy").lines(run) if o["kind"] == "tool-input-required")
    assert asked["prompt"] == "Really?"
