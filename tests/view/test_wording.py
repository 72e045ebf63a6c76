"""The words of cards: in the user's language, not in ours."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agent_nb import events as e
from agent_nb.view.cards.base import Context
from agent_nb.view.draw import html
from agent_nb.view.draw.text import draw
from agent_nb.view.layout import page
from agent_nb.view.state.fold import RunView

SENTENCE = "returned something else than in the record; from here on the model was asked again."


def said(*events: e.Event, **context: Any) -> str:
    return draw(page(RunView().extend([e.RunStart(model="m"), *events]), Context(**context))) + "\n"


def decision(allow: bool, by: str, scope: Any = "once", reason: str = "") -> tuple[e.Event, ...]:
    settled = e.Approval(
        call_id="k",
        stage="decided",
        decision="allow" if allow else "deny",
        by=by,
        scope=scope,
        reason=reason,
    )
    end = e.Result(call_id="k", name="rm", status="ok" if allow else "denied", content="gone")
    return (
        e.Call(call_id="k", name="rm"),
        e.Approval(call_id="k", stage="requested", args={}),
        settled,
        end,
    )


@pytest.mark.parametrize(
    ("code", "title"),
    [
        ("usage", "✕ Cannot start  why"),
        ("model", "✕ Cannot start  why"),
        ("tools", "✕ Cannot start  why"),
        ("provider", "✕ The provider failed  why"),
        ("connect", "✕ No connection  why"),
    ],
)
def test_an_error_says_what_went_wrong_not_which_part_of_ours_it_came_from(code, title):
    assert title in said(e.Error(code=code, message="why"))


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("lab refused the key (401): Incorrect.", "The provider refused"),
        ("Rate limit at lab (429).", "The provider refused"),
        ("lab failed (500): the template raised (404).", "The provider failed"),
        ("lab is overloaded (529).", "The provider failed"),
        ("the script says so", "The provider failed"),
    ],
)
def test_only_a_refusal_of_the_request_is_called_one(message, title):
    assert f"✕ {title}  {message}" in said(e.Error(code="provider", message=message))


@pytest.mark.parametrize(
    ("limit", "option"),
    [
        ("$0.10", "--budget"),
        ("30 turns", "--max-turns"),
        ("1 tool call", "--max-calls"),
        ("3 tool failures in a row", "--max-failures"),
        ("200,000 tokens", "--max-tokens"),
    ],
)
def test_a_limit_names_the_option_that_sets_it(limit, option):
    text = said(e.Interrupt(reason="limit", detail=f"stopped at the limit of {limit}"))
    assert f"a higher limit is set with {option}." in text


def test_what_is_dropped_from_a_conversation_is_read_without_opening():
    text = said(e.State(kind="conversation", payload={"note": "The later 3 turns were dropped."}))
    assert "⟳ conversation  The later 3 turns were dropped.\n" in text


def test_the_line_of_a_prompt_ends_before_its_first_code():
    asked = e.User(content="This cell fails:\nNameError: x\n\n```python\nx + 1\n```")
    (first,) = (line for line in said(asked).splitlines() if "❯" in line)
    assert "❯ This cell fails: NameError: x" in first
    assert "```" not in first
    assert "```python x + 1 ```" in said(e.User(content="```python\nx + 1\n```"))


def test_an_invalid_answer_says_what_comes_next():
    asked = e.Error(code="invalid_output", message="no JSON", retryable=True)
    assert "The model was given this text and answers again." in said(asked)
    last = said(e.Error(code="invalid_output", message="no JSON", retryable=False))
    assert "✕ No valid answer  no JSON" in last
    assert "Say in the prompt what the answer needs" in last


@pytest.mark.parametrize(
    ("code", "whose"), [("provider", "Server's reply"), ("malformed_execute", "Model's text")]
)
def test_the_raw_text_of_an_error_names_its_author(code, whose):
    text = said(e.Error(code=code, message="why", raw="<html>"))
    assert whose in text
    assert "What came" not in text


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (decision(False, "click", reason="the user said no"), "You denied this call\n"),
        (decision(False, "stdin", reason="too late"), "You denied this call: too late\n"),
        (decision(True, "click"), "You approved this call\n"),
        (decision(True, "click", "tool"), "You approved all calls of this tool for this run\n"),
        (
            decision(False, "policy", reason="p.yaml, line 2"),
            "The policy denied this call: p.yaml, line 2\n",
        ),
    ],
)
def test_a_decision_says_who_decided_what(events, words):
    assert words in said(*events)


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ("stop button", "■ Stopped by you\n"),
        ("kernel interrupt", "■ Stopped by you\n"),
        ("it broke", "Stopped  it broke\n"),
    ],
)
def test_a_stop_says_who_stopped_the_run(detail, words):
    assert words in said(e.Interrupt(reason="user", detail=detail), e.End(status="interrupted"))


def test_the_source_of_a_named_model_is_a_tooltip():
    view = RunView().extend([e.RunStart(model="a/b", settings={"source": "from AGENT_NB_MODEL"})])
    assert "AGENT_NB_MODEL" not in draw(page(view))
    assert 'title="from AGENT_NB_MODEL"' in html.draw_html(page(view))


def test_the_header_explains_a_model_that_the_user_did_not_name():
    why = "because of the key from OPENAI_API_KEY"
    view = RunView().extend([e.RunStart(model="a/b", settings={"source": why})])
    assert f"a/b  {why}" in draw(page(view))


def test_the_line_of_a_result_with_fields_names_them():
    text = said(
        e.Call(call_id="k", name="f"),
        e.Result(call_id="k", name="f", content={"mean": 1, "error": [2]}, status="ok"),
    )
    assert "mean, error" in text
    assert "2 fields" not in text


def test_a_replay_that_went_live_says_what_differed_and_what_follows():
    payload = {"name": "python", "recorded": "42", "fresh": "43"}
    assert f"↻ python {SENTENCE}" in said(
        e.Extension(namespace="agent_nb", name="drift", payload=payload)
    )


def test_a_drift_is_shown_line_by_line_in_two_columns():
    payload = {"name": "python", "recorded": "a\n  b = 1\nc", "fresh": "a\n  b = 2\nc"}
    view = RunView().extend(
        [e.RunStart(), e.Extension(namespace="agent_nb", name="drift", payload=payload)]
    )
    text, web = draw(page(view)), html.draw_html(page(view))
    assert re.search(r"^ *recorded +now$", text, re.MULTILINE)
    assert re.search(r"^ *≠ +b = 1 +b = 2$", text, re.MULTILINE)
    assert re.search(r"<td[^>]*pre-wrap[^>]*>  b = 1</td><td[^>]*pre-wrap[^>]*>  b = 2</td>", web)


def test_the_lines_of_an_error_stay_lines():
    text = said(e.Error(code="usage", message="Choose one:\n  a\n  b"))
    assert re.search(r"Cannot start  Choose one:\n +a\n +b\n", text)


@pytest.mark.parametrize(
    ("reason", "detail", "words"),
    [
        ("limit", "stopped at the limit of 12 turns", "12 turns"),
        ("limit", "limit reached: 12 model turns", "12 turns"),
        (
            "limit",
            "stopped at the limit of 2,000 tokens (this request alone has about 5,000)",
            "2,000 tokens",
        ),
        ("timeout", "stopped at the limit of 600 seconds", "600 seconds"),
    ],
)
def test_header_and_card_name_the_limit_that_ended_a_run_old_or_new(reason, detail, words):
    text = said(e.Interrupt(reason=reason, detail=detail), e.End(status="limit"))
    assert text.startswith(f"■ stopped at the limit of {words}  m")
    assert f"\n■ Stopped at the limit of {words}" in text
    assert "limit reached" not in text


def test_an_unnamed_limit_is_still_a_limit():
    text = said(e.Interrupt(reason="limit", detail="enough"), e.End(status="limit"))
    assert text.startswith("■ stopped at a limit")
    assert "Limit reached  enough" in text


def test_a_sub_agents_limit_is_not_the_limit_of_its_run():
    inner = [
        e.Node(name="sub", phase="enter", span="s"),
        e.Interrupt(reason="limit", detail="stopped at the limit of 2 turns", span="s"),
    ]
    assert said(*inner, e.End(status="ok")).startswith("✓ done")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.02, "Thought for 0.1 s"),
        (0.24, "Thought for 0.2 s"),
        (0.97, "Thought for 1.0 s"),
        (75, "Thought for 1 min 15 s"),
    ],
)
def test_a_thought_says_how_long_it_took(seconds, words):
    start, think = e.RunStart(ts=100.0), e.Think(content="hm", ts=100.0 + seconds)
    text = draw(page(RunView().extend([start, think])))
    assert words in text


def test_a_thought_that_was_cut_off_says_how_long_it_took():
    delta = e.Delta(of="think", block="b", text="hm", ts=101.0)
    end = e.End(status="interrupted", ts=103.0)
    assert "Thought for 2.0 s (cut off)" in draw(
        page(RunView().extend([e.RunStart(ts=100.0), delta, end]))
    )


@pytest.mark.parametrize(
    ("counts", "estimated", "paced"),
    [
        ({"output": 60, "duration": 2.0}, False, True),
        ({"output": 60, "duration": 2.0}, True, False),
        ({"output": 4, "duration": 2.0}, False, False),
        ({"output": 60, "duration": 0.2}, False, False),
    ],
)
def test_the_rate_is_left_out_where_it_says_nothing(counts, estimated, paced):
    metric = e.Metric(total=e.Counts(**counts), step=e.Counts(**counts), estimated=estimated)
    assert ("30 tok/s" in said(metric, e.End(status="ok"))) == paced


def test_a_map_has_no_rate_of_tokens():
    counts = e.Counts(output=60, duration=2.0)
    seen = (
        e.State(kind="map.plan", payload={"rows": 3}),
        e.Metric(total=counts, step=counts),
        e.End(status="ok"),
    )
    assert "tok/s" not in said(*seen)


def test_a_failed_run_is_red_in_its_header_and_its_box_is_not():
    failed = [e.RunStart(), e.Error(code="connect", message="no network"), e.End(status="error")]
    header, box, _ = (s.child for s in page(RunView().extend(failed)).sections)
    assert header.left[0].tone == "bad"
    assert box.tone == ""


def test_the_columns_of_a_sent_variable_stay_beside_their_types():
    text = "trips: DataFrame 6×2 (trip_id: int64, started at: str)\nthat is: prose"
    shown = said(e.State(kind="context", payload={"text": text}))
    drawn = html.draw_html(
        page(RunView().extend([e.State(kind="context", payload={"text": text})]))
    )
    assert "(trip_id:\u00a0int64, started at:\u00a0str)\nthat is: prose" in drawn
    assert "word-break:normal" in drawn
    assert shown


def test_a_sub_agent_is_shown_as_text_and_nothing_of_it_twice():
    task, answer = "Find out how many there are.\nBe brief.", "There are **60**."
    call = e.Call(call_id="k", name="researcher", args={"prompt": task})
    enter = e.Node(name="researcher", phase="enter", span="k", data={"call_id": "k"})
    inside = (e.User(content=task, span="k"), e.Respond(content=answer, span="k"))
    over = e.Node(name="researcher", phase="exit", span="k")
    text = said(
        call,
        enter,
        *inside,
        over,
        e.Result(call_id="k", name="researcher", content=answer, status="ok"),
    )
    assert "researcher  Find out how many there are. …   There are 60   ✓ ok" in text
    assert text.count("Be brief.") == 1
    assert text.count(answer) == 1
