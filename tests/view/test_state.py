"""The fold: events in, card states out."""

from __future__ import annotations

from typing import Any

import pytest

from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.events.tool_events import meaning
from agent_nb.view.bundle import make_bundle
from agent_nb.view.state.cards import (
    Batch,
    CallCard,
    Card,
    CardList,
    ErrorCard,
    NodeCard,
    NoteCard,
    RespondCard,
    ThinkCard,
)
from agent_nb.view.state.fold import RunView
from agent_nb.view.state.map import MapCardBuilder
from agent_nb.view.state.notes import Notes
from agent_nb.view.state.overview import Usage
from agent_nb.view.state.plans import Plans
from agent_nb.view.state.retries import Retries
from agent_nb.view.state.text import Output, Text
from agent_nb.view.state.text_cards import TextCards
from agent_nb.view.state.think_cards import first_delta

# versions, links, tables of methods, and what only sorts the events to come
SKIP = {
    "version",
    "on_change",
    "_by_alias",
    "calls",
    "_thoughts",
    "_handlers",
    "_delta_handlers",
    "previous",
    "_blocks",
    "quarters",
}
WALKED = (
    RunView | Card | Batch | CardList | TextCards | Retries | Plans | Notes | Usage | MapCardBuilder
)


def snapshot(thing: Any, seen: frozenset[int] = frozenset()) -> Any:
    """Return the state of a view as plain values, versions and links aside."""
    if isinstance(thing, WALKED):
        if id(thing) in seen:
            return "again"
        below = seen | {id(thing)}
        return {
            "is": type(thing).__name__,
            **{k: snapshot(v, below) for k, v in vars(thing).items() if k not in SKIP},
        }
    if isinstance(thing, dict):
        return {k: snapshot(v, seen) for k, v in thing.items()}
    if isinstance(thing, list | tuple):
        return [snapshot(item, seen) for item in thing]
    return str(thing) if isinstance(thing, Text | Output) else thing


def folded(events: Any) -> RunView:
    return RunView().extend(events)


def test_a_log_folds_to_the_same_state_with_and_without_its_deltas(rich):
    assert snapshot(folded(rich.seen)) == snapshot(folded(rich.log))


def test_a_log_read_back_from_its_record_folds_to_the_same_state(rich):
    again = EventLog.from_ndjson(rich.log.to_ndjson())
    assert snapshot(folded(again)) == snapshot(folded(rich.seen))


def test_folding_in_two_halves_is_folding_at_once(rich):
    view = folded(rich.seen[:150])
    assert snapshot(view.extend(rich.seen[150:])) == snapshot(folded(rich.seen))


def test_every_prefix_folds(rich):
    for size in range(0, len(rich.seen), 7):
        assert folded(rich.seen[:size]).events <= size


def test_kinds_of_cards_of_a_rich_run_in_order(rich):
    kinds = [c.kind for c in folded(rich.log).cards]
    assert kinds == [
        "user",
        "think",
        "call",
        "call",
        "call",
        "call",
        "call",
        "retry",
        "call",
        "node",
        "call",
        "state",
        "extension",
        "error",
        "respond",
    ]


def test_model_requests_are_transparent_and_resent_blocks_hidden(rich):
    view = folded(rich.log)
    assert not [c for c in view.cards if isinstance(c, NodeCard) and c.name == "llm"]
    assert all(
        "resend" not in title for c in view.cards if isinstance(c, NoteCard) for title, _ in c.items
    )


def test_a_sub_agent_has_its_cards_inside_the_call_that_started_it(rich):
    view = folded(rich.log)
    call = view.call("s1")
    assert call is not None
    assert [c.kind for c in call.children[0].cards] == ["think", "call", "respond"]
    assert view._views["n1"].status == "ok"


def test_the_end_of_a_span_without_a_beginning_ends_no_other_span(begun):
    begun(
        e.Node(name="act", phase="enter", span="n", ts=10.0),
        e.Node(name="lost", phase="exit", span="m", parent="n", result="error: x", ts=11.0),
    )
    view = folded(begun.seen)
    (card,) = [card for card in view.cards if isinstance(card, NodeCard)]
    assert (card.done, card.result, view._views["n"].status) == (False, "", "running")


def test_a_delta_before_the_beginning_of_its_span_hides_no_span(begun):
    begun(
        e.Delta(block="q", of="respond", text="early", span="n", ts=10.0),
        e.Node(name="act", phase="enter", span="n", ts=10.0),
        e.Respond(content="inside", block="q", span="n", ts=11.0),
    )
    [node] = [card for card in folded(begun.seen).cards if isinstance(card, NodeCard)]
    assert [type(card) for card in node.inside.cards] == [RespondCard]


def test_thousands_of_spans_in_one_another_are_folded_and_drawn(begun):
    for n in range(3000):
        begun(e.Node(name="act", phase="enter", span=f"n{n}", parent=f"n{n - 1}"))
    begun(e.Respond(content="deep down", span="n2999", parent="n2998"))
    for n in reversed(range(3000)):
        begun(e.Node(name="act", phase="exit", span=f"n{n}", parent=f"n{n - 1}"))
    begun(e.End(status="ok"))
    view = folded(begun.seen)
    assert view._views["n0"].status == "ok"
    assert "deep down" in make_bundle(begun.log)["text/html"]


def test_a_change_inside_a_sub_agent_is_a_change_of_the_card_around_it(begun):
    begun.call("s1", "subagent", {})
    begun(e.Node(name="r", phase="enter", span="n", data={"call_id": "s1"}))
    view = folded(begun.seen)
    call = view.call("s1")
    before = call.version
    view.apply(e.Delta(block="q", of="respond", text="x", span="n"))
    assert call.version > before


def left_open(begun):
    """A node with a call and a text, and a node inside it, none of which the stream closed."""
    return begun(
        e.Node(name="act", phase="enter", span="n", ts=10.0),
        e.Call(call_id="c1", name="sh", span="n", ts=10.0),
        e.Started(call_id="c1", name="sh", span="n", ts=10.0),
        e.Node(name="inner", phase="enter", span="m", parent="n", ts=11.0),
        e.Delta(block="q", of="respond", text="half", span="m", ts=11.0),
    )


def test_a_node_that_never_left_is_not_running_after_the_end(begun):
    left_open(begun)
    view = folded(begun.seen)
    card = next(c for c in view.cards if isinstance(c, NodeCard))
    before = card.version
    assert not card.done
    view.apply(e.End(status="ok", ts=14.0))
    assert (card.done, card.left) == (True, True)
    assert card.version > before
    assert [c.status for c in card.inside.cards if isinstance(c, CallCard)] == ["unfinished"]
    inner = next(c for c in card.inside.cards if isinstance(c, NodeCard))
    assert inner.done
    assert inner.inside.cards[0].done
    assert {v.status for v in view._views.values()} == {"interrupted"}


def test_a_node_that_left_is_as_it_left_after_the_end(begun):
    begun(
        e.Node(name="act", phase="enter", span="n", ts=10.0),
        e.Node(name="act", phase="exit", span="n", result="error: x", ts=11.0),
        e.End(ts=14.0),
    )
    card = next(c for c in folded(begun.log).cards if isinstance(c, NodeCard))
    assert (card.left, card.result) == (False, "error: x")


def test_turns_of_a_sub_agent_do_not_count_as_turns_of_the_run(begun):
    begun(
        e.State(turn=1),
        e.Node(name="r", phase="enter", span="n", turn=1),
        e.Respond(content="x", span="n", turn=7),
    )
    assert folded(begun.log).turn == 1


def test_a_thought_lasts_from_its_first_piece(begun):
    begun.think("abcdefghij", "t1")
    card = folded(begun.log).cards[-1]
    assert isinstance(card, ThinkCard)
    assert card.seconds == pytest.approx(0.02, abs=0.005)


def test_a_thought_without_pieces_lasts_from_the_event_before(begun):
    begun(e.Think(content="hm", block="t"), after=1.5)
    assert folded(begun.log).cards[-1].seconds == pytest.approx(1.5)


def test_unreadable_pieces_count_as_unrecorded():
    assert first_delta("!!") is None


@pytest.mark.parametrize("status", ["ok", "error", "denied", "cancelled", "timeout"])
def test_the_status_of_a_result_is_the_status_of_its_card(begun, status):
    begun.tool("k", "t", {}, status=status)
    assert folded(begun.log).call("k").status == status


def test_a_call_goes_through_its_states(begun):
    view = RunView().extend(begun.seen)
    seen = []

    def follow(event: e.Event) -> None:
        view.apply(event)
        seen.append(next(c for c in view.cards if isinstance(c, CallCard)).status)

    for event in (
        e.Delta(block="b", of="call", name="write", text="{"),
        e.Call(call_id="k", name="write", block="b"),
        e.Approval(call_id="k", stage="requested", args={"a": 1}),
        e.Approval(call_id="k", stage="decided", decision="allow", args={"a": 2}),
        e.Started(call_id="k"),
        e.Delta(of="result", block="k", text="ok"),
        e.Result(call_id="k"),
    ):
        follow(event)
    assert seen == ["writing", "queued", "waiting", "queued", "running", "finished", "ok"]
    assert view.call("k").args == {"a": 2}


def test_an_imported_call_that_reports_progress_is_running(begun):
    begun.call("k", "fetch", {})
    begun(e.Progress(call_id="k", text="half", origin="imported"), after=2.0)
    card = folded(begun.log).call("k")
    assert (card.status, card.started) == ("running", begun.log[-1].ts)
    begun(e.Result(call_id="k", origin="imported"), after=3.0)
    card = folded(begun.log).call("k")
    assert (card.status, round(card.ended - card.started, 3)) == ("ok", 3.0)


def test_an_unannounced_result_gets_a_card(begun):
    begun(e.Result(call_id="zz", name="ghost", content="boo"))
    card = folded(begun.log).cards[-1]
    assert (card.name, card.content, card.done) == ("ghost", "boo", True)


def test_an_error_about_a_known_call_belongs_to_its_card(begun):
    begun.call("k", "t", {})
    begun(e.Error(code="x", message="bad", call_id="k"))
    view = folded(begun.log)
    assert view.call("k").error == "bad"
    assert not [c for c in view.cards if isinstance(c, ErrorCard)]


def test_the_end_closes_what_is_still_open(begun):
    begun.call("k", "t", {})
    view = folded(begun.seen)
    view.apply(e.Delta(block="r", of="respond", text="half"))
    view.apply(e.End(status="interrupted"))
    call, answer = view.call("k"), view.cards[-1]
    assert (call.status, call.done) == ("unfinished", True)
    assert isinstance(answer, RespondCard)
    assert answer.incomplete
    assert view.status == "interrupted"


def test_an_event_that_fits_no_card_becomes_a_note(begun):
    begun(e.Unknown(kind="hologram", payload={"x": 1}))
    assert folded(begun.log).cards[-1].items == [("hologram", {"x": 1})]


def test_consecutive_notes_share_a_card(begun):
    begun(e.State(kind="a"), e.State(kind="b"), e.Extension(namespace="n"))
    assert [len(c.items) for c in folded(begun.log).cards[1:]] == [2, 1]


def test_output_keeps_head_and_tail_and_counts_the_rest(begun):
    begun.call("k", "t", {})
    for i in range(5_000):
        begun(e.Progress(call_id="k", text=f"line {i}\n"))
    output = folded(begun.log).call("k").output
    assert output.head.startswith("line 0\n")
    assert output.tail.endswith("line 4999\n")
    assert len(output) == sum(len(f"line {i}\n") for i in range(5_000))
    assert len(str(output)) < 13_000


def test_a_batch_of_several_calls_is_parallel(rich):
    view = folded(rich.log)
    assert view.call("p1").batch is view.call("p2").batch
    assert view.call("p1").batch.parallel
    assert not view.call("k1").batch.parallel


def test_the_figures_of_the_run_come_from_the_last_metric(rich):
    assert (
        folded(rich.log).usage.total.input,
        folded(rich.log).usage.total.output,
        folded(rich.seen).usage.streamed,
    ) == (2800, 412, 0)


@pytest.mark.parametrize(
    ("data", "share"),
    [
        ({"done": 1, "total": 4}, 0.25),
        ({"done": 9, "total": 4}, 1.0),
        ({"done": 1, "total": 0}, None),
        ({"x": 1}, None),
        ([1], None),
        ({"done": "1", "total": 4}, None),
    ],
)
def test_progress_data_with_done_and_total_is_a_share(data, share):
    assert meaning(data).fraction == share


def test_a_text_returns_its_tail_without_losing_the_rest():
    text = Text("ab")
    for piece in ("cd", "", "efg"):
        text.append(piece)
    assert (text.tail(4), text.tail(0), len(text), str(text)) == ("defg", "", 7, "abcdefg")
    assert text == Text("abcdefg")


def test_output_of_one_long_piece_is_bounded():
    output = Output(head=4, tail=6)
    output.append("0123456789abcdef")
    assert (output.head, output.omitted, output.tail) == ("0123", 6, "abcdef")


def test_the_header_says_what_was_left_out_of_the_conversation():
    note = "2 earlier turns left out (context window)"
    found = RunView().extend(
        [e.RunStart(model="m"), e.State(kind="window", payload={"left_out": 2, "note": note})]
    )
    assert found.left_out == note
    assert found.cards == []


def test_a_text_of_many_small_pieces_uses_few_objects():
    text = Text()
    for number in range(100_000):
        text.append(str(number % 10))
    assert len(text._pieces) < 1000
    assert text.tail(12) == "890123456789"
    assert str(text) == "0123456789" * 10_000
    text.append("x")
    assert text.tail(2) == "9x"


def test_arguments_can_be_read_while_they_are_written():
    view = RunView().extend(
        [
            e.RunStart(),
            e.Delta(
                block="1.1", of="call", name="write", text='{"file": "a.txt", "content": "Dear A'
            ),
        ]
    )
    (card,) = view.cards
    assert card.known == {"file": "a.txt", "content": "Dear A"}
    view.apply(e.Delta(block="1.1", of="call", text="x" * 5000))
    assert card.known["content"] == "Dear A" + "x" * 5000
    view.apply(e.Call(block="1.1", name="write", args={"file": "a.txt"}))
    assert card.known == {"file": "a.txt"}
