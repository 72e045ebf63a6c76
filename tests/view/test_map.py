"""The card of a map: its plan before the first row, its bar, its outcome; hostile records."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from helpers.map_runs import asked, counted, ended, map_run, planned
from helpers.tape import Tape

from agent_nb import events as e
from agent_nb.rows.map.budget import Budget
from agent_nb.rows.map.row import RowResult
from agent_nb.rows.map.tally import RowLine, Tally
from agent_nb.view.cards.base import Context
from agent_nb.view.cards.header import describe_phase
from agent_nb.view.draw import html, text
from agent_nb.view.draw.terminal import TextPainter
from agent_nb.view.layout import page
from agent_nb.view.state.fold import RunView
from agent_nb.view.state.map import MapCard


def folded(events: Any) -> RunView:
    return RunView().extend(events)


def card(view: RunView) -> MapCard:
    (found,) = (c for c in view.cards if isinstance(c, MapCard))
    return found


def shown(tape: Tape, *, live: bool = True) -> str:
    context = Context(now=tape.now if live else None, live=live)
    return text.draw(page(folded(tape.seen), context))


def test_the_plan_stands_before_the_first_row_has_ended(tape):
    planned(tape, found=40)
    seen = shown(tape)
    assert "200 rows" in seen
    assert "40 answered already" in seen
    assert "about 12k tokens in, 3.9k out · about $0.021 · 10 at once" in seen
    assert "openai/gpt-5-mini" in seen
    assert describe_phase(folded(tape.seen)) == ("asking rows", "run")


def test_an_estimate_says_what_it_rests_on_and_which_limit_ends_the_map(tape):
    said = "The limit of 9,000 tokens ends the map after about 110 of 200 rows."
    figures = {"input": 12_400, "written": 3_900, "basis": "assuming 20 tokens an answer"}
    tally = planned(tape, estimate={**figures, "limit": said})
    assert "assuming 20 tokens an answer" in shown(tape)
    assert said in shown(tape)
    ended(tape, tally)
    assert said not in shown(tape, live=False)


@pytest.mark.parametrize("failed", [11, 12])
def test_a_map_without_an_answer_is_shown_as_failed(tape, failed):
    tally = planned(tape, 12)
    for place in range(12):
        tally.begin_row()
        status = "error" if place < failed else "ok"
        result = RowResult(position=place, key=f"k{place}", status=status, kind=f"kind{place}")
        tally.end_row(result, RowLine(place, result.status, "a prompt"), tape.now)
    ended(tape, tally)
    assert shown(tape, live=False).startswith("✕ failed" if failed == 12 else "✓ done")


def test_the_bar_says_rate_time_left_cost_and_forecast(tape):
    tally = planned(tape)
    asked(tape, tally, 0, 50)
    counted(tape, tally)
    seen = shown(tape)
    assert "[█████···············] 50 of 200 rows · 10 rows/s · 15 s left" in seen
    assert "0.5 cents of about $0.02" in seen
    assert "✕ 1 rate limit · 1 invalid output" in seen


def test_what_rows_show_takes_the_place_of_a_forecast_that_was_wrong(tape):
    said = (
        "The limit of $0.01 ends the map after about 80 of 200 rows; all of them need about $0.025."
    )
    guess = {"input": 19_000, "written": 10_000, "cost": 0.025, "limit": said}
    planned(tape, estimate=guess)
    tally = Tally(200, tape.now, Budget(cost=0.03))
    asked(tape, tally, 0, 2)
    counted(tape, tally)
    assert said in shown(tape)  # two rows show nothing yet
    assert "about $0.025" in shown(tape)
    asked(tape, tally, 2, 113)
    counted(tape, tally)
    seen = shown(tape)
    assert "The limit of" not in seen
    assert "about $0.025" not in seen.partition("estimate")[0]
    assert "of about $0.02" in seen


def test_a_limit_that_only_the_rows_show_is_said_while_they_are_asked(tape):
    planned(tape)
    tally = Tally(200, tape.now, Budget(cost=0.01))
    asked(tape, tally, 0, 50)
    counted(tape, tally)
    words = (
        "The limit of $0.01 ends the map after about 100 of 200 rows; all of them need about $0.02."
    )
    assert words in shown(tape)


@pytest.mark.parametrize(
    ("dollars", "words"),
    [
        (0.0, "$0.00"),
        (0.000_000_3, "less than 0.01 cents"),
        (0.0041, "0.41 cents"),
        (0.0073, "0.73 cents"),
        (0.02, "$0.02"),
        (1.5, "$1.50"),
    ],
)
def test_a_sum_below_a_cent_is_said_in_cents(tape, dollars, words):
    planned(tape)
    counts = {"total": 200, "done": 50, "cost": 1e-9, "forecast": dollars}
    tape(e.Delta(of="map", text=msgspec.json.encode(counts).decode()))
    assert f"less than 0.01 cents of about {words}" in shown(tape)


def test_the_latest_rows_are_a_table(tape):
    tally = planned(tape)
    asked(tape, tally, 0, 20)
    counted(tape, tally)
    seen = shown(tape)
    assert "19  …Came broken, no reply." in seen  # not what the template says of every row
    assert "✕ failed" in seen
    assert seen.count("✓ ok") == 4


def test_live_counts_bring_forward_what_the_end_says(tape):
    with_deltas = map_run()
    assert any(isinstance(event, e.Delta) for event in with_deltas.seen)
    one, other = card(folded(with_deltas.seen)), card(folded(with_deltas.log))
    assert (one.counts, one.plan, one.done) == (other.counts, other.plan, other.done)


def test_the_outcome_stands_at_the_end(tape):
    seen = shown(map_run(), live=False)
    assert "190 of 200 rows answered  10 failed  16k tokens · $0.02" in seen
    assert "[███████████████████·] 190 of 200 rows" in seen
    assert "left" not in seen
    assert "a sample of 200 rows" in seen
    assert "_map.frame" in seen


@pytest.mark.parametrize("kind", ["map.rows", "map.scores"])
def test_rows_and_scores_of_the_record_are_no_cards(tape, kind):
    tally = planned(tape)
    tape(e.State(kind=kind, payload={"many": ["lines"]}))
    ended(tape, tally)
    assert "many" not in shown(tape, live=False)


def test_a_map_that_is_followed_points_to_its_run(tape):
    planned(tape)
    counts = {"total": 200, "done": 200, "ok": 200}
    tape(e.State(kind="map", payload=counts), e.End(status="ok"))
    followed = [msgspec.structs.replace(event, origin="imported") for event in tape.seen]
    seen = text.draw(page(folded(followed)))
    assert "200 of 200 rows answered" in seen
    assert "_agent.to_frame()" in seen
    assert "_map" not in seen


def test_answers_of_repeats_are_counted_as_answers(tape):
    tally = planned(tape, rows=100, repeats=2)
    asked(tape, tally, 0, 200)
    ended(tape, tally)
    seen = shown(tape, live=False)
    assert "190 of 200 answered (100 rows × 2)  10 failed" in seen
    assert "[███████████████████·] 190 of 200 answers" in seen
    assert "a sample of 200 answers" in seen


def test_a_stopped_map_shows_what_it_has_and_what_was_not_asked(tape):
    tally = planned(tape)
    asked(tape, tally, 0, 50)
    ended(tape, tally, "interrupted")
    seen = shown(tape, live=False)
    assert "48 of 200 rows answered  2 failed  150 not asked" in seen
    assert "■ stopped" in seen
    assert "run the cell again to ask only the others" in seen


def test_rows_that_were_cut_off_are_no_failures(tape):
    planned(tape)
    counts = {"total": 200, "done": 60, "ok": 50, "failures": {"stopped": 6, "rate_limit": 4}}
    tape(e.State(kind="map", payload=counts), e.End(status="interrupted"))
    seen = shown(tape, live=False)
    assert "50 of 200 rows answered  4 failed  6 stopped  140 not asked" in seen
    assert "[█████···············] 50 of 200 rows\n" in seen
    assert "✕ 4 rate limit\n" in seen


def test_failures_are_said_in_words(tape):
    planned(tape)
    counts = {"total": 200, "done": 200, "ok": 196, "failures": {"429": 3, "provider": 1}}
    tape(e.State(kind="map", payload=counts), e.End(status="ok"))
    assert "✕ 3 with HTTP 429 · 1 failed at the provider\n" in shown(tape, live=False)


def test_a_sample_is_shown_whole(tape):
    planned(tape)
    rows = [{"place": n, "said": "word " * 12, "answered": "a sentence " * 5} for n in range(12)]
    tape(e.State(kind="map", payload={"total": 200, "done": 200, "ok": 200, "sample": rows}))
    assert "max-height" not in html.draw_html(page(folded(tape.seen)))


def test_the_records_of_the_rows_are_not_drawn():
    tape = map_run()
    assert "row1" not in html.draw_html(page(folded(tape.log)))


def test_a_live_count_after_the_end_changes_nothing():
    tape = map_run()
    view = folded(tape.log)
    before = card(view).counts
    view.apply(e.Delta(of="map", text='{"total": 5}'))
    assert card(view).counts == before


@pytest.mark.parametrize(
    "payload",
    [
        None,
        "words",
        {"total": "many"},
        {"total": -1},
        {"total": 10**400},
        {"total": float("nan")},
        {"total": 3, "rate": float("inf")},
        {"total": 3, "failures": {"x": -1}},
        {"total": 3, "last": [{"place": "first"}]},
    ],
)
def test_what_has_not_the_form_of_a_map_is_a_state_like_any_other(tape, payload):
    planned(tape)
    tape(e.State(kind="map", payload=payload), e.End(status="ok"))
    view = folded(tape.log)
    assert card(view).done
    assert [c.kind for c in view.cards] == ["user", "map", "state"]
    assert html.draw_html(page(view))


@pytest.mark.parametrize("words", ["", "{", "[]", '{"total": null}', "\ud800", "[" * 100_000])
def test_live_counts_that_cannot_be_read_are_left_out(tape, words):
    planned(tape)
    view = folded(tape.seen)
    before = card(view).counts
    view.apply(e.Delta(of="map", text=words))
    assert card(view).counts == before


def test_hostile_rows_are_escaped_and_bounded(hostile, hazards, tape):
    planned(tape, columns=[*hostile, *(f"c{n}" for n in range(10_000))], where=hostile[0])
    lines = [
        {"place": n, "status": words, "said": words, "answered": words * 1000, "seconds": 1e12}
        for n, words in enumerate(hostile)
    ]
    counts = {"total": 10**12, "done": 3, "ok": 1, "failures": dict.fromkeys(hostile, 1)}
    tape(e.State(kind="map", payload={**counts, "last": lines, "sample": lines}))
    drawn = html.draw_html(page(folded(tape.log)))
    assert hazards(drawn) == []
    assert len(drawn) < 30_000


def test_the_terminal_prints_plan_quarters_and_outcome_once():
    tape = map_run()
    often, once = [], []
    painter, view = TextPainter(often.append), RunView()
    for event in tape.seen:
        view.apply(event)
        painter.paint(view, tape.now if view.status == "running" else None)
    TextPainter(once.append).paint(folded(tape.seen), None)
    said = "".join(often)
    assert said == "".join(once)
    assert said.index("about $0.021") < said.index("100 of 200 rows · 10 rows/s")
    assert said.index("160 of 200 rows") < said.index("190 of 200 rows answered")


def test_texts_of_the_table_share_the_width_of_the_page_and_are_cut(tape):
    planned(tape)
    line = {
        "place": 1,
        "status": "ok",
        "said": "word " * 28,
        "answered": "and " * 30,
        "seconds": 1.5,
    }
    tape(e.State(kind="map", payload={"total": 1, "done": 1, "ok": 1, "sample": [line]}))
    drawn = html.draw_html(page(RunView().extend(tape.log)))
    assert ("word " * 28).strip() in drawn
    assert drawn.count("text-overflow:ellipsis;white-space:nowrap") >= 4  # two columns, two rows
    assert "table-layout:fixed" in drawn
    assert drawn.count('px">✓ ok<') == 1  # a column with a width of its own
