"""ToolEvents, seed 003 § 3.2, § 4, § 5, § 7 and § 9, sentence by sentence."""

import json

import pytest
from helpers.scripts import calling
from helpers.waiting import wait

import agent_nb
from agent_nb import Agent, Scripted, adapt_tool_event, encode, tool
from agent_nb.errors import UsageError
from agent_nb.events import Call, Progress, Result
from agent_nb.events.tool_events import meaning
from agent_nb.tools.base import Update, update

PROGRESS = {"type": "progress", "toolName": "sh", "data": {"x": 1}}
RESULT = {"type": "result", "toolName": "sh", "output": "done"}


def run(*tools, name="sh", args=None):
    """Run one call of a tool and return the log."""
    turns = [calling(name, **(args or {})), "ok"]
    return wait(lambda: Agent(Scripted(turns), tools, secrets={}, approve="auto")("go")).log


def as_agent_events(*events):
    """Return events of the call `c` as seed 003 writes them."""
    lines = encode([Call(call_id="c", name="sh"), *events], "agent-event")
    return [json.loads(line.removeprefix("data: ")) for line in lines][1:]


def test_the_function_is_public():
    assert "adapt_tool_event" in agent_nb.__all__


# § 4: "When an agent executes a tool, it adapts ToolEvent to AgentEvent variants."


def test_progress_becomes_tool_progress():
    made = adapt_tool_event(PROGRESS, call_id="c")
    assert made == Progress(call_id="c", data={"x": 1}, origin="tool")
    assert as_agent_events(made) == [{**PROGRESS, "type": "tool_progress"}]


def test_result_becomes_tool_result():
    made = adapt_tool_event(RESULT, call_id="c")
    assert made == Result(call_id="c", name="sh", content="done", origin="tool")
    assert as_agent_events(made) == [{**RESULT, "type": "tool_result"}]


@pytest.mark.parametrize(("is_error", "status"), [(True, "error"), (False, "ok")])
def test_is_error_is_the_status(is_error, status):
    made = adapt_tool_event({**RESULT, "isError": is_error}, call_id="c")
    assert made.status == status
    assert as_agent_events(made)[0].get("isError", False) is is_error


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "progress"},
        {"type": "progress", "data": 1},
        {"type": "result", "toolName": "x"},
        {"type": "final", "toolName": "x"},
        {"type": ["progress"], "toolName": "x", "data": 1},
        {"type": "result", "toolName": 3, "output": "x"},
        None,
        "progress",
    ],
)
def test_anything_else_is_refused_with_what_a_tool_event_is(event):
    with pytest.raises(UsageError, match='"toolName"'):
        adapt_tool_event(event)


# § 3.2: "progress: Reports intermediate, non-final output from a tool. result: Signals that the
# tool has finished execution."


@pytest.mark.parametrize("form", ["generator", "async"])
def test_a_tool_that_yields_tool_events_is_run_as_one(form):
    @tool(name="sh")
    def plain():
        yield {
            "type": "progress",
            "toolName": "sh",
            "data": {"subtype": "stdout_chunk", "content": "a\n"},
        }
        yield {"type": "progress", "toolName": "sh", "data": {"percent": 40}}
        yield {"type": "result", "toolName": "sh", "output": "gone", "isError": True}

    @tool(name="sh")
    async def waiting():
        for event in plain():
            yield event

    log = run(plain if form == "generator" else waiting)
    assert [(e.text, e.fraction) for e in log.of("progress")] == [("a\n", None), ("", 0.4)]
    assert [(e.status, e.content) for e in log.of("result")] == [("error", "gone")]


def test_progress_alone_is_not_a_result():
    @tool(name="sh")
    def endless():
        yield PROGRESS

    assert run(endless).of("result")[0].content == "(no value)"


# § 5: "The flexibility of data: unknown allows for rich, tool-specific intermediate reporting."

A = {"subtype": "stdout_chunk", "content": "-rw-r--r-- 1 user group 1024 Feb 12 10:00 file1.txt\n"}
C = {"subtype": "transfer_progress", "percent": 65}
SHAPES = {
    "A: a chunk of stdout is text": (A, Update(text=A["content"])),
    "a chunk of stderr is text": ({**A, "subtype": "stderr_chunk"}, Update(text=A["content"])),
    "B: a string is text": ("Hello, how can I", Update(text="Hello, how can I")),
    "C: percent is a bar": (C, Update(fraction=0.65)),
    "percent with a message": ({**C, "message": "a.bin"}, Update(fraction=0.65, message="a.bin")),
    "a message alone": ({"message": "loading"}, Update(message="loading")),
    "percent with more is data": ({**C, "file": "a.bin"}, Update(data={**C, "file": "a.bin"})),
    "a chunk with more is data": ({**A, "pid": 3}, Update(data={**A, "pid": 3})),
    "counts are data": ({"done": 1, "total": 4}, Update(data={"done": 1, "total": 4})),
    "more than a hundred per cent is data": ({"percent": 120}, Update(data={"percent": 120})),
    "anything else is data": ([1, {"a": None}], Update(data=[1, {"a": None}])),
}


@pytest.mark.parametrize(("given", "made"), SHAPES.values(), ids=SHAPES)
def test_what_a_native_tool_reports(given, made):
    assert update(given) == made


@pytest.mark.parametrize(
    ("given", "made"), [pair for name, pair in SHAPES.items() if "more is data" not in name]
)
def test_the_codec_reads_the_same(given, made, events_of_codec):
    progress = events_of_codec({"type": "tool_progress", "toolName": "sh", "data": given})
    assert (
        Update(
            text=progress.text,
            fraction=progress.fraction,
            data=progress.data,
            message=progress.message,
        )
        == made
    )


@pytest.fixture
def events_of_codec():
    def read(obj):
        return agent_nb.decode(f"data: {json.dumps(obj)}\n\n", "agent-event")[-1]

    return read


def test_what_a_native_tool_reports_is_written_as_it_came():
    @tool(name="sh")
    def reports():
        yield A
        yield {**C, "message": "a.bin"}
        yield {"page": 1}

    progress = run(reports).of("progress")
    written = [
        line["data"]
        for line in as_agent_events(
            *(
                Progress(
                    call_id="c", text=e.text, fraction=e.fraction, data=e.data, message=e.message
                )
                for e in progress
            )
        )
    ]
    assert written == [A["content"], {"percent": 65, "message": "a.bin"}, {"page": 1}]


def test_the_last_yield_of_a_generator_is_its_result_in_any_shape():
    @tool(name="sh")
    def last():
        yield 0.5
        yield {"percent": 100}

    assert run(last).of("result")[0].content == {"percent": 100}


@pytest.mark.parametrize(
    "data",
    [
        None,
        3,
        [],
        {},
        {"percent": True},
        {"percent": "5"},
        {"subtype": "stdout_chunk", "content": 5},
        {"done": 1, "total": 0},
        {"message": 7},
    ],
)
def test_what_has_no_meaning_has_none(data):
    found = meaning(data)
    assert (found.text, found.fraction, found.message) == ("", None, "")


# § 7: a sub-agent's answer is progress of the call that runs it, and the whole of it is the result.


def test_the_sub_agent_of_the_seed_runs_as_it_stands():
    class Stream:
        async def call(self):
            for word in ("The ", "answer"):
                yield {"type": "thought", "content": "hm"}
                yield {"type": "stream", "content": word}

    @tool(name="call-agent")
    async def call_agent():
        final = ""
        async for event in Stream().call():
            if event["type"] == "stream":
                yield {"type": "progress", "toolName": "call-agent", "data": event["content"]}
                final += event["content"]
        yield {"type": "result", "toolName": "call-agent", "output": final}

    log = run(call_agent, name="call-agent")
    assert "".join(e.text for e in log.of("progress")) == "The answer"
    assert log.of("result")[0].content == "The answer"


@pytest.mark.parametrize("number", [10**400, -(10**400), float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["percent", "done", "total"])
def test_a_number_that_counts_nothing_is_no_progress(name, number):
    found = meaning({"done": 1, "total": 2, name: number})
    assert found.fraction in (None, 0.5)


def test_a_percentage_may_be_a_number_of_numpy():
    numpy = pytest.importorskip("numpy")
    assert meaning({"percent": numpy.float64(7)}).fraction == 0.07
