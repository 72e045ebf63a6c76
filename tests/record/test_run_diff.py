"""The differences of two runs."""

import msgspec
import pytest
from helpers.pictures import attached, png

from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.notebook.files.run_diff import compare_runs


def log(*events, run="r"):
    return EventLog.of_events([msgspec.structs.replace(x, run=run) for x in events])


CALL = e.Call(call_id="c1", name="read", args={"file": "a.txt"}, turn=1)
RESULT = e.Result(call_id="c1", name="read", content="one\ntwo", turn=1)
ANSWER = e.Respond(content="It says one.", turn=2)
BASE = (e.RunStart(model="m"), e.User(content="go"), CALL, RESULT, ANSWER, e.End())


def test_a_run_is_the_same_as_itself():
    found = compare_runs(log(*BASE), log(*BASE))
    assert not found
    assert "the same" in str(found)


def test_ids_times_tokens_and_chunks_do_not_count(new_log):
    one, other = new_log("one", seed=1), new_log("other", seed=1, start=5e9)
    shifted = [
        msgspec.structs.replace(x, chunks="", block="b") if x.type in ("think", "respond") else x
        for x in other
        if x.type != "metric"
    ]
    assert not compare_runs(one, log(*shifted))


def test_call_ids_do_not_count():
    other = [
        msgspec.structs.replace(x, call_id="call_9") if x.type in ("call", "result") else x
        for x in BASE
    ]
    assert not compare_runs(log(*BASE), log(*other))


def test_a_changed_answer_is_shown_line_by_line():
    found = compare_runs(
        log(*BASE), log(*BASE[:4], e.Respond(content="It says two.", turn=2), e.End())
    )
    assert [(c.what, c.turn, c.head) for c in found.changes] == [("changed", 2, "answer")]
    assert "- It says one." in str(found)
    assert "+ It says two." in str(found)


def test_an_approval_that_takes_all_arguments_away_is_shown():
    plain, emptied = (
        e.Approval(call_id="c1", stage="decided", decision="approved", args=args, turn=1)
        for args in (None, {})
    )
    found = compare_runs(*(log(*BASE[:3], x, *BASE[3:]) for x in (plain, emptied)))
    (change,) = found.changes
    assert change.head == "decision read"
    assert "with" in change.after


def test_another_argument_is_a_changed_call():
    other = msgspec.structs.replace(CALL, args={"file": "b.txt"})
    found = compare_runs(log(*BASE), log(*BASE[:2], other, *BASE[3:]))
    assert [(c.what, c.head, c.before, c.after) for c in found.changes] == [
        ("changed", "call read", "file = a.txt", "file = b.txt")
    ]


def test_another_tool_is_a_removed_and_an_added_call():
    found = compare_runs(
        log(*BASE), log(*BASE[:2], msgspec.structs.replace(CALL, name="list"), *BASE[3:])
    )
    assert [(c.what, c.head) for c in found.changes] == [
        ("removed", "call read"),
        ("added", "call list"),
    ]


def test_a_call_more_does_not_misalign_the_rest():
    more = e.Call(call_id="c0", name="read", args={"file": "0"}, turn=1)
    found = compare_runs(log(*BASE), log(*BASE[:2], more, *BASE[2:]))
    assert [(c.what, c.after) for c in found.changes] == [("added", "file = 0")]


def test_a_turn_more_is_added():
    found = compare_runs(
        log(*BASE), log(*BASE[:5], e.Respond(content="And more.", turn=3), e.End())
    )
    assert [(c.what, c.turn) for c in found.changes] == [("added", 3)]


def test_results_are_compared_in_normal_form():
    def with_result(content):
        return log(*BASE[:3], msgspec.structs.replace(RESULT, content=content), *BASE[4:])

    assert not compare_runs(
        with_result("<f at 0x11> in 1.5 ms"), with_result("<f at 0x22> in 9.1 ms")
    )
    assert compare_runs(with_result({"a": 1}), with_result({"a": 2}))


@pytest.mark.parametrize(
    ("change", "head"),
    [
        (lambda x: [e.RunStart(model="other"), *x[1:]], "settings"),
        (lambda x: [*x[:-1], e.End(status="error")], "end"),
        (
            lambda x: [
                *x[:3],
                e.Result(call_id="c1", name="read", status="error", content="one\ntwo", turn=1),
                *x[4:],
            ],
            "result read",
        ),
        (lambda x: [*x[:5], e.Error(code="provider", message="no"), *x[5:]], "error provider"),
    ],
)
def test_what_else_counts(change, head):
    assert [c.head for c in compare_runs(log(*BASE), log(*change(list(BASE)))).changes] == [head]


def test_the_report_names_the_runs_and_their_cells():
    text = str(compare_runs(log(*BASE, run="one"), log(*BASE[:5], run="two"), cells=("c1", "c2")))
    assert "one (cell c1) → two (cell c2): 1 difference" in text


def test_the_report_has_no_control_characters():
    found = compare_runs(
        log(*BASE), log(*BASE[:4], e.Respond(content="\x1b[2Jgone \u202e", turn=2), e.End())
    )
    assert "\x1b" not in str(found)
    assert "\u202e" not in str(found)


def test_empty_logs_are_the_same():
    assert not compare_runs([], [])


def test_pictures_are_compared_by_their_pixels():
    def run(*pictures):
        shown = msgspec.structs.replace(RESULT, attachments=tuple(map(attached, pictures)))
        return log(*BASE[:3], shown, *BASE[4:])

    one = png(9, 9, noise=1)
    assert not compare_runs(run(one), run(png(9, 9, noise=1, level=1)))
    assert "+ (pictures) figure 1: " in str(compare_runs(run(one), run(png(9, 9))))
    assert "it shows 2 pictures" in str(compare_runs(run(one), run(one, one)))
