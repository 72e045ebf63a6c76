"""The few numbers that stand beside an output."""

from agent_nb import Run
from agent_nb.agent.drift import Played
from agent_nb.agent.replay_check import Checked
from agent_nb.cli.run_summary import summary_line
from agent_nb.events import Counts, End, Error, Interrupt, Metric, Result, RunStart, State, User
from agent_nb.events.log import EventLog
from agent_nb.notebook.cell.summary import (
    LONGEST_TEXT,
    MOST_ITEMS,
    summarize_replay,
    summarize_run,
)


def ended(*events, status="ok"):
    times = iter(range(100))
    log = EventLog("r1", clock=lambda: float(next(times)))
    for event in (RunStart(model="a/b"), User(content="x"), *events, End(status=status)):
        log.append(event)
    return Run(log)


def test_the_numbers_of_a_run():
    run = ended(Result(call_id="c", turn=1), Metric(total=Counts(input=10, output=5), turn=2))
    numbers = summarize_run(run)
    assert numbers["run"] == "r1"
    assert (
        numbers["status"],
        numbers["model"],
        numbers["turns"],
        numbers["calls"],
        numbers["tokens"],
    ) == ("ok", "a/b", 2, 1, [10, 5])
    assert numbers["seconds"] > 0
    assert "error" not in numbers
    assert summary_line(numbers).startswith("ok · a/b · 2 turns · 1 call · 10 → 5 tokens")


def test_what_it_cost_and_the_model_that_took_over_are_in_it():
    took_over = State(kind="model", payload={"model": "c/d", "instead_of": "a/b"})
    numbers = summarize_run(ended(took_over, Metric(total=Counts(input=10, cost=0.0123))))
    assert (numbers["model"], numbers["cost"]) == ("c/d", 0.0123)
    assert "10 → 0 tokens · $0.012 · " in summary_line(numbers)


def test_a_failed_run_says_why_in_one_line():
    numbers = summarize_run(ended(Error(message="no\nserver"), status="error"))
    assert summary_line(numbers).endswith("no server")


def test_a_replay_is_said_to_be_one_and_whether_it_drifted():
    numbers = summarize_run(ended())
    assert summary_line({**numbers, "replayed": True}).startswith("ok, replayed · a/b")
    assert summary_line({**numbers, "replayed": True, "drift": {"seq": 5}}).startswith(
        "ok, replayed, drifted · a/b"
    )


def test_a_run_that_ended_at_a_limit_says_which_in_one_line():
    numbers = summarize_run(
        ended(Interrupt(reason="limit", detail="stopped at the limit of 30 turns"), status="limit")
    )
    assert summary_line(numbers).startswith("stopped at the limit of 30 turns · a/b")


def test_a_run_without_events_has_a_summary():
    assert summarize_run(Run(EventLog("r1")))["seconds"] == 0.0


def test_a_foreign_summary_makes_a_line():
    assert summary_line({}) == "? · 0 turns · 0 calls · 0 → 0 tokens · 0 s"


def test_the_numbers_of_a_replay_hold_no_secret_and_have_a_bounded_size():
    key = "sk-proj-" + "a1B2" * 12
    unseen = (f"the figure {key}", "x" * 2 * LONGEST_TEXT) * MOST_ITEMS
    numbers = summarize_replay(Played(log=ended().log, checked=Checked(unseen=unseen)))
    assert key not in str(numbers)
    assert len(numbers["unseen"]) == MOST_ITEMS
    assert max(map(len, numbers["unseen"])) == LONGEST_TEXT
