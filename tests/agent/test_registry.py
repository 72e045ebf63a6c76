"""Runs of this process for whoever follows them: announced, found later, answered from elsewhere,
never kept alive.
"""

import asyncio
import gc

import pytest
from helpers.scripts import calling
from helpers.waiting import wait

from agent_nb import Agent, Scripted, ToolContext, tool
from agent_nb.agent.registry import REGISTRY, Announced, Questions, RunRegistry
from agent_nb.errors import UsageError
from agent_nb.events.log import EventLog
from agent_nb.tools.base import Decision, Question

CALL = calling("touch", name="a")


@tool(effect="outside")
def touch(name: str) -> str:
    """Touch a thing."""
    return f"touched {name}"


@pytest.fixture
def seen():
    """What is announced in this process during a test."""
    found: list[Announced] = []
    stop = REGISTRY.follow(found.append)
    found.clear()
    yield found
    stop()


def asker(answer):
    async def ask(_question):
        return answer

    return ask


# Announcing.


def test_a_run_is_announced_when_it_begins_and_not_before(seen):
    async def main():
        stream = Agent(Scripted(["Hello."]))("hi")
        assert not seen
        await stream
        return stream

    stream = asyncio.run(main())
    assert [found.log for found in seen] == [stream.log]


def test_who_comes_later_finds_the_runs_that_somebody_still_holds():
    runs, logs = RunRegistry(), [EventLog("a"), EventLog("b"), EventLog("c")]
    kept = [runs.announce(log, conversation=log.run) for log in logs]
    del logs[1], kept[1]
    gc.collect()
    found = []
    runs.follow(found.append)
    assert [(f.log.run, f.conversation) for f in found] == [("a", "a"), ("c", "c")]


def test_the_first_announcement_of_a_log_counts():
    runs, log = RunRegistry(), EventLog()
    first = runs.announce(log, conversation="cell")
    assert runs.announce(log) is None
    assert first.conversation == "cell"


def test_a_run_that_has_ended_elsewhere_can_no_longer_be_stopped_from_here():
    runs, log = RunRegistry(), EventLog()
    runs.announce(log, cancel=lambda: None)
    gc.collect()
    found = []
    runs.follow(found.append)
    with pytest.raises(UsageError, match="over"):
        found[0].cancel()


def test_a_follower_that_raises_is_dropped_and_the_run_does_not_notice():
    runs, told = RunRegistry(), []

    def broken(found):
        told.append(found)
        raise RuntimeError("down")

    runs.follow(broken)
    kept = [runs.announce(log) for log in (EventLog(), EventLog())]
    assert told == kept[:1]
    told.clear()
    runs.follow(broken)  # the earlier runs too are announced to it until it raises
    assert told == kept[:1]


def test_the_run_of_a_sub_agent_is_part_of_its_parents_and_not_announced(seen):
    child = Agent(Scripted(["Done."]), name="helper")
    call = calling("helper", prompt="x")
    asyncio.run(
        Agent(Scripted([call, "Fine."]), tools=[child.as_tool()], approve="auto")("go")._wait()
    )
    assert len(seen) == 1


def test_a_run_is_stopped_from_another_thread(seen):
    async def main():
        stream = Agent(Scripted([{"chunks": ["a", "b"], "delay": 60}]))("hi").start()
        await asyncio.to_thread(seen[0].cancel)
        return await stream

    run = asyncio.run(main())
    assert run.status == "interrupted"
    assert run.log.of("interrupt")[0].detail == "stopped from elsewhere"


# Questions.


def asking(agent, act):
    """Run an agent that asks; `act(stream, call_id)` is called from another thread when it does."""

    async def main():
        stream = agent("go")
        stream.questions.reachable_while(lambda: True)
        async for event in stream:
            if event.type == "approval" and event.stage == "requested":
                asyncio.get_running_loop().run_in_executor(None, act, stream, event.call_id)
        return stream.run

    return wait(main)


def test_a_question_is_answered_from_elsewhere_with_other_arguments():
    def act(stream, call_id):
        while not stream.questions.answer(call_id, allow=True, args={"name": "b"}):
            pass

    run = asking(Agent(Scripted([CALL, "Done."]), tools=[touch]), act)
    assert [e.content for e in run.log.of("result")] == ["touched b"]
    assert run.log.of("approval")[1].by == "remote"


def test_a_question_of_a_sub_agent_is_answered_by_the_parents_id():
    def act(stream, call_id):
        assert call_id.count("/") == 1
        while not stream.questions.answer(call_id, allow=False, reason="no"):
            pass

    child = Agent(Scripted([CALL, "It was not allowed."]), tools=[touch], name="helper")
    call = calling("helper", prompt="x")
    policy = Agent(Scripted([call, "Fine."]), tools=[child.as_tool()])
    run = asking(policy, act)
    assert [(e.status, bool(e.span)) for e in run.log.of("result")] == [
        ("denied", True),
        ("ok", False),
    ]


@pytest.mark.parametrize("is_nested", [False, True], ids=["own", "sub-agent"])
def test_a_question_is_open_as_soon_as_its_event_is_logged(is_nested):
    """A server passes the event on at once, and its client answers from another thread."""
    agent = Agent(Scripted([CALL, "Done."]), tools=[touch], name="helper")
    if is_nested:
        agent = Agent(Scripted([calling("helper", prompt="x"), "Fine."]), tools=[agent.as_tool()])
    answers = []

    async def main():
        stream = agent("go")
        stream.questions.reachable_while(lambda: True)

        def answer_at_once(event):
            if event.type == "approval" and event.stage == "requested":
                answers.append(stream.questions.answer(event.call_id, allow=True))

        stream.log.subscribe(answer_at_once)
        return await stream

    run = wait(main, 20)
    assert answers == [True]
    assert "touched a" in [e.content for e in run.log.of("result")]


def test_an_answer_counts_even_if_its_client_has_left():
    async def main():
        questions = Questions()
        waiting = questions.combine_with(None)(Question("c", "touch", {}))
        assert questions.answer("c", allow=True)
        return await waiting

    assert wait(main).allow


def test_a_source_that_raises_when_it_is_called_leaves_no_question_open():
    def fail(_question):
        raise OSError("no")

    async def main():
        stream = Agent(Scripted([CALL, "Done."]), tools=[touch], ask=fail)("go")
        run = await stream
        assert stream.questions.find_open(run.log.of("call")[0].call_id) is None
        return run

    requested, decided = wait(main).log.of("approval")
    assert (requested.stage, decided.decision) == ("requested", "deny")
    assert "could not be asked (OSError: no)" in decided.reason


def test_a_tool_asks_on_a_thread_without_a_loop():
    @tool(effect="none")
    def confirm(context: ToolContext) -> str:
        """Ask the user."""
        return str(asyncio.run(context.ask(Question("q", "confirm", {}, "none"))).allow)

    model, ask = Scripted([calling("confirm"), "Done."]), asker(Decision(True))
    (result,) = wait(lambda: Agent(model, [confirm], ask=ask)("hi")).log.of("result")
    assert result.content == "True"


def test_nobody_near_and_nobody_elsewhere_is_no_answer():
    question = Question("c", "touch", {})
    assert wait(lambda: Questions().combine_with(None)(question)) is None
    assert wait(lambda: Questions().combine_with(asker(None))(question)) is None


def test_an_answer_nearby_counts_as_it_is():
    decision = Decision(True, by="click")
    source = Questions().combine_with(asker(decision))
    assert wait(lambda: source(Question("c", "touch", {}))) is decision


def test_the_second_of_two_remote_answers_at_once_is_reported_as_too_late():
    async def main():
        questions = Questions()
        questions.reachable_while(lambda: True)
        source = questions.combine_with(None)
        waiting = asyncio.create_task(source(Question("c", "touch", {})))
        await asyncio.sleep(0)
        answers = [questions.answer("c", allow=allow) for allow in (False, True)]
        assert questions.find_open("c") is None
        return answers, await waiting

    answers, decision = wait(main)
    assert (answers, decision.allow) == ([True, False], False)


def test_the_first_answer_counts_and_the_other_asker_is_given_up():
    ended = []

    async def near(_question):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def main():
        questions = Questions()
        waiting = asyncio.create_task(questions.combine_with(near)(Question("c", "touch", {})))
        while not questions.answer("c", allow=True):
            await asyncio.sleep(0)
        assert not questions.answer("other", allow=True)
        found = await waiting
        assert not questions.answer("c", allow=True)
        return found

    assert wait(main).allow
    assert ended == [True]
