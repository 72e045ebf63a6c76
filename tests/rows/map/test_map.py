"""`agent.map`: one prompt asked for each row, its frame, its rows as they finish, its log."""

import asyncio
import base64
from dataclasses import dataclass
from functools import partial

import anyio
import pytest
from helpers.maps import until
from helpers.pictures import png
from helpers.scripts import calling
from helpers.stored_rows import keeping

from agent_nb import RUNS, Agent, Scripted, tool
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.agent.replay_check import ReplayStrictness
from agent_nb.errors import RunFailed, UsageError
from agent_nb.models.script_turn import Case, read_turn
from agent_nb.record.inner_records import InnerRecords
from agent_nb.record.record import log_of, run_record
from agent_nb.rows.map import sample
from agent_nb.rows.map.table import filling

TEXTS = ["good", "bad", "ugly"]
PNG = base64.b64encode(png()).decode()


def model(**answers):
    """Return a model that says what is given for the word that its prompt ends with."""
    cases = [
        Case(when=f"Classify {word}", turns=(read_turn(said, word),))
        for word, said in answers.items()
    ]
    return Scripted(["other"], cases=cases)


def agent(**answers):
    return Agent(model(**answers), secrets={})


FAILING = {"error": {"status": 400, "message": "no such thing"}}


def mapped(data=TEXTS, prompt="Classify {{ text }}", *, by=None, **options):
    """Return the stream of a map that has ended."""

    async def main():
        stream = (by or agent(good="yes", bad="no")).map(data, prompt, **options)
        await stream
        return stream

    return anyio.run(main)


def test_every_row_has_the_answer_to_its_own_prompt_in_order():
    done = mapped()
    assert [r.answer for r in done.results] == ["yes", "no", "other"]
    assert [r.position for r in done.results] == [0, 1, 2]
    assert {r.status for r in done.results} == {"ok"}


def test_awaiting_gives_the_frame_with_the_columns_and_the_answers():
    async def main():
        return await agent(good="yes").map([{"text": "good", "n": 1}], "Classify {{ text }}")

    (row,) = anyio.run(main)
    assert (row["text"], row["n"], row["answer"], row["_status"]) == ("good", 1, "yes", "ok")


def test_map_sync_gives_the_same_frame():
    rows = agent(good="yes", bad="no").map_sync(TEXTS, "Classify {{ text }}")
    assert [row["answer"] for row in rows] == ["yes", "no", "other"]


def test_map_sync_inside_a_loop_says_what_to_write():
    async def main():
        agent().map_sync(TEXTS, "Classify {{ text }}")

    with pytest.raises(UsageError, match=r"await agent\.map"):
        anyio.run(main)


def test_iterating_gives_each_row_once_with_its_values():
    async def main():
        stream = agent(good="yes", bad="no").map(TEXTS, "Classify {{ text }}", concurrency=2)
        return [(row.place, row.values["text"], row.answer) async for row in stream]

    assert sorted(anyio.run(main)) == [(0, "good", "yes"), (1, "bad", "no"), (2, "ugly", "other")]


@dataclass
class Day:
    day: int


def test_iterating_gives_typed_answers_as_values_of_the_type():
    by = Agent(
        Scripted(["no day"], cases=[Case(when="good", turns=(read_turn('{"day": 3}', ""),))]),
        secrets={},
    )

    async def main():
        stream = by.map(["good", "ugly"], "Classify {{ text }}", output=Day, concurrency=1)
        return [row.output async for row in stream]

    assert anyio.run(main) == [Day(3), None]


def test_a_late_reader_gets_all_rows():
    async def main():
        stream = agent().map(TEXTS, "Classify {{ text }}")
        await stream
        return [row.place async for row in stream]

    assert sorted(anyio.run(main)) == [0, 1, 2]


def test_the_log_of_a_map_is_that_of_a_run():
    done = mapped()
    assert [e.type for e in done.log] == [
        "run_start",
        "user",
        "state",
        "metric",
        "state",
        "state",
        "end",
    ]
    assert [e.kind for e in done.log.of("state")] == ["map.plan", "map", "map.rows"]
    start = done.log[0]
    assert (start.agent, start.model, start.settings["map"]["rows"]) == ("map", "scripted", 3)
    assert done.log[1].content == "Classify {{ text }}"
    assert done.run.status == "ok"


def test_the_log_holds_counts_and_a_sample():
    counts = mapped(by=agent(good="yes", bad=FAILING)).log.of("state")[1].payload
    assert (counts["total"], counts["done"], counts["ok"]) == (3, 3, 2)
    assert counts["failures"] == {"provider": 1}
    assert counts["sample"][0]["said"] == "Classify good"
    assert counts["sample"][0]["answered"] == "yes"


def test_the_log_of_a_small_map_holds_the_record_of_each_row():
    done = mapped()
    found = InnerRecords.of_log(done.log)
    assert set(found) == {r.key for r in done.results}
    answers = [log_of(found[r.key]).of("respond")[0].content for r in done.results]
    assert answers == ["yes", "no", "other"]


def test_a_failed_row_keeps_its_error_and_the_others_are_asked():
    done = mapped(by=agent(good=FAILING))
    assert [r.status for r in done.results] == ["error", "ok", "ok"]
    assert "no such thing" in done.results[0].error
    assert done.results[0].kind == "provider"
    assert done.run.status == "ok"


def test_on_error_raise_raises_for_the_failed_row_and_keeps_what_is_done():
    stream = None

    async def main():
        nonlocal stream
        by = agent(bad=FAILING)
        stream = by.map(TEXTS, "Classify {{ text }}", on_error="raise", concurrency=1)
        await stream

    with pytest.raises(RunFailed, match=r"Row 1: .*no such thing") as caught:
        anyio.run(main)
    assert [r.status for r in stream.results] == ["ok", "error", "pending"]
    assert caught.value.run.status == "error"
    assert stream.log.of("state")[1].payload["done"] == 2


def test_a_loop_over_rows_raises_the_same_error_after_the_rows():
    seen = []

    async def main():
        by = agent(bad=FAILING)
        async for row in by.map(TEXTS, "Classify {{ text }}", on_error="raise", concurrency=1):
            seen.append(row.place)

    with pytest.raises(RunFailed, match="Row 1"):
        anyio.run(main)
    assert seen == [0, 1]


class Silent(Scripted):
    """A model that never answers."""

    asked = 0

    def start(self):
        return self

    async def stream(self, request):
        self.asked += 1
        await anyio.sleep_forever()
        yield []


def test_a_loop_that_is_cancelled_while_it_waits_stops_the_map():
    silent = Silent(["x"])
    stream = Agent(silent, secrets={}).map(TEXTS, "{{ text }}")

    async def read():
        async for _ in stream:
            pass

    async def main():
        reading = asyncio.create_task(read())
        await until(lambda: silent.asked == len(TEXTS))
        reading.cancel()
        await asyncio.wait([reading])
        assert reading.cancelled()
        return [r.status for r in stream.results], stream.run.status

    assert anyio.run(main) == (["interrupted"] * 3, "interrupted")


def test_a_map_stopped_before_its_first_answer_is_not_called_too_large():
    silent = Silent(["x"])

    async def main():
        stream = Agent(silent, secrets={}).map(TEXTS, "{{ text }}").start()
        await until(lambda: silent.asked == len(TEXTS))
        stream.cancel()
        await stream
        return stream.run

    assert anyio.run(main).log.of("error") == []


@pytest.mark.parametrize("prompt", [None, float("nan"), ["{{ text }}"]])
def test_a_prompt_that_is_no_text_is_an_error_in_words(prompt):
    for start in (agent(), partial(agent().map, TEXTS)):
        with pytest.raises(UsageError, match=f"The prompt is of type {type(prompt).__name__}"):
            start(prompt)


def test_a_map_says_how_far_it_is_and_that_it_is_to_be_awaited():
    async def main():
        stream = agent().map(TEXTS, "Classify {{ text }}", limit=2)
        before = repr(stream)
        await stream
        return before, repr(stream), stream.log.run

    before, after, run = anyio.run(main)
    assert before == f"<Map {run}: not started; await it, 0 of 2 rows done>"
    assert after == f"<Map {run}: ok, 2 of 2 rows done>"


def test_a_limit_asks_only_the_first_rows():
    done = mapped(limit=2)
    assert [r.answer for r in done.results] == ["yes", "no"]


def test_no_rows_are_an_empty_frame_without_a_model():
    done = mapped([], by=Agent("openai/none", secrets={}, late=True))
    assert len(done.frame) == 0
    assert done.run.status == "ok"


def test_a_secret_of_a_row_is_not_sent_and_not_kept():
    by = Agent(Scripted(["a key"]), secrets={"KEY": "sesame-open-12345"})
    done = mapped(["sesame-open-12345"], by=by)
    assert "sesame" not in done.log.to_ndjson()
    assert "[redacted KEY]" in done.log.of("state")[1].payload["sample"][0]["said"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"concurrency": 0}, "concurrency=0"),
        ({"limit": 0}, "limit=0"),
        ({"rpm": 0}, "rpm=0"),
        ({"on_error": "shout"}, "shout"),
    ],
)
def test_a_wrong_option_is_an_error_at_once(options, words):
    with pytest.raises(UsageError, match=words):
        agent().map(TEXTS, "Classify {{ text }}", **options)


def test_pictures_beyond_a_bound_are_read_again_when_their_row_is_asked(monkeypatch):
    picture = {"media_type": "image/png", "data": PNG}
    data = [{"text": "one", "image": picture}, {"text": "two", "image": picture}]

    def asked():
        done = mapped(data, "See {{ text }}", attachments="image", store=False)
        return done, [run.log.of("user")[0].attachments[0]["data"] for run in done.runs]

    held, said = asked()
    monkeypatch.setattr(filling, "HELD_CHARACTERS", len(PNG))
    bounded, again = asked()
    assert [row.attachments[0]["data"] for row in bounded.rows] == [PNG, ""]
    assert [row.key for row in bounded.rows] == [row.key for row in held.rows]
    assert again == said


def test_rows_without_a_record_are_named_where_nothing_runs_live(monkeypatch):
    monkeypatch.setenv("AGENT_NB_RERUN", "replay")
    by = Agent("openai/any", secrets={}, late=True)
    with pytest.raises(RunFailed, match="Rows 0, 1, 2 have no record here"):
        mapped(by=by)


class Broken(Scripted):
    """A model that cannot begin some runs."""

    begun = 0

    def start(self):
        self.begun += 1
        if self.begun == 2:
            raise RuntimeError("no memory")
        return super().start()


def test_a_row_that_cannot_begin_has_the_error_and_the_others_are_asked():
    done = mapped(by=Agent(Broken(["said"]), secrets={}), concurrency=1)
    assert [r.status for r in done.results] == ["ok", "error", "ok"]
    assert (done.results[1].kind, done.results[1].error) == ("internal", "RuntimeError: no memory")


@tool(effect="outside")
def send(text: str) -> str:
    """Send."""
    return text


def test_a_tool_that_needs_approval_is_an_error_before_the_first_request():
    with pytest.raises(UsageError, match=r"send.*--approve"):
        Agent(Scripted(["x"]), [send], secrets={}).map(TEXTS, "Classify {{ text }}")


def test_a_policy_that_decides_is_enough(tmp_path):
    (tmp_path / "policy.yaml").write_text("rules:\n  - allow: send\n    args: {text: a*}\n")
    by = Agent(Scripted(["x"]), [send], approve="policy.yaml", folder=tmp_path, secrets={})
    assert by.map(TEXTS, "Classify {{ text }}")
    assert Agent(Scripted(["x"]), [send], approve="auto", secrets={}).map(TEXTS, "{{ text }}")


@pytest.mark.parametrize("name", ["python", "variables", "add_cell"])
def test_tools_that_live_in_the_kernel_need_one_row_at_a_time(name):
    by = Agent(Scripted(["x"]), [name], approve="auto", secrets={})
    with pytest.raises(UsageError, match=rf"{name} lives in the kernel.*concurrency=1"):
        by.map(TEXTS, "Classify {{ text }}")
    assert by.map(TEXTS, "Classify {{ text }}", concurrency=1)


def test_tools_of_sub_agents_count_too():
    child = Agent(Scripted(["x"]), ["python"], name="helper", approve="auto", secrets={})
    by = Agent(Scripted(["x"]), [child.as_tool()], approve="auto", secrets={})
    with pytest.raises(UsageError, match="python lives in the kernel"):
        by.map(TEXTS, "Classify {{ text }}")


def test_a_limit_of_tokens_holds_over_all_rows_and_leaves_the_rest_pending():
    says = {"text": "x", "usage": {"input": 60, "output": 40}}
    by = Agent(Scripted([says]), limits={"tokens": 150}, secrets={})
    done = mapped(by=by, concurrency=1)
    assert [r.status for r in done.results] == ["ok", "ok", "pending"]
    assert done.run.status == "limit"
    assert "150 tokens for all rows" in done.run.reason
    assert [row["_error"] for row in done.frame][1:] == [None, f"not asked: {done.run.reason}"]


def test_a_budget_holds_over_all_rows():
    says = {"text": "x", "usage": {"input": 60, "output": 40, "cost": 0.02}}
    by = Agent(Scripted([says]), limits={"cost": 0.03}, secrets={})
    done = mapped(by=by, concurrency=1)
    assert [r.status for r in done.results] == ["ok", "ok", "pending"]
    assert done.log.of("state")[1].payload["cost"] == pytest.approx(0.04)


def test_the_default_limit_of_tokens_holds_for_each_row():
    says = {"text": "x", "usage": {"input": 150_000, "output": 40}}
    done = mapped(by=Agent(Scripted([says]), secrets={}))
    assert [r.status for r in done.results] == ["ok"] * 3


def test_a_typed_answer_is_in_the_result():
    by = Agent(Scripted(['{"value": 7}']), secrets={}, output=int)
    assert [r.output for r in mapped(by=by).results] == [7, 7, 7]
    assert [
        r.output
        for r in mapped(by=Agent(Scripted(['{"value": 7}']), secrets={}), output=int).results
    ] == [7, 7, 7]


@pytest.mark.parametrize("store", [None, False])
def test_the_runs_of_the_rows_are_there_for_frames(store):
    done = mapped(store=store)
    assert [run.answer for run in done.runs] == ["yes", "no", "other"]
    frame = done.runs.to_frame(RUNS)
    assert (
        list(frame["run"]) == [r.run for r in done.results] == [row["_run"] for row in done.frame]
    )


def test_the_runs_of_a_large_map_are_in_its_store(monkeypatch):
    monkeypatch.setattr(sample, "MOST_ROWS", 2)
    done = mapped()
    assert [e.kind for e in done.log.of("state")] == ["map.plan", "map"]
    assert [run.prompt for run in done.runs] == [f"Classify {text}" for text in TEXTS]


def test_a_record_of_a_map_plays_rows_that_touch_the_kernel_in_order():
    keep, seen, cases = keeping(TEXTS)

    def asked():
        by = Agent(Scripted(["x"], cases=cases), [keep], approve="auto", secrets={})
        return by.map(TEXTS, "{{ text }}", concurrency=1, store=False)

    async def main():
        live = asked()
        await live
        again = asked()
        tape = RecordedTurns.of(run_record(live.log), trust=True)
        again.play(tape, ReplayStrictness())
        await again
        return live, again

    live, again = anyio.run(main)
    assert seen == [*TEXTS, *TEXTS]
    assert [r.answer for r in again.results] == TEXTS
    assert {r.origin for r in again.results} == {"record"}
    assert list(again.log) == list(live.log)
    assert (again.played.drift, again.played.checked.ran) == (None, 3)


def test_a_row_that_returns_something_else_now_is_the_drift_of_its_map():
    number = iter(range(9))

    @tool(effect="reads")
    def count() -> int:
        """Count."""
        return next(number)

    def asked():
        model = Scripted([calling("count"), "said"])
        return Agent(model, [count], secrets={}).map(
            ["a"], "{{ text }}", concurrency=1, store=False
        )

    async def main():
        live = asked()
        await live
        again = asked()
        again.play(RecordedTurns.of(run_record(live.log), trust=True), None)
        await again
        return again.played.drift

    drift = anyio.run(main)
    assert (drift.name, drift.recorded, drift.fresh) == ("count", "0", "1")


@pytest.mark.parametrize("changed", [False, True])
def test_found_rows_that_touch_the_kernel_run_again_before_the_others(changed):
    seen = []

    @tool(effect="kernel")
    def keep(text: str) -> str:
        """Keep a text."""
        seen.append(text)
        return f"{text} {changed and len(seen) > 2}"

    cases = [
        Case(when=text, turns=(read_turn(calling("keep", text=text), "1"), read_turn(text, "2")))
        for text in TEXTS
    ]

    def asked(data):
        by = Agent(Scripted(["x"], cases=cases), [keep], approve="auto", secrets={})
        return mapped(data, "{{ text }}", by=by, concurrency=1)

    asked(TEXTS[:2])
    done = asked([TEXTS[2], *TEXTS[:2]])
    assert seen == [*TEXTS[:2], *TEXTS[:2], TEXTS[2]]
    assert [r.origin for r in done.results] == ["live", "store", "store"]
    remarks = [e.message for e in done.log.of("error")]
    assert ["Row 1 was found, but keep returned" in said for said in remarks] == [True, False][
        : 2 * changed
    ]
