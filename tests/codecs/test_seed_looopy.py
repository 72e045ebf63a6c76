"""Seed 004 line by line: tasks inside tasks, calls told twice, and what the document's own client
reads.
"""

import json

import pytest
from helpers.streams import ndjson, stored

from agent_nb import events as ev

T = {"taskId": "t1", "contextId": "c1"}
INNER = {**T, "path": ["agent:writer"]}
SH = {"toolCallId": "x", "toolName": "sh"}


def delta(content, index=0, **where):
    return {"kind": "content-delta", **(where or T), "delta": content, "index": index}


@pytest.fixture
def read(tool):
    """Read events with Looopy's codec, and see that they come out again as they came."""

    def run(*objs):
        codec = tool("looopy")
        events = codec.read(ndjson(*objs))
        assert codec.lines(events) == list(objs)
        assert not codec.decoder.losses
        return events

    return run


# § Sub-Agent Event Namespacing.


def test_what_runs_inside_a_run_has_its_run_id_and_blocks_of_its_own(read):
    events = read(
        {"kind": "task-created", **T},
        delta("out"),
        delta("in", **INNER),
        delta("side", 1),
        delta(" more", 1, **INNER),
        {"kind": "task-complete", **T},
    )
    texts = [(e.run, e.span, e.content) for e in events if e.type == "respond"]
    assert sorted(texts) == [("t1", "", "outside"), ("t1", "agent:writer", "in more")]
    assert len({e.block for e in events if e.type == "respond"}) == 2


def test_the_complete_content_of_a_task_and_of_one_inside_it_differ(read):
    complete = {"kind": "content-complete"}
    frames = [
        delta("a"),
        delta("in", **INNER),
        {**complete, **INNER, "content": "in"},
        {**complete, **T, "content": "a"},
    ]
    read(*frames, {"kind": "task-complete", **T})


def test_a_subtask_belongs_to_the_run_of_its_parent(read):
    inner = {"taskId": "t2", "contextId": "c1"}
    events = read(
        {"kind": "task-created", **T},
        {"kind": "task-created", **inner, "parentTaskId": "t1"},
        delta("in", **inner),
        {"kind": "task-complete", **inner},
        {"kind": "task-complete", **T},
    )
    assert {e.run for e in events} == {"t1"}
    assert [(e.type, e.span) for e in stored(events)] == [
        ("run_start", ""),
        ("node", "t2"),
        ("run_start", "t2"),
        ("respond", "t2"),
        ("end", "t2"),
        ("node", "t2"),
        ("end", ""),
    ]


NESTED = [
    {"kind": "task-created", **T},
    {"kind": "tool-start", **T, "toolCallId": "a", "toolName": "sh", "arguments": {}},
    {"kind": "task-created", "taskId": "a", "parentTaskId": "t1"},
    {"kind": "task-created", "taskId": "b", "parentTaskId": "a"},
]


@pytest.mark.parametrize(
    "last",
    [
        [],
        [{"kind": "task-complete", "taskId": "a"}],
        [{"kind": "task-complete", **T}],
        [{"kind": "tool-complete", **T, "toolCallId": "a", "toolName": "sh", "success": True}],
    ],
)
def test_a_task_inside_another_ends_before_it(read, last):
    exits = [e.span for e in read(*NESTED, *last) if e.type == "node" and e.phase == "exit"]
    assert exits == ["b", "a"]


def test_memory_does_not_grow_with_tasks_that_are_over(tool):
    decoder = tool("looopy").codec.decoder()
    events = []

    def feed(kind, task, **more):
        line = {"kind": kind, "taskId": task, "contextId": "c", **more}
        events.extend(decoder.feed(json.dumps(line).encode() + b"\n"))

    for number in range(1500):
        task = f"t{number}"
        feed("task-created", task)
        feed("subtask-created", task, subtaskId=f"in-{number}", agentId="writer")
        feed("task-complete", task)
    reader = decoder._reader
    tables = (
        reader._run_counts,
        reader._subtasks,
        reader._agent_names,
        reader._run_ids,
        reader._spans,
    )
    assert max(map(len, tables)) <= 1024
    del events[:]
    feed("content-delta", "in-1499", delta="late", index=0)
    feed("task-created", "t1498")
    assert {e.run for e in events} == {"t1499#2", "t1498#2"}


def test_the_writer_forgets_the_numbers_of_runs_that_are_over(tool):
    codec = tool("looopy")
    codec.write([ev.RunStart(run="a"), ev.End(run="a"), ev.RunStart(run="b")])
    assert list(codec.encoder._writer._ids) == ["b"]


def test_each_sub_agent_counts_its_deltas_and_its_prompt_is_told(tool):
    run = [
        ev.Call(call_id="c1", name="writer", args={"prompt": "Write."}),
        ev.Node(name="writer", span="c1"),
        ev.Respond(content="one", span="c1"),
        ev.Respond(content="two", span="c1"),
        ev.Respond(content="mine"),
    ]
    lines = tool("looopy").lines(run)
    assert [o["index"] for o in lines if o["kind"] == "content-delta"] == [0, 1, 0]
    assert [o["prompt"] for o in lines if o["kind"] == "subtask-created"] == ["Write."]


def test_what_of_a_sub_agents_run_has_no_place_is_counted(tool):
    codec = tool("looopy")
    codec.write([ev.RunStart(span="c1"), ev.User(content="Write.", span="c1"), ev.End(span="c1")])
    assert codec.encoder.losses.counts() == {
        "nested run_start": 1,
        "nested user": 1,
        "nested end": 1,
    }


# Tools.


def test_a_call_id_used_again_after_its_end_is_another_call(read):
    call, done = (
        {"kind": "tool-call", **T, **SH},
        {"kind": "tool-complete", **T, **SH, "success": True},
    )
    events = read(
        {**call, "arguments": {"n": 1}},
        {**done, "result": 1},
        {**call, "arguments": {"n": 2}},
        {**done, "result": 2},
    )
    assert [(e.type, e.call_id) for e in events] == [
        ("call", "x"),
        ("result", "x"),
        ("call", "x#2"),
        ("result", "x#2"),
    ]
    assert [e.content for e in events if e.type == "result"] == [1, 2]


def test_a_call_told_twice_is_one_call(read):
    call = {"kind": "tool-call", **T, **SH, "arguments": {}}
    assert [e.type for e in read(call, call)] == ["call", "extension"]


def test_an_error_without_a_word_on_success_is_a_failure(read):
    events = read({"kind": "tool-complete", **T, **SH, "error": "no such file"})
    assert [(e.status, e.content) for e in events if e.type == "result"] == [
        ("error", "no such file")
    ]


# § Event Emission Timeline, § Client-Side.


def test_the_end_of_our_run_tells_the_whole_answer(tool):
    run = [
        ev.Respond(content="It ", turn=1),
        ev.Think(content="hm", turn=1),
        ev.Respond(content="is 4.", turn=1),
        ev.End(),
    ]
    lines = tool("looopy").lines(run)
    assert [o["content"] for o in lines if o["kind"] in ("content-complete", "task-complete")] == [
        "It is 4.",
        "It is 4.",
    ]


def test_the_document_form_names_texts_as_its_client_reads_them(tool):
    run = [ev.Think(content="hm", run="t"), ev.Respond(content="Hi", run="t")]
    codec = tool("looopy:document")
    thought, piece, _ = codec.lines(run)
    assert (thought["kind"], thought["thought"], piece["kind"], piece["content"]) == (
        "thought-stream",
        "hm",
        "content-delta",
        "Hi",
    )
    assert not {"delta"} & piece.keys()
    back = stored(codec.read(ndjson(thought, piece)))
    assert [(e.type, e.content) for e in back] == [("think", "hm"), ("respond", "Hi")]


@pytest.mark.parametrize("whole", [False, True])
def test_only_a_text_that_is_whole_is_complete(tool, whole):
    text = ev.Respond(content="It is", block="1.1", turn=1, incomplete=not whole)
    run = [
        ev.Delta(of="respond", block="1.1", text="It is", turn=1),
        text,
        ev.Interrupt(),
        ev.End(status="interrupted"),
    ]
    kinds = [line["kind"] for line in tool("looopy").lines(run)]
    assert kinds == ["content-delta", *(["content-complete"] if whole else []), "task-status"]
    assert "content-complete" not in [line["kind"] for line in tool("looopy").lines(run[:1])]
