"""A conversation that outgrows the model's context."""

import anyio
import pytest
from helpers.scripts import calling
from helpers.waiting import wait

from agent_nb import Agent, Scripted, tool
from agent_nb import events as e
from agent_nb.agent.compaction import cut_results, write_transcript
from agent_nb.agent.history import estimate_tokens
from agent_nb.errors import ModelError, UsageError
from agent_nb.host import plugins

XML = plugins.load_plugin("dialects", "xml")


class Small(Scripted):
    """A scripted model with a small context that keeps what it was sent."""

    context = 2600

    def __init__(self, turns):
        super().__init__(turns)
        self.sent = []

    def start(self):
        return self

    def stream(self, request):
        self.sent.append(request)
        return super().stream(request)


def old(n):
    return [
        e.User(content=f"question {n} " + "x" * 2000),
        e.Respond(content=f"answer {n}"),
        e.End(),
    ]


def run(model, memory="window", tools=()):
    history = [old(n) for n in range(6)]
    return wait(lambda: Agent(model, tools, secrets={}, memory=memory)("and now?", history=history))


def text_of(request):
    return "\n".join(m.text for m in request.messages)


def test_the_oldest_runs_are_left_out_and_said():
    model = Small(["fine"])
    done = run(model)
    (state,) = done.log.of("state")
    assert "left out" in state.payload["note"]
    assert "answer 5" in text_of(model.sent[0])
    assert "answer 0" not in text_of(model.sent[0])


def test_a_summary_takes_the_place_of_what_was_left_out():
    model = Small(["<think>hm</think>They spoke of x.", "fine"])
    done = run(model, "summary")
    assert "answer 0" in text_of(model.sent[0])
    assert "They spoke of x." in model.sent[1].messages[0].text
    assert "hm" not in model.sent[1].messages[0].text.split("They")[0][-20:]
    assert done.log.of("state")[0].payload["text"] == "They spoke of x."
    assert done.answer == "fine"


def test_a_summary_keeps_the_thought_tags_that_it_is_about():
    done = run(Small(["They spoke of <think>x</think>.", "fine"]), "summary")
    assert done.log.of("state")[0].payload["text"] == "They spoke of <think>x</think>."


def test_what_a_summary_used_is_counted_and_priced():
    counted = {"text": "They spoke of x.", "usage": {"input": 900, "output": 20, "cost": 0.02}}
    done = run(Small([counted, {"text": "fine", "usage": {"input": 50, "cost": 0.01}}]), "summary")
    first, second = done.log.of("metric")
    assert (first.step.input, first.step.cost, first.turn) == (900, 0.02, 0)
    assert (second.total.input, second.total.cost, second.turn) == (950, 0.03, 1)


def test_a_summary_that_fails_is_said_and_the_run_goes_on():
    done = run(Small([{"error": {"status": 500, "message": "no"}}, "fine"]), "summary")
    assert [x.code for x in done.log.of("error")] == ["summary"]
    assert done.status == "ok"


class Strict(Small):
    """A model that takes so many tokens, by our estimate, and says so (or not) when it refuses a
    request.
    """

    def __init__(self, turns, most, *, context=0, told=0):
        super().__init__(turns)
        self.context, self.most, self.told = context, most, told
        self.refused = 0

    async def stream(self, request):
        if estimate_tokens(request.messages) > self.most:
            self.refused += 1
            raise ModelError(
                "The prompt is too long.", status=400, code="context", context=self.told
            )
        async for batch in super().stream(request):
            yield batch


@pytest.mark.parametrize("told", [2000, 0])
def test_a_refusal_as_too_long_leaves_the_oldest_runs_out_and_says_so(told):
    model = Strict(["fine"], 2000, told=told)
    done = run(model)
    assert (done.answer, model.refused) == ("fine", 1)
    assert [e.code for e in done.log.of("error")] == ["shortened"]
    assert "left out" in done.log.of("state")[-1].payload["note"]
    assert "answer 5" in text_of(model.sent[-1])
    assert "answer 0" not in text_of(model.sent[-1])


def test_after_a_refusal_as_too_long_a_summary_replaces_what_is_left_out():
    model = Strict(["They spoke of x.", "fine"], 2000, told=2000)
    assert run(model, "summary").answer == "fine"
    assert "They spoke of x." in model.sent[-1].messages[0].text


def test_a_refusal_as_too_long_while_tools_run_shortens_their_old_results():
    @tool
    def read() -> str:
        """Read much."""
        return "x" * 6000

    call = calling("read")
    model = Strict([call, call, "fine"], 2600)

    async def main():
        return await Agent(model, [read], secrets={})("go")

    done = anyio.run(main)
    assert (done.answer, model.refused) == ("fine", 1)
    assert "more characters left out" in text_of(model.sent[-1])


def test_what_cannot_be_made_shorter_is_refused_in_words():
    model = Strict(["fine"], 10)

    async def main():
        return await Agent(model, [], secrets={})("a long prompt " * 50, check=False)

    done = anyio.run(main)
    assert (done.status, model.refused, done.log.of("error")[0].code) == ("error", 1, "context")


def test_an_unknown_strategy_is_refused():
    with pytest.raises(UsageError, match="summary"):
        Agent(Scripted(["x"]), memory="elephant", secrets={})


def test_old_results_of_the_run_are_shortened_and_the_newest_is_not():
    pair = [
        (
            e.Call(call_id=str(n), name="f", args={}),
            e.Result(call_id=str(n), name="f", content="y" * 4000),
        )
        for n in range(3)
    ]
    calls = [x for both in pair for x in both]
    kept = cut_results(XML, [e.User(content="q"), *calls], 1500)
    lengths = [len(x.content) for x in kept if x.type == "result"]
    assert lengths[0] < 500
    assert lengths[2] == 4000
    assert "left out" in kept[2].content


def test_a_run_that_fits_is_not_touched():
    events = [
        e.User(content="q"),
        e.Result(name="f", content="y" * 4000),
        e.Result(name="f", content="z"),
    ]
    assert cut_results(XML, events, 0) == events
    assert cut_results(XML, events, 100_000) == events


def test_many_results_are_shortened_in_linear_time():
    """In quadratic time they would exceed the test's time limit."""
    run = [e.User(content="q")]
    for n in range(3_000):
        run.append(e.Call(call_id=f"c{n}", name="look", args={}))
        run.append(e.Result(call_id=f"c{n}", name="look", status="ok", content="word " * 400))
    assert "left out" in cut_results(XML, run, 5_000)[-3].content


def test_a_result_that_would_become_longer_is_not_shortened():
    run = [e.User(content="q")]
    for n in range(2):
        run.append(e.Result(call_id=f"c{n}", name="look", status="ok", content="w" * 410))
    assert cut_results(XML, run, 1) == run


def test_results_too_large_for_the_context_reach_the_model_shortened():
    @tool
    def big() -> str:
        """Say much."""
        return "y" * 6000

    call = calling("big")
    model = Small([call, call, "done"])
    run(model, tools=[big])
    assert "more characters left out" in text_of(model.sent[2])


def test_a_transcript_keeps_its_end():
    text = write_transcript([old(n) for n in range(30)])
    assert text.endswith("Assistant: answer 29")
    assert len(text) <= 24_000
