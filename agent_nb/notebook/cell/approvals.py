"""Questions to the user about a tool call: by the buttons of its card, or on the keyboard.

Why both: buttons are better, but not every front end delivers clicks while a cell runs; `input()`
works wherever there is a keyboard, and can give each answer that a button gives
(`ask_by_click_or_input`).

Rules
- On the keyboard, text of models and tools is plain and printable: nothing may reorder the line.
  Only a clear yes or an edit allows; the end of the input denies.
- Once front ends count the views of the card, questions stay off the keyboard: after a reload no
  page shows the prompt of `input()`, which then blocks the main thread.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from ...agent import Questions
from ...tools import ApprovalSource, Decision, Question
from ..notices import make_printable, printable_value, shorten_text
from .unseen import UnseenQuestions

# it waits for the user's answer, so the stop button (■) interrupts it (`interrupts.STAND_IN`)
ACTS_FOR_USER = True
LONGEST_WAIT = 1.0  # s; until clicks arrive (after the first widgets), or a view shows the call
MOST_ATTEMPTS = 3  # unclear answers after which the call is denied
#: The schema of a call's arguments, and a function that returns the fault in edited ones, or "".
SchemaAndCheck = tuple[dict[str, Any], Callable[[dict[str, Any]], str]]
#: Action -> the function that its button calls, from any thread, with the payload of the click.
Actions = dict[str, Callable[..., Any]]
EDIT = ("e", "edit")  # the answers that ask for new arguments
CHANGES = 'Arguments to change, as JSON, such as {"name": "value"}: '
NO = re.compile(r"(?:n|no)(?:[\s,;:.!]+(.*))?", re.IGNORECASE | re.DOTALL)  # a no, and its reason
LONGEST_REASON = 2000  # characters of a reason
ANSWERS = {  # what the user types -> the decision
    **dict.fromkeys(("y", "yes"), Decision(True, by="stdin")),
    **dict.fromkeys(("s", "same"), Decision(True, scope="args", by="stdin")),
    **dict.fromkeys(("a", "all"), Decision(True, scope="tool", by="stdin")),
    **dict.fromkeys(("k", "keep"), Decision(True, scope="kernel", by="stdin")),
}


def ask_by_input(
    call: Callable[[Callable[[], Any]], Awaitable[Any]],
    allowed: bool,
    caught_up: Callable[[], bool] = lambda: True,
) -> ApprovalSource:
    """Return an approval source that uses `input()`, if `allowed`.

    `call` calls a function on the main thread and returns its value. The source waits at most
    LONGEST_WAIT until the view is `caught_up`, so that it asks below the tool call.
    """

    async def ask(question: Question) -> Decision | None:
        if not allowed:
            return None
        await _wait_until(caught_up)
        answer: Decision | None = await call(lambda: ask_at_keyboard(question))
        return answer

    return ask


def ask_by_click_or_input(
    clicks: ButtonApprovals,
    typed: ApprovalSource,
    can_click: Callable[[], bool],
    unseen: UnseenQuestions,
) -> ApprovalSource:
    """Return an approval source that waits for a click, or asks `typed` if clicks do not arrive.

    Clicks arrive if `can_click` becomes true within LONGEST_WAIT, or if front ends count the views.
    `unseen` denies a question that no view shows any more.
    """

    def ask(question: Question) -> Awaitable[Decision | None]:
        # the question is open from here on: a click may come before the wait below ends
        return choose(question, asyncio.ensure_future(clicks.ask(question)))

    async def choose(question: Question, click: asyncio.Future[Decision | None]) -> Decision | None:
        try:
            if not await _wait_until(lambda: click.done() or can_click() or unseen.views_counted):
                return await typed(question)
            return await unseen.wait_while_visible(click, question)
        finally:
            click.cancel()

    return ask


async def _wait_until(condition: Callable[[], bool]) -> bool:
    """Wait until a condition is true, at most LONGEST_WAIT; return whether it is."""
    loop = asyncio.get_running_loop()
    end = loop.time() + LONGEST_WAIT
    while not (is_true := condition()) and loop.time() < end:
        await asyncio.sleep(0.02)
    return is_true


class ButtonApprovals:
    """An approval source that buttons answer, from any thread; `ask` waits on the agent's loop.

    `actions`: the functions that the view's buttons call.
    """

    def __init__(self) -> None:
        questions = Questions()
        questions.reachable_while(lambda: True)
        self.ask = questions.combine_with(None)
        self.actions = _question_actions(questions)


def run_actions(questions: Questions, stop: Callable[[], Any]) -> Actions:
    """Return the functions that the buttons of a run's cards call.

    `questions`: the open questions of the run. `stop`: what its Stop button calls.
    """
    return {"stop": stop, **_question_actions(questions)}


def _question_actions(questions: Questions) -> Actions:
    """Return the functions that the buttons of questions call, by action.

    The payload of a click has a `call_id`, and perhaps edited `args`, a `scope` or a `reason`.
    """

    def find_question(payload: Mapping[str, Any]) -> Question | None:
        return questions.find_open(str(payload.get("call_id", "")))

    def decide(payload: Mapping[str, Any], *, allow: bool) -> None:
        question = find_question(payload)
        # `exact`, if the question has one, proves that the click came from this question's card
        if question is None or question.exact not in ("", payload.get("question")):
            return
        if allow:
            scope = payload.get("scope")
            decision = Decision(
                True,
                args=payload.get("args"),
                scope=scope if scope in ("args", "tool", "kernel") else "once",
                by="click",
            )
        else:
            reason = str(payload.get("reason") or Decision.NO)[:LONGEST_REASON]
            decision = Decision(False, by="click", reason=reason)
        # both have the same fields
        questions.answer(question.call_id, **msgspec.structs.asdict(decision))

    def describe(payload: Mapping[str, Any]) -> SchemaAndCheck | None:
        """Return None if the question is closed or its tool is unknown."""
        question = find_question(payload)
        if question is None or question.tool is None:
            return None
        return question.tool.spec.parameters, question.find_fault

    approve, deny = partial(decide, allow=True), partial(decide, allow=False)
    return {"approve": approve, "approve_lasting": approve, "deny": deny, "describe": describe}


def ask_at_keyboard(question: Question) -> Decision | None:
    """Ask by `input()` on this thread; return None where the front end offers no keyboard."""
    from IPython.core.error import StdinNotImplementedError

    text = format_question(question)
    again = f"Please answer {'y, n or e' if question.exact else 'y, n, e, s, a or k'}: "
    for _ in range(MOST_ATTEMPTS):
        try:
            typed = input(text).strip()
            answer = typed.lower()
            args = read_changes(question, input(CHANGES)) if answer in EDIT else None
        except EOFError:
            return Decision(False, by="stdin", reason="the input ended")
        except StdinNotImplementedError:
            return None
        except ValueError as fault:
            text = f"{fault} {again}"
            continue
        if args is not None:
            return Decision(True, args=args, by="stdin")
        if denial := NO.fullmatch(typed):
            return Decision(False, by="stdin", reason=(denial[1] or Decision.NO)[:LONGEST_REASON])
        decision = ANSWERS.get(answer)
        if decision is not None and (decision.scope == "once" or not question.exact):
            return decision
        text = again
    return Decision(False, by="stdin", reason="no clear answer")


def read_changes(question: Question, text: str) -> dict[str, Any]:
    """Return a call's arguments, changed by JSON. Raises ValueError with a sentence to show."""
    try:
        changes = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise ValueError(f"This is not JSON: {fault}.") from None
    if not isinstance(changes, dict):
        # ValueError for every wrong answer: `ask_at_keyboard` then asks again
        raise ValueError('Arguments are a JSON object, such as {"name": "value"}.')  # noqa: TRY004
    args = {**question.args, **changes}
    if wrong := question.find_fault(args):
        raise ValueError(make_printable(wrong))
    return args


def format_question(question: Question) -> str:
    """Return a question as plain printable text, with the answers that it takes."""
    lines = [f"The agent wants to call {make_printable(question.name)}:"]
    lines += [
        f"  {make_printable(name)} = {printable_value(value)}"
        for name, value in question.args.items()
    ]
    if question.preview:
        lines.append(shorten_text(make_printable(question.preview)))
    always = ""
    if not question.exact:
        always = f", [s]ame arguments always, [a]lways {make_printable(question.name)} in this run, [k]eep allowing it in this notebook"
    return "\n".join([*lines, f"Allow it? [y]es, [n]o (and why), [e]dit first{always}: "])
