"""The cells of the table that need no browser, one test each.

The words of a cell choose what is checked.
"""

import pytest
from profiles.table import HERE, cells

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(240)]

CELLS = [
    (profile, name, cell.outcome)
    for (profile, name), cell in cells().items()
    if cell.test.startswith(HERE)
]
WIDGET = "application/vnd.jupyter.widget-view+json"
RECORD = "application/vnd.agent-nb.run+json"
STOPPED = "agent: stopped ({}); what is queued behind this cell does not run"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "behaviour", "outcome"), CELLS, ids=[f"{profile}-{name}" for profile, name, _ in CELLS]
)
def test_cell(profile, name, behaviour, outcome):
    CHECKS[behaviour, outcome](profile(name))


def is_static(seen):
    """The page that stays is static, and no widget is left over."""
    assert {"text/html", "text/markdown", "text/plain"} <= set(seen.shown)
    assert WIDGET not in seen.shown
    assert "<details" in seen.page or "<div" in seen.page
    assert not any(word in seen.page for word in ("<script", "<style", "<svg", "<button"))
    left = {model for name, model in seen.opened.items() if name not in seen.closed}
    assert left <= {"LayoutModel", *(model for model in left if model.endswith("StyleModel"))}


def live_cards(front):
    seen = front.scene("work")
    assert {"VBoxModel", "ButtonModel", "HTMLModel"} <= set(seen.opened.values())


def html_pages(front):
    seen = front.scene("work")
    assert seen.opened == {}
    assert "There is a" in seen.text


def printed(front):
    seen = front.scene("work")
    assert "dig  depth=3" in seen.text
    assert "There is a **hole**." in seen.text
    assert "✓ done" in seen.text


def as_it_comes(front):
    """The first part of the answer is shown before the rest exists: the run is stopped there."""
    seen = front.scene("talk", ("interrupt", "I am still writing"))
    assert seen.of("respond")[0]["incomplete"]
    assert len(seen.of("respond")[0]["content"]) < 20_000


def once_a_second(front):
    pages = front.scene("short").pages
    assert 2 <= len(pages) <= 20
    assert any("I am still writing" in page and "The end." not in page for page in pages)


def stopped_by_button(front):
    seen = front.scene("talk", ("interrupt" if not front.widgets else "press", "■ Stop"))
    assert [event["type"] for event in seen.events[-2:]] == ["interrupt", "end"]
    assert seen.events[-2]["detail"] == "stop button"
    assert seen.failed
    assert STOPPED.format("stop button") in seen.streamed


def decided(seen):
    return [(e["decision"], e["by"]) for e in seen.of("approval") if e["stage"] == "decided"]


def approved_by_button(front):
    seen = front.scene("ask", ("press", "Approve"))
    assert (seen.sent, decided(seen)) == (["hello"], [("allow", "click")])


def denied_by_button(front):
    seen = front.scene("ask", ("press", "Deny"), ("press", "Deny"))
    assert (seen.sent, decided(seen)) == ([], [("deny", "click")])
    assert [event["status"] for event in seen.of("result")] == ["denied"]


def edited_by_button(front):
    edited = "good morning"
    seen = front.scene("ask", ("press", "Edit"), ("fill", edited), ("press", "Approve as edited"))
    assert (seen.sent, decided(seen)) == (["good morning"], [("allow", "click")])


def approved_by_typing(front):
    seen = front.scene("ask", ("type", "y"))
    assert (seen.sent, decided(seen)) == (["hello"], [("allow", "stdin")])


def denied_by_typing(front):
    seen = front.scene("ask", ("type", "n"))
    assert (seen.sent, decided(seen)) == ([], [("deny", "stdin")])


def edited_by_typing(front):
    seen = front.scene("ask", ("type", "e"), ("type", '{"text": "good morning"}'))
    assert (seen.sent, decided(seen)) == (["good morning"], [("allow", "stdin")])


def asked_by_typing(front):
    seen = (
        front.scene("ask", ("type", "perhaps"), ("type", "y"))
        if hasattr(front, "terminal")
        else front.scene("ask", ("type", "y"))
    )
    assert seen.sent == ["hello"]


def denied_by_policy(front):
    """The user cannot be asked: no button gets a message, and there is no keyboard."""
    front.widgets = False
    seen = front.scene("ask")
    assert (seen.sent, decided(seen)) == ([], [("deny", "policy")])
    assert "--approve auto" in seen.of("result")[0]["content"]
    assert seen.events[-1]["status"] == "ok"
    assert not seen.failed


def interrupted(front):
    seen = front.scene(
        *(["talk"] if hasattr(front, "notebook") else ["talk", ("interrupt", "I am still writing")])
    )
    assert [event["type"] for event in seen.events[-2:]] == ["interrupt", "end"]
    assert seen.of("respond")[0]["incomplete"]
    assert "I am still writing" in seen.text
    assert seen.failed
    assert STOPPED.format("kernel interrupt") in seen.streamed


def static_at_the_end(front):
    seen = front.scene("work")
    is_static(seen)
    assert "✓ done" in seen.text
    assert "There is a hole." in seen.text


def stays_as_printed(front):
    seen = front.scene("work")
    assert (
        seen.text.index("dig") < seen.text.index("There is a **hole**.") < seen.text.index("✓ done")
    )


def static_after_a_crash(front):
    seen = front.scene("broken")
    is_static(seen)
    broke(seen)


def broke(seen):
    assert seen.failed
    assert "Half an answer" in seen.text
    assert "the model is on fire" in seen.text
    assert seen.events[-1]["status"] == "error"


def printed_after_a_crash(front):
    broke(front.scene("broken"))
    assert "4" in front.cell("2 + 2").streamed


def needs_no_widget(front):
    seen = front.scene("work")
    assert WIDGET not in seen.shown
    assert "There is a hole." in seen.text
    if hasattr(front, "notebook"):
        assert "widgets" not in front.notebook.metadata


def in_the_page(front):
    made = front.html()
    ours = made[made.index("agent-nb mathjax_ignore") :]
    assert "There is a <strong>hole</strong>." in ours
    assert "the model is on fire" in ours
    assert "widget-view" not in made


def policy_is_an_event(front):
    seen = front.scene("policy")
    [event] = [e for e in seen.of("approval") if e["stage"] == "decided"]
    assert (event["decision"], event["by"], event["scope"]) == ("allow", "policy", "once")
    assert "greetings are fine" in event["reason"]
    assert seen.sent == ["hello"]


def run_is_a_page(front):
    if not hasattr(front, "notebook"):
        front.scene("work")
    seen = front.cell("_agent")
    assert WIDGET not in seen.shown
    assert "<div" in seen.page
    assert "run " in seen.text


def run_is_text(front):
    front.scene("work")
    assert "There is a **hole**." in front.cell("_agent").streamed


def recorded(front):
    seen = front.scene("work")
    record = seen.shown[RECORD]
    assert [event["type"] for event in record["events"]][-1] == "end"
    assert "There is a **hole**." in str(record["events"])


def journalled(front):
    front.scene("work")
    run = front.value("print(json.dumps(_agent.id))")
    assert "There is a **hole**." in front.cell(f"%agent recover {run}").streamed


CHECKS = {
    ("view", "live cards"): live_cards,
    ("view", "HTML"): html_pages,
    ("view", "text"): printed,
    ("stream", "as it comes"): as_it_comes,
    ("stream", "once a second"): once_a_second,
    ("stop", "button"): stopped_by_button,
    ("approve", "button"): approved_by_button,
    ("approve", "keyboard"): approved_by_typing,
    ("deny", "button"): denied_by_button,
    ("deny", "keyboard"): denied_by_typing,
    ("edit", "button"): edited_by_button,
    ("edit", "keyboard"): edited_by_typing,
    ("otherwise", "keyboard"): asked_by_typing,
    ("otherwise", "denied, and how to allow"): denied_by_policy,
    ("interrupt", "ends the run"): interrupted,
    ("swap", "static page"): static_at_the_end,
    ("swap", "what was printed"): stays_as_printed,
    ("crash", "static page"): static_after_a_crash,
    ("crash", "what was printed"): printed_after_a_crash,
    ("reload", "needs no widget"): needs_no_widget,
    ("reload", "in the page"): in_the_page,
    ("policy", "events"): policy_is_an_event,
    ("run", "static page"): run_is_a_page,
    ("run", "text"): run_is_text,
    ("record", "in the output"): recorded,
    ("record", "in the journal"): journalled,
}  # fmt: skip
