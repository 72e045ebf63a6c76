"""A question, an edit and a denial by the keyboard alone; letters that are typed answer nothing."""

import pytest

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(240),
    pytest.mark.usefixtures("settled"),
]

FRONTS = ["lab", "notebook"]
PREPARE = """
import json
from typing import Literal
from agent_nb import Agent, Scripted, tool
%load_ext agent_nb

sent = []

@tool(side_effects=True)
def send(text: str, copies: int = 1, how: Literal["mail", "post"] = "mail") -> str:
    "Send a text."
    sent.append([text, copies, how])
    return f"sent: {text}"

def calling(name, *calls):
    return Scripted([*(f"<execute>{json.dumps([{'name': name, 'args': args}])}</execute>" for args in calls), "That is all."])
"""


@pytest.fixture(scope="module", params=FRONTS)
def front(request, opened):
    notebook = opened(request.param)
    notebook.run(PREPARE)
    yield notebook
    notebook.close()


def ask(front, *calls, tab=True):
    """Begin a run that asks, and go to its question with the tabulator, from the cell."""
    front.value(f"globals().update(sent=[], sending=calling('send', *{calls!r}))")
    cell = front.begin("%%agent -m sending -t send --live\nSend.")
    front.button(cell, "Approve").wait_for()
    front.page.wait_for_function(f"{KEYS}.every(f => f.keys)")
    front.page.locator(".jp-Notebook .jp-Cell").nth(cell).focus()
    for _ in range(40):
        if focused(front) == "Approve":
            return cell
        front.page.keyboard.press("Tab")
    raise AssertionError("the tabulator does not reach the question")


KEYS = "[...document.querySelectorAll('.agent-nb-form')]"
FOCUSED = "(document.activeElement.innerText || document.activeElement.value || '').trim()"


def focused(front):
    return front.page.evaluate(FOCUSED)


def wait_for_focus(front, text):
    front.page.wait_for_function(f"text => {FOCUSED} === text", arg=text)


def test_a_approves_and_inserts_no_cell(front):
    cell = ask(front, {"text": "hello"})
    cells = len(front.ids())
    front.page.keyboard.press("a")
    front.wait(cell)
    assert front.value("sent") == [["hello", 1, "mail"]]
    assert len(front.ids()) == cells
    front.page.wait_for_function("document.activeElement.classList.contains('jp-Cell')")


def test_d_asks_for_the_words_which_the_model_reads(front):
    cell = ask(front, {"text": "hello"})
    front.page.keyboard.press("d")
    wait_for_focus(front, "")
    front.page.keyboard.type("add a date")  # with an a, a d and an e
    front.page.keyboard.press("Enter")
    front.wait(cell)
    assert front.value("sent") == []
    results = [e["content"] for e in front.events() if e["type"] == "result"]
    assert results == ["Not run: the user said no: add a date."]


def test_e_edits_and_shift_enter_approves(front):
    cell = ask(front, {"text": "x = 'a'\ny = 2", "copies": 2})
    front.page.keyboard.press("e")
    wait_for_focus(front, "x = 'a'\ny = 2")
    front.page.keyboard.press("Control+End")
    front.page.keyboard.press("Enter")
    front.page.keyboard.type("ade = '\\n'")
    front.page.keyboard.press("Tab")
    front.page.keyboard.press("Control+A")
    front.page.keyboard.type("many")
    front.page.keyboard.press("Shift+Enter")
    front.sees(cell, "This is not a number.")
    wait_for_focus(front, "x = 'a'\ny = 2\nade = '\\n'")
    front.page.keyboard.press("Tab")
    front.page.keyboard.press("Control+A")
    front.page.keyboard.type("3")
    front.page.keyboard.press("Shift+Enter")
    front.wait(cell)
    assert front.value("sent") == [["x = 'a'\ny = 2\nade = '\\n'", 3, "mail"]]
    asked, decided = (e for e in front.events() if e["type"] == "approval")
    assert (asked["args"]["copies"], decided["args"]["copies"]) == (2, 3)


def test_what_the_tool_refuses_is_not_sent(front):
    cell = ask(front, {"text": "hello"})
    front.page.keyboard.press("e")
    wait_for_focus(front, "hello")
    front.page.keyboard.press("Tab")
    front.page.keyboard.type('{"copies": "many"}')
    front.page.keyboard.press("Shift+Enter")
    front.sees(cell, "expected a valid integer")
    front.page.keyboard.press("Escape")
    wait_for_focus(front, "Approve")
    front.page.keyboard.press("Enter")
    front.wait(cell)
    assert front.value("sent") == [["hello", 1, "mail"]]


def test_always_is_reached_and_left_by_the_keyboard(front):
    cell = ask(front, {"text": "a"}, {"text": "a"}, {"text": "b"})
    for label in ("Deny", "Edit", "Always…"):
        front.page.keyboard.press("Tab")
        assert focused(front) == label
    front.page.keyboard.press("Enter")
    wait_for_focus(front, "These arguments in this run")
    front.page.keyboard.press("Escape")
    wait_for_focus(front, "Approve")
    front.button(cell, "Always…").press("Enter")
    wait_for_focus(front, "These arguments in this run")
    front.page.keyboard.press("Enter")
    front.sees(cell, '"b"')
    front.button(cell, "Approve").wait_for()
    front.button(cell, "Approve").click()
    front.wait(cell)
    assert [text for text, *_ in front.value("sent")] == ["a", "a", "b"]
    decided = [e for e in front.events() if e["type"] == "approval" and e["stage"] == "decided"]
    assert [e["scope"] for e in decided] == ["args", "args", "once"]


def test_a_key_that_is_pressed_after_a_click_on_the_card_answers_nothing(front):
    cell = ask(front, {"text": "hello"})
    front.output(cell).get_by_text("hello").last.click()
    front.page.keyboard.press("d")
    front.page.keyboard.press("e")
    assert front.button(cell, "Approve").is_visible()
    assert front.output(cell).locator("textarea, input[type=text]").count() == 0
    assert front.output(cell).inner_text().count("waiting for you") == 1
    front.press(cell, "Deny", "Deny")
    front.wait(cell)
    assert front.value("sent") == []


def test_the_question_of_a_sub_agent_has_the_same_keys(front):
    front.value(
        "globals().update(sent=[], helper=Agent(calling('send', {'text': 'below'}), tools=[send], name='helper'))"
    )
    front.value("globals().update(sending=calling('helper', {'prompt': 'Help.'}))")
    cell = front.begin("%%agent -m sending -t helper --live\nSend.")
    front.button(cell, "Approve").wait_for()
    front.page.wait_for_function(f"{KEYS}.every(f => f.keys)")
    assert front.output(cell).inner_text().count("waiting for you") == 1
    front.button(cell, "Approve").press("a")
    front.wait(cell)
    assert front.value("sent") == [["below", 1, "mail"]]
