"""Plans: a tree or graph of thought is one card; snapshots show what changed."""

from __future__ import annotations

import pytest

from agent_nb import events as e
from agent_nb.view import layout
from agent_nb.view.bundle import make_bundle
from agent_nb.view.draw import html, markdown, text
from agent_nb.view.draw.terminal import TextPainter
from agent_nb.view.state.fold import RunView
from agent_nb.view.state.json_diff import MISSING, MOST_LEVELS, find_changes
from agent_nb.view.state.plans import PlanCard, Thought


def loom(name, ts=0.0, **payload):
    return e.Extension(namespace="loom", name=name, payload=payload, ts=ts, origin="imported")


def plan(*found):
    """Return the only plan card of these events."""
    (card,) = [c for c in RunView().extend(found).cards if isinstance(c, PlanCard)]
    return card


def tree(thought: Thought):
    """Return a thought as (text, status, children)."""
    return (thought.text, thought.status, [tree(t) for t in thought.children])


EXPAND = loom("tot_expand", candidates=["a", "b", "c"])


def test_an_evaluation_scores_the_candidates_and_takes_one():
    card = plan(EXPAND, loom("tot_evaluate", chosen=1, scores=[0.2, 0.9, 0.5]))
    assert [(t.text, t.score, t.status) for t in card.root.children] == [
        ("a", 0.2, "passed"),
        ("b", 0.9, "chosen"),
        ("c", 0.5, "passed"),
    ]
    assert [t.text for t in card.chosen] == ["b"]


def test_the_next_expansion_hangs_below_the_chosen_branch():
    card = plan(
        EXPAND,
        loom("tot_evaluate", chosen=0, scores=[1, 0, 0]),
        loom("tot_expand", candidates=["a1", "a2"]),
    )
    assert tree(card.root)[2] == [
        ("a", "chosen", [("a1", "open", []), ("a2", "open", [])]),
        ("b", "passed", []),
        ("c", "passed", []),
    ]


def test_a_backtrack_gives_up_the_branch_below_its_depth_and_says_why():
    card = plan(
        EXPAND,
        loom("tot_evaluate", chosen=0, scores=[1, 0, 0]),
        loom("tot_expand", candidates=["a1"]),
        loom("tot_evaluate", chosen=0, scores=[0.1]),
        loom("tot_backtrack", reason="dead end", to_depth=0),
    )
    assert tree(card.root)[2][0] == ("a", "left", [("a1", "left", [])])
    assert card.root.children[0].note == "dead end"
    assert card.chosen == []
    assert card.backtracks == 1


def test_after_a_backtrack_an_evaluation_may_choose_old_candidates():
    card = plan(
        EXPAND,
        loom("tot_evaluate", chosen=0, scores=[0.9, 0.8, 0]),
        loom("tot_backtrack", reason="no", to_depth=0),
        loom("tot_evaluate", chosen=1, scores=[0.1, 0.8, 0]),
    )
    assert [t.text for t in card.chosen] == ["b"]
    assert [t.status for t in card.root.children] == ["left", "chosen", "passed"]


def test_a_backtrack_to_the_current_depth_gives_up_only_unscored():
    card = plan(
        EXPAND,
        loom("tot_evaluate", chosen=0, scores=[1]),
        loom("tot_expand", candidates=["x"]),
        loom("tot_backtrack", reason="try others", to_depth=1),
    )
    assert tree(card.root)[2][0] == ("a", "chosen", [("x", "left", [])])
    assert card.remarks == ["back to depth 1: try others"]


def test_unnamed_candidates_are_numbered():
    card = plan(loom("tot_evaluate", chosen=1, scores=[0.2, 0.9]))
    assert [(t.text, t.score) for t in card.root.children] == [
        ("candidate 1", 0.2),
        ("candidate 2", 0.9),
    ]


def test_an_invalid_choice_is_reported_and_changes_nothing():
    card = plan(EXPAND, loom("tot_evaluate", chosen=7, scores=[0.1, 0.2, 0.3]))
    assert card.chosen == []
    assert "chose 7" in card.remarks[0]


def test_nodes_of_a_graph_go_from_planned_to_their_end():
    card = plan(
        loom("got_plan", node_count=3, edge_count=2, node_ids=["n1", "n2", "n3"]),
        loom("got_node_start", id="n1", ts=10.0),
        loom("got_node_complete", id="n1", result_summary="found", ts=12.5),
        loom("got_node_start", id="n2"),
        loom("got_node_failed", id="n2", error="timeout"),
    )
    assert {n: t.status for n, t in card.nodes.items()} == {
        "n1": "ok",
        "n2": "error",
        "n3": "planned",
    }
    assert (card.nodes["n1"].note, card.nodes["n1"].seconds) == ("found", 2.5)
    assert card.nodes["n2"].note == "timeout"


def test_nodes_that_no_plan_named_fill_the_latest_expansion():
    card = plan(
        loom("got_plan", node_count=1, edge_count=0, node_ids=["n1"]),
        loom("got_expand", node_id="n1", nodes_added=2, edges_added=2),
        loom("got_node_start", id="x"),
        loom("got_node_start", id="y"),
        loom("got_node_start", id="z"),
    )
    assert [t.text for t in card.nodes["n1"].children] == ["x", "y"]
    assert [t.text for t in card.root.children] == ["n1", "z"]


def test_an_expansion_that_names_its_nodes_places_them():
    card = plan(
        loom("got_expand", node_id="n1", nodes_added=["x", {"id": "y"}], edges_added=[["n1", "x"]])
    )
    assert [t.text for t in card.nodes["n1"].children] == ["x", "y"]
    assert card.counts[1] == 1


def test_a_second_try_of_a_node_is_counted():
    card = plan(
        loom("got_node_start", id="n"),
        loom("got_node_failed", id="n", error="e"),
        loom("got_node_start", id="n"),
    )
    assert (card.nodes["n"].tries, card.nodes["n"].status) == (2, "running")


def test_a_new_plan_is_a_new_card():
    found = [loom("got_plan", node_count=1, edge_count=0, node_ids=[n]) for n in ("a", "b")]
    assert [c.kind for c in RunView().extend(found).cards] == ["plan", "plan"]


def test_a_plan_stays_one_card_whatever_comes_between():
    view = RunView().extend(
        [EXPAND, e.Respond(content="so"), loom("tot_evaluate", chosen=0, scores=[1])]
    )
    assert [c.kind for c in view.cards] == ["plan", "respond"]


@pytest.mark.parametrize(
    "name",
    ["tot_expand", "tot_evaluate", "tot_backtrack", "got_plan", "got_node_start", "got_expand"],
)
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"candidates": 3, "scores": "x", "chosen": "y", "to_depth": None, "id": [1], "node_ids": 4},
    ],
)
def test_an_empty_payload_is_left_to_the_notes(name, payload):
    assert [c.kind for c in RunView().extend([loom(name, **payload)]).cards] == ["extension"]


@pytest.mark.parametrize("value", [-1, 10**400, float("nan"), True, "2", None, [], {"a": 1}])
def test_strange_numbers_are_harmless(value):
    events = [
        EXPAND,
        loom("tot_evaluate", chosen=value, scores=[value, 0.5]),
        loom("tot_backtrack", reason=value, to_depth=value),
        loom("got_plan", node_count=value, edge_count=value, node_ids=[value]),
        loom("got_expand", node_id="n", nodes_added=value),
        loom("got_node_complete", id=value, result_summary=value),
    ]
    assert make_bundle(events)["text/html"]


def test_extensions_of_other_protocols_are_not_plans():
    event = e.Extension(namespace="x", name="tot_expand", payload={"candidates": ["a"]})
    assert [c.kind for c in RunView().extend([event]).cards] == ["extension"]


# How it looks.


def test_the_chosen_branch_is_named_in_words_with_its_score():
    text = make_bundle([EXPAND, loom("tot_evaluate", chosen=1, scores=[0.2, 0.9, 0.5])])[
        "text/plain"
    ]
    assert "● b   chosen  0.90" in text
    assert "3 candidates · depth 1" in text


def test_branches_are_nested_lists_in_html_and_lines_in_text():
    events = [
        EXPAND,
        loom("tot_evaluate", chosen=0, scores=[1, 0, 0]),
        loom("tot_expand", candidates=["a1", "a2"]),
    ]
    made = make_bundle(events)
    assert "├─ ○ a1" in made["text/plain"]
    assert "└─ ○ a2" in made["text/plain"]
    assert "└─ ○ a2" in made["text/markdown"]
    assert made["text/html"].count("<ul") == 2


def test_a_branch_that_was_given_up_shows_the_reason():
    events = [
        EXPAND,
        loom("tot_evaluate", chosen=0, scores=[1, 0, 0]),
        loom("tot_backtrack", reason="no way", to_depth=0),
    ]
    assert "↩ a  no way   given up" in make_bundle(events)["text/plain"]


def test_a_node_that_still_runs_at_the_end_has_no_result():
    going = [loom("got_node_start", id="n")]
    assert "n   running" in make_bundle(going)["text/plain"]
    assert "n   no result" in make_bundle([*going, e.End()])["text/plain"]


def test_a_large_plan_is_cut_and_says_so():
    text = make_bundle([loom("tot_expand", candidates=[f"c{i}" for i in range(500)])])["text/html"]
    assert "… 300 more" in text


def test_remarks_that_are_too_many_are_counted():
    events = [EXPAND, *[loom("tot_evaluate", chosen=7, scores=[0, 0, 0])] * 203]
    text = make_bundle(events)["text/html"]
    assert text.count("chose 7") == 200
    assert "… 3 more remarks" in text


def test_a_long_candidate_opens_to_its_full_text():
    long = "word " * 100 + "END"
    made = make_bundle([loom("tot_expand", candidates=[long])])
    assert "END" in made["text/html"]
    assert "END" not in made["text/plain"]


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.long)])
def test_hostile_texts_stay_texts(hostile, hazards, step):
    for word in hostile[::step]:
        events = [
            loom("tot_expand", candidates=[word, {word: word}]),
            loom("tot_evaluate", chosen=0, scores=[1, 0]),
            loom("tot_backtrack", reason=word, to_depth=0),
            loom("got_plan", node_count=1, edge_count=1, node_ids=[word]),
            loom("got_node_failed", id=word, error=word),
            e.State(kind=word, payload={word: word}),
            e.State(kind=word, payload={word: [word], "step": word}),
        ]
        assert hazards(make_bundle(events)["text/html"]) == []


def test_every_form_draws_the_tree_node():
    node = layout.page(RunView().extend([EXPAND]))
    assert all("b" in draw(node) for draw in (html.draw_html, markdown.draw, text.draw))


def test_a_terminal_prints_a_plan_once_when_it_is_complete():
    said: list[str] = []
    view, painter = RunView(), TextPainter(said.append)
    for event in (
        EXPAND,
        e.Respond(content="so"),
        loom("tot_evaluate", chosen=1, scores=[0, 1, 0]),
        e.End(),
    ):
        view.apply(event)
        painter.paint(view, 1.0)
    painter.paint(view, None)
    assert "".join(said).count("Tree of thought") == 1
    assert "● b   chosen" in "".join(said)


# Snapshots.


def nest_lists(value):
    """A value more levels deep than are compared one by one."""
    for _ in range(MOST_LEVELS + 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 2}, [("a", 1, 2)]),
        ({"a": 1}, {"a": 1, "b": 2}, [("b", MISSING, 2)]),
        ({"a": 1}, {}, [("a", 1, MISSING)]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 2, 3]}}, [("a.b[2]", MISSING, 3)]),
        ([1, 2, 3], [0, 1, 2, 3], [("[0]", MISSING, 0)]),
        ([{"x": 1}, 2], [{"x": 3}, 2], [("[0].x", 1, 3)]),
        ({"a b": 1}, {"a b": 2}, [('["a b"]', 1, 2)]),
        ({"a": True}, {"a": 1}, [("a", True, 1)]),
        (1, [1], [("", 1, [1])]),
        ({"a": 1}, {"a": 1}, []),
        (
            [{"a": 1, "b": 2}, 3],
            [0, {"b": 2, "a": 1}, 3],
            [("[0]", MISSING, 0)],
        ),
        (
            nest_lists({"a": 1, "b": 2}),
            nest_lists({"b": 2, "a": 1}),
            [],
        ),
        ([True], [1], [("[0]", True, 1)]),
    ],
)
def test_changes_between_two_values(before, after, expected):
    assert [tuple(c) for c in find_changes(before, after)] == expected


def test_a_snapshot_shows_what_changed_since_the_last_of_its_kind():
    events = [
        e.State(kind="values", payload={"n": 1, "same": 0}),
        e.State(kind="values", payload={"n": 2, "same": 0}),
    ]
    text = make_bundle(events)["text/markdown"]
    assert "- n: 1\n  + n: 2" in text
    assert "same: " not in text.split("```diff")[1].split("```")[0]


def test_a_checkpoint_is_compared_by_its_state_not_by_its_id():
    events = [
        e.State(kind="checkpoint", payload={"checkpoint_id": i, "step": i, "state": {"n": 1}})
        for i in (1, 2)
    ]
    text = make_bundle(events)["text/plain"]
    assert "checkpoint · step 2 · checkpoint_id 2   unchanged" in text


def test_the_first_of_a_kind_is_compared_with_the_latest_of_any():
    events = [
        e.State(kind="values", payload={"n": 1}),
        e.State(kind="checkpoint", payload={"step": 1, "state": {"n": 2}}),
    ]
    assert "+ n: 2" in make_bundle(events)["text/markdown"]


def test_a_successful_empty_node_has_no_card():
    node = [
        e.Node(name="think", span="s", phase="enter"),
        e.Node(name="think", span="s", phase="exit", result="ok"),
    ]
    assert "think" not in make_bundle(node)["text/plain"]
    failed = [node[0], e.Node(name="think", span="s", phase="exit", result="error: lost")]
    assert "think" in make_bundle(failed)["text/plain"]


def test_a_single_snapshot_is_one_line_with_its_identifying_fields():
    status = e.State(kind="status", payload={"status": {"state": "working"}})
    assert make_bundle([status])["text/plain"].splitlines()[2] == "⟳ status · working"


def test_an_error_of_one_line_is_its_message_not_a_traceback():
    failed = e.Result(
        call_id="c", name="read", status="error", content="", display={"text/plain": "no such file"}
    )
    made = make_bundle([e.Call(call_id="c", name="read"), failed])["text/plain"]
    assert "no such file" in made
    assert "Traceback" not in made
