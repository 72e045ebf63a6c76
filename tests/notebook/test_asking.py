"""A question on the keyboard: what is not clearly a yes is a no, and hostile text stays text."""

import asyncio
import re

import pytest
from IPython.core.error import StdinNotImplementedError

from agent_nb import events as e
from agent_nb import tool
from agent_nb.agent.registry import Questions
from agent_nb.events.log import EventLog
from agent_nb.notebook.cell import approvals, unseen
from agent_nb.notebook.cell.approvals import (
    ANSWERS,
    ButtonApprovals,
    ask_at_keyboard,
    ask_by_click_or_input,
    ask_by_input,
    format_question,
    run_actions,
)
from agent_nb.notebook.cell.unseen import UNSEEN, UnseenQuestions
from agent_nb.tools.base import Decision, Question
from agent_nb.tools.decorator import as_tool
from agent_nb.view.views import Views

QUESTION = Question("c1", "python", {"code": "import os\nos.remove('x')"})


@pytest.mark.parametrize(
    ("said", "allow", "scope"),
    [
        ("y", True, "once"),
        ("  YES ", True, "once"),
        ("a", True, "tool"),
        ("s", True, "args"),
        ("n", False, "once"),
        ("No", False, "once"),
    ],
)
def test_an_answer_is_a_decision(answer, said, allow, scope):
    answer(said)
    decision = ask_at_keyboard(QUESTION)
    assert (decision.allow, decision.scope, decision.by) == (allow, scope, "stdin")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("n", Decision.NO),
        ("no. ", Decision.NO),
        ("n Use B.csv", "Use B.csv"),
        ("No, use B.csv instead", "use B.csv instead"),
        ("no: " + "x" * 5000, "x" * 2000),
    ],
)
def test_words_after_a_no_are_its_reason(answer, said, reason):
    answer(said)
    decision = ask_at_keyboard(QUESTION)
    assert (decision.allow, decision.reason) == (False, reason)


@pytest.mark.parametrize("said", ["nope", "not now", "none", "y because", "a b"])
def test_an_answer_that_only_begins_like_one_is_asked_again(answer, said):
    asked = answer(said, "y")
    assert ask_at_keyboard(QUESTION).allow
    assert "Please answer" in asked[1]


def test_changes_that_the_tool_refuses_are_asked_again(answer):
    @tool
    def send(times: int) -> str:
        "Send."

    asked = answer("e", '{"times": "many"}', "e", '{"times": 3}')
    decision = ask_at_keyboard(Question("c1", "send", {"times": 2}, tool=as_tool(send)))
    assert decision.args == {"times": 3}
    assert "times" in asked[2]


def test_an_unclear_answer_is_asked_again_and_then_a_no(answer):
    asked = answer("", "perhaps", "yep")
    assert not ask_at_keyboard(QUESTION).allow
    assert len(asked) == 3


def test_arguments_are_edited_on_the_keyboard_as_with_the_button(answer):
    asked = answer("e", '{"code": "2"}')
    decision = ask_at_keyboard(Question("c1", "python", {"code": "1", "more": True}))
    assert (decision.allow, decision.scope, decision.by) == (True, "once", "stdin")
    assert decision.args == {"code": "2", "more": True}
    assert "[e]dit" in asked[0]


@pytest.mark.parametrize("changes", ["code=2", "[1]", "", '{"code": ' + "[" * 5000])
def test_changes_that_are_no_arguments_are_asked_again(answer, changes):
    asked = answer("edit", changes, "n")
    assert not ask_at_keyboard(QUESTION).allow
    assert "JSON" in asked[2]


def test_an_input_that_ends_inside_the_changes_is_a_no(answer):
    answer("e", EOFError())
    assert not ask_at_keyboard(QUESTION).allow


def test_the_end_of_input_is_a_no(answer):
    answer(EOFError())
    assert not ask_at_keyboard(QUESTION).allow


def test_no_input_after_all_is_nobody(answer):
    answer(
        StdinNotImplementedError(
            "raw_input was called, but this frontend does not support input requests"
        )
    )
    assert ask_at_keyboard(QUESTION) is None


def test_the_question_shows_tool_and_arguments():
    text = format_question(QUESTION)
    assert "python" in text
    assert "os.remove('x')" in text
    assert text.endswith(": ")


def test_control_and_direction_characters_are_shown_as_escapes():
    hostile = Question(
        "c1", "li\x1b[2Jst\u202e", {"path\r": "a\x1b]0;x\x07\u2066b"}, preview="\x1b[31mred"
    )
    text = format_question(hostile)
    assert all(c.isprintable() or c in "\n\t" for c in text)
    assert r"\x1b[2J" in text


def test_long_arguments_are_cut_and_say_so():
    assert "98000 more characters" in format_question(Question("c1", "x", {"code": "y" * 100_000}))


def test_the_asker_asks_on_the_main_thread_or_nobody(answer):
    answer("y")

    async def call(function):
        return function()

    assert asyncio.run(ask_by_input(call, True)(QUESTION)) is ANSWERS["y"]
    assert asyncio.run(ask_by_input(call, False)(QUESTION)) is None


@pytest.mark.parametrize(
    ("button", "payload", "allow", "scope", "args"),
    [
        ("approve", {}, True, "once", None),
        ("approve", {"scope": "args"}, True, "args", None),
        ("approve", {"scope": "tool"}, True, "tool", None),
        ("approve", {"scope": "all"}, True, "once", None),
        ("approve", {"scope": ["tool"]}, True, "once", None),
        ("approve", {"scope": "once", "args": {"code": "2"}}, True, "once", {"code": "2"}),
        ("deny", {}, False, "once", None),
    ],
)
def test_a_click_on_another_thread_answers_its_own_question(button, payload, allow, scope, args):
    async def main():
        clicks = ButtonApprovals()
        question = asyncio.ensure_future(clicks.ask(QUESTION))
        await asyncio.sleep(0)
        await asyncio.to_thread(clicks.actions[button], {"call_id": "another", **payload})
        await asyncio.to_thread(clicks.actions[button], {"call_id": "c1", **payload})
        await asyncio.to_thread(clicks.actions["deny"], {"call_id": "c1"})
        return await question

    decision = asyncio.run(main())
    assert (decision.allow, decision.scope, decision.args, decision.by) == (
        allow,
        scope,
        args,
        "click",
    )


def test_a_question_with_a_mark_is_answered_by_a_click_that_bears_it():
    """A record may show a question of its own about a call of the same id."""

    async def main(*payloads):
        clicks = ButtonApprovals()
        question = asyncio.ensure_future(clicks.ask(Question("c1", "python", {}, exact="mark")))
        await asyncio.sleep(0)
        for payload in payloads:
            clicks.actions["approve"]({"call_id": "c1", **payload})
        clicks.actions["deny"]({"call_id": "c1", "question": "mark"})
        return (await question).allow

    assert (
        asyncio.run(main({}, {"question": ""}, {"question": "forged"}, {"question": None})) is False
    )
    assert asyncio.run(main({"question": "mark"})) is True


def test_a_marked_question_of_an_awaited_run_needs_such_a_click():
    async def main(*payloads):
        questions = Questions()
        actions = run_actions(questions, lambda: None)
        source = questions.combine_with(ButtonApprovals().ask)
        asked = asyncio.ensure_future(source(Question("c1", "python", {}, exact="mark")))
        await asyncio.sleep(0.01)
        for payload in payloads:
            actions["approve"]({"call_id": "c1", **payload})
        actions["deny"]({"call_id": "c1", "question": "mark"})
        return (await asked).allow

    assert asyncio.run(main({}, {"question": "forged"})) is False
    assert asyncio.run(main({"question": "mark"})) is True


def test_a_question_about_exact_arguments_offers_no_more():
    assert "[a]lways" in format_question(QUESTION)
    assert "[a]lways" not in format_question(Question("c1", "python", {}, exact="mark"))


@pytest.mark.parametrize("exact", ["", "mark"])
@pytest.mark.parametrize("unclear", [["perhaps"], ["e", "not JSON"]])
def test_a_repeated_question_lists_the_answers_that_it_offers(answer, exact, unclear):
    asked = answer(*unclear, "n")
    ask_at_keyboard(Question("c1", "python", {}, exact=exact))
    offered = re.findall(r"\[(\w)\]", asked[0])
    assert re.findall(r"\b\w\b", asked[-1].rpartition("Please answer")[2]) == offered


@pytest.mark.parametrize("typed", ["s", "a", "k"])
def test_an_answer_that_a_question_does_not_offer_allows_nothing(answer, typed):
    answer(typed, typed, typed)
    assert not ask_at_keyboard(Question("c1", "python", {}, exact="mark")).allow


def test_a_click_after_the_run_is_ignored():
    clicks = ButtonApprovals()

    async def abandoned():
        asyncio.ensure_future(clicks.ask(QUESTION))  # noqa: RUF006  (left behind on purpose)
        await asyncio.sleep(0)

    asyncio.run(abandoned())
    clicks.actions["approve"]({"call_id": "c1"})


@pytest.mark.parametrize(
    ("heard", "longest", "by"), [([False, True], 60, "click"), ([], 0.2, "stdin")]
)
def test_a_question_waits_a_moment_for_clicks_to_be_heard(monkeypatch, heard, longest, by):
    monkeypatch.setattr(approvals, "LONGEST_WAIT", longest)
    clicks, left = ButtonApprovals(), list(heard)

    async def typed(question):
        return Decision(True, by="stdin")

    async def ask():
        asked = asyncio.create_task(
            ask_by_click_or_input(
                clicks, typed, lambda: bool(left) and left.pop(0), UnseenQuestions(Views)
            )(QUESTION)
        )
        while not asked.done():
            if heard and not left:
                clicks.actions["approve"]({"call_id": QUESTION.call_id})
            await asyncio.sleep(0.01)
        return asked.result()

    assert asyncio.run(ask()).by == by


def test_a_click_counts_before_the_kernel_knows_that_clicks_arrive():
    """The button is painted, and may be pressed, a moment before the view is heard of."""
    clicks = ButtonApprovals()

    async def ask():
        source = ask_by_click_or_input(clicks, never, lambda: False, UnseenQuestions(Views))
        answer = source(QUESTION)
        clicks.actions["approve"]({"call_id": QUESTION.call_id})
        return await answer

    assert asyncio.run(ask()).by == "click"


def test_a_click_that_comes_after_the_typed_answer_changes_nothing(monkeypatch):
    monkeypatch.setattr(approvals, "LONGEST_WAIT", 0.0)
    clicks = ButtonApprovals()

    async def typed(question):
        return Decision(False, by="stdin")

    async def ask():
        source = ask_by_click_or_input(clicks, typed, lambda: False, UnseenQuestions(Views))
        decision = await source(QUESTION)
        await asyncio.sleep(0)
        assert clicks.actions["describe"]({"call_id": QUESTION.call_id}) is None
        return decision

    assert asyncio.run(ask()).by == "stdin"


def test_a_question_is_typed_below_what_it_is_about(answer):
    answer("y")
    shown, asked = [], []

    async def call(function):
        asked.append(list(shown))
        return function()

    def caught_up():
        shown.append(len(shown) >= 2)
        return shown[-1]

    assert asyncio.run(ask_by_input(call, True, caught_up)(QUESTION)) is ANSWERS["y"]
    assert asked == [[False, False, True]]


def test_a_view_that_never_shows_a_question_does_not_keep_it(answer, monkeypatch):
    monkeypatch.setattr(approvals, "LONGEST_WAIT", 0.05)
    answer("y")

    async def call(function):
        return function()

    assert asyncio.run(ask_by_input(call, True, lambda: False)(QUESTION)) is ANSWERS["y"]


def counted(*, lost=False):
    """Return views that were counted."""
    views = Views()
    views.count(1, 0.0)
    views.lost = lost
    return views


def clicked(clicks):
    """Return the answer of a question that buttons may answer."""
    return asyncio.ensure_future(clicks.ask(QUESTION))


async def never(question):
    raise AssertionError("the keyboard is used")


def test_the_keyboard_is_not_used_once_views_were_counted(monkeypatch):
    monkeypatch.setattr(approvals, "LONGEST_WAIT", 0.0)
    clicks = ButtonApprovals()

    async def ask():
        views = counted()
        asked = asyncio.create_task(
            ask_by_click_or_input(clicks, never, lambda: False, UnseenQuestions(lambda: views))(
                QUESTION
            )
        )
        await asyncio.sleep(0.1)
        clicks.actions["approve"]({"call_id": QUESTION.call_id})
        return await asked

    assert asyncio.run(ask()).by == "click"


def streamed(views, *, reachable=False):
    """Return what ends a run with these views, and the run itself: a question, then a result."""

    class Asked:
        def __init__(self):
            self.log, self.questions, self.stops = EventLog(), Questions(), []

        def cancel(self, reason, detail):
            self.stops.append((reason, detail))

    stream = Asked()
    stream.questions.reachable_while(lambda: reachable)
    made = UnseenQuestions(lambda: views)
    made.cancel_after_denial(stream)
    return made, stream


def test_a_question_that_nobody_can_see_is_denied_and_its_run_ends(monkeypatch):
    monkeypatch.setattr(unseen, "INTERVAL", 0.01)
    views = counted()
    made, stream = streamed(views)

    async def ask():
        asked = asyncio.create_task(made.wait_while_visible(clicked(ButtonApprovals()), QUESTION))
        await asyncio.sleep(0.05)
        assert not asked.done()
        views.lost = True
        return await asked

    decision = asyncio.run(ask())
    assert (decision.allow, decision.reason) == (False, UNSEEN)
    assert stream.stops == []
    stream.log.append(e.Result(call_id="another", status="ok"))
    assert stream.stops == []
    stream.log.append(e.Result(call_id=QUESTION.call_id, status="denied"))
    assert stream.stops == [("user", UNSEEN)]


def test_a_question_that_is_seen_elsewhere_waits_for_its_answer(monkeypatch):
    monkeypatch.setattr(unseen, "INTERVAL", 0.01)
    made, stream = streamed(counted(lost=True), reachable=True)
    clicks = ButtonApprovals()

    async def ask():
        asked = asyncio.create_task(made.wait_while_visible(clicked(clicks), QUESTION))
        await asyncio.sleep(0.05)
        clicks.actions["approve"]({"call_id": QUESTION.call_id})
        return await asked

    assert asyncio.run(ask()).allow
    stream.log.append(e.Result(call_id=QUESTION.call_id, status="ok"))
    assert stream.stops == []


def test_a_question_whose_views_are_not_counted_waits(monkeypatch):
    monkeypatch.setattr(unseen, "INTERVAL", 0.01)
    clicks = ButtonApprovals()

    async def ask():
        asked = asyncio.create_task(
            UnseenQuestions(Views).wait_while_visible(clicked(clicks), QUESTION)
        )
        await asyncio.sleep(0.05)
        clicks.actions["deny"]({"call_id": QUESTION.call_id})
        return await asked

    assert asyncio.run(ask()).by == "click"
