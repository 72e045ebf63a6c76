"""Runs whose answer has a type: what is sent, corrected, recorded, replayed and handed on."""

from __future__ import annotations

import dataclasses
import json

import jsonschema
import msgspec
import pandas as pd
import pytest
from helpers.asked_models import Asked
from helpers.output_types import Order, Row
from helpers.record_schema import build_schema
from helpers.waiting import wait

from agent_nb import Agent, Scripted, tool
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.agent.run import Run
from agent_nb.agent.turn import Turn
from agent_nb.agent.typed.answer_check import AnswerCheck
from agent_nb.agent.typed.output_type import OutputType
from agent_nb.agent.typed.output_way import UNTYPED
from agent_nb.errors import UsageError
from agent_nb.events import Delta, Respond, Think
from agent_nb.events.log import EventLog
from agent_nb.events.text import Answer
from agent_nb.record.fingerprint import INPUTS, Digests
from agent_nb.record.match import Match
from agent_nb.record.packing import digest_value
from agent_nb.record.record import Provenance, log_of, run_record

TEA = {"name": "tea", "price": 3.5}
ROWS = {"value": [TEA]}
HIDDEN = ("run_start", "node", "metric", "started", "approval")


@tool(effect="outside")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def final(document, **more):
    return {"calls": [{"name": "final_answer", "args": document, **more}]}


def calls(*wanted):
    return {"calls": [{"name": name, "args": args} for name, args in wanted]}


def agent(turns, output=list[Row], tools=(add,), dialect="native", **options):
    model = turns if hasattr(turns, "stream") else Scripted(turns, dialect=dialect)
    options = {"approve": "auto", "secrets": {}, **options}
    return Agent(model, tools, output=output, **options)


def run(turns, prompt="go", history=(), **options):
    return wait(lambda: agent(turns, **options)(prompt, history=history, check=False))


def kinds(done):
    return [e.type for e in done.log if e.type not in HIDDEN]


def codes(done):
    return [e.code for e in done.log.of("error")]


def test_the_final_tool_is_the_answer_and_no_call():
    done = run([calls(("add", {"a": 1, "b": 2})), final(ROWS)])
    assert kinds(done) == ["user", "call", "execute", "result", "respond", "end"]
    assert [e.name for e in done.log.of("call")] == ["add"]
    assert done.output == [Row(**TEA)]
    assert done.log.of("respond")[0].content == done.answer == '[{"name":"tea","price":3.5}]'
    assert done.log.of("respond")[0].extra == {Answer.TYPED: "list[Row]"}


def test_an_answer_in_many_blocks_is_checked_in_linear_time():
    """In quadratic time it would exceed the test's time limit."""
    number = 20_000
    letters = [("respond", '"'), *[("think", "t"), ("respond", "y")] * number, ("respond", '"')]
    kinds = {"respond": Respond, "think": Think}
    fresh = [kinds[kind](content=text, block=f"{n}") for n, (kind, text) in enumerate(letters)]
    check = AnswerCheck(OutputType(str)).begin_turn(Turn(1), UNTYPED)
    first, *others = check.close(fresh, incomplete=False)
    assert (first.content, len(others)) == (f'"{"y" * number}"', number)


def test_the_final_tool_is_never_approved():
    done = run([final(ROWS)], approve="deny")
    assert done.output == [Row(**TEA)]
    assert not done.log.of("approval")


def test_the_final_tool_beside_other_calls_does_not_count_and_they_run():
    model = Asked(
        [calls(("add", {"a": 1, "b": 2}), ("final_answer", ROWS)), final(ROWS)], dialect="native"
    )
    done = run(model)
    assert codes(done) == ["answer_not_alone"]
    assert [e.content for e in done.log.of("result")] == [3]
    assert done.status == "ok"
    assert done.output == [Row(**TEA)]
    last = [(m.role, m.text) for m in model.requests[1].messages][-2:]
    assert last[0][0] == "tool"
    assert last[1][0] == "user"
    assert "Call it alone" in last[1][1]


def test_two_different_final_answers_are_none():
    done = run([calls(("final_answer", ROWS), ("final_answer", {"value": []})), final(ROWS)])
    assert codes(done) == ["invalid_output"]
    assert "2 times" in done.log.of("error")[0].message
    assert done.output == [Row(**TEA)]


def test_the_final_tool_keeps_out_of_the_way_of_a_tool_of_that_name():
    @tool
    def final_answer(x: int) -> int:
        """Anything."""
        return x

    model = Asked(
        [calls(("final_answer", {"x": 1})), calls(("final_answer_", {"value": 7}))],
        dialect="native",
    )
    done = run(model, output=int, tools=[final_answer])
    assert [t.name for t in model.requests[0].tools] == ["final_answer", "final_answer_"]
    assert [e.content for e in done.log.of("result")] == [1]
    assert done.output == 7


def test_words_before_the_final_tool_stay_words():
    done = run([{"text": "Here it is:", **final(ROWS)}])
    assert [e.content for e in done.log.of("respond")] == [
        "Here it is:",
        '[{"name":"tea","price":3.5}]',
    ]
    assert done.answer == '[{"name":"tea","price":3.5}]'


def test_an_answer_in_words_that_is_json_counts():
    assert run([{"text": f"```json\n{json.dumps([TEA])}\n```"}]).output == [Row(**TEA)]


@pytest.mark.parametrize("dialect", ["xml", "section", "native"])
def test_a_bad_answer_is_corrected_within_two_turns(dialect):
    said = {"xml": "{}", "section": "§RESPOND: {}\n§END", "native": "{}"}[dialect]
    bad = {"native": final({"value": [{"name": 1}]}), "xml": "[1]"}.get(dialect, said.format("[1]"))
    good = {"native": final(ROWS)}.get(dialect, said.format(json.dumps([TEA])))
    done = run([said.format("It is tea."), bad, good], dialect=dialect, tools=())
    assert (done.status, codes(done)) == ("ok", ["invalid_output", "invalid_output"])
    assert done.output == [Row(**TEA)]


def test_the_fault_goes_back_to_the_model_with_what_it_said():
    model = Asked([final({"value": [{"name": "tea"}]}), final(ROWS)], dialect="native")
    done = run(model)
    assert done.status == "ok"
    said = model.said(1)[-2:]
    assert said[0] == ("assistant", '{"value": [{"name": "tea"}]}')
    assert said[1][0] == "user"
    assert "[0].price: is missing" in said[1][1]
    assert "Call final_answer again, alone" in said[1][1]


@pytest.mark.parametrize("dialect", ["xml", "native"])
def test_three_bad_answers_end_the_run_in_an_error_with_a_valid_log(dialect):
    done = run(["no", "no", "no", "never asked"], dialect=dialect, tools=())
    assert (done.status, done.output) == ("error", None)
    assert codes(done) == ["invalid_output"] * 3
    assert [e.retryable for e in done.log.of("error")] == [True, True, False]
    assert kinds(done) == ["user", *["respond", "error"] * 3, "end"]
    schema = build_schema()
    record = run_record(done.log, Provenance(cell="c"))
    jsonschema.validate({"version": 1, "runs": {"c": [record]}}, schema)


def test_limits_count_as_always():
    done = run(["no", "no", final(ROWS)], tools=(), limits={"turns": 2})
    assert done.status == "limit"


def test_the_last_turn_asks_for_the_final_tool():
    model = Asked([calls(("add", {"a": 1, "b": 2})), final(ROWS)], dialect="native")
    assert run(model, limits={"turns": 2}).status == "ok"
    assert "call final_answer now" in model.prompt()


def test_an_answer_cut_off_at_the_limit_of_tokens_is_reported_as_such():
    cut = {"calls": [{"name": "final_answer", "args": '{"value": [{"na'}], "finish": "length"}
    done = run([cut, final(ROWS)])
    assert "cut off" in done.log.of("error")[0].message
    assert done.output == [Row(**TEA)]


def test_what_is_asked_depends_on_the_dialect():
    native = Asked([final(ROWS)], dialect="native")
    run(native, tools=())
    (offered,) = native.requests[0].tools
    assert (offered.name, offered.parameters["required"]) == ("final_answer", ["value"])
    assert native.requests[0].native_tools
    assert "final_answer" in native.system()
    text = Asked([json.dumps([TEA])], dialect="xml")
    run(text, tools=())
    assert not text.requests[0].tools
    assert '"price"' in text.system()


def test_a_model_with_a_schema_mode_is_sent_the_schema():
    class Takes(Asked):
        def takes_output(self, output):
            return True

    model = Takes([json.dumps(ROWS)], dialect="native")
    done = run(model)
    assert model.requests[0].output == OutputType(list[Row]).wire
    assert [t.name for t in model.requests[0].tools] == ["add"]
    assert done.output == [Row(**TEA)]


def test_a_run_without_a_type_is_asked_and_recorded_as_before():
    model = Asked(['{"a": 1}'], dialect="native")
    done = run(model, output=None)
    assert model.requests[0].output is None
    assert "final_answer" not in [t.name for t in model.requests[0].tools]
    assert "output" not in done.log.of("run_start")[0].settings
    assert done.log.of("respond")[0].extra is None
    assert done.output is None
    with pytest.raises(UsageError, match="no typed answer"):
        done.output_as(dict)
    with pytest.raises(UsageError, match="no typed answer"):
        done.output_frame()


def test_secrets_are_hidden_in_the_answer():
    done = run(
        [final({"value": [{"name": "sk-abcdefgh1234567890", "price": 1}]})],
        secrets={"MY_KEY": "sk-abcdefgh1234567890"},
    )
    assert "sk-abcdefgh" not in done.log.to_ndjson()
    assert "redacted" in done.output[0].name


def test_the_deltas_of_the_final_tool_are_those_of_an_answer():
    seen = []

    async def main():
        stream = agent([final(ROWS)])("go")
        stream.log.subscribe(seen.append)
        return await stream

    wait(main)
    deltas = [e for e in seen if isinstance(e, Delta)]
    assert {e.of for e in deltas} == {"respond"}
    assert json.loads("".join(e.text for e in deltas)) == ROWS


def test_a_replay_needs_no_model_and_has_the_typed_value():
    made = agent([final(ROWS)])
    first = wait(lambda: made("go"))
    record = run_record(first.log, Provenance(cell="c"))
    dead = agent([])

    async def play():
        return await dead.replay(RecordedTurns.of(record, trust=True))

    again = wait(play)
    assert again.output == [Row(**TEA)]
    assert list(again.log) == list(log_of(record))


def test_a_loaded_record_gives_plain_json_and_validates_what_it_is_given():
    record = run_record(run([final(ROWS)]).log, Provenance(cell="c"))
    loaded = Run(log_of(json.loads(json.dumps(record))))
    assert loaded.output == [TEA]
    assert loaded.output_as(list[Row]) == [Row(**TEA)]
    with pytest.raises(UsageError, match="recorded as list"):
        loaded.output_as(list[int])


def test_a_text_that_looks_like_json_is_no_typed_answer():
    done = run([json.dumps(TEA)], output=None, dialect="xml")
    assert done.output is None


@pytest.mark.parametrize(
    ("kind", "document", "columns", "rows"),
    [
        (list[Row], {"value": [TEA, {"name": "oil", "price": 9.0}]}, ["name", "price"], 2),
        (Row, TEA, ["name", "price"], 1),
        (Order, {"number": 1, "rows": [TEA], "note": None}, ["number", "rows", "note"], 1),
        (int, {"value": 3}, ["value"], 1),
        (list[str], {"value": ["a", "b", "c"]}, ["value"], 3),
        (list[Row], {"value": []}, ["value"], 0),
    ],
)
def test_the_answer_is_a_frame_in_the_order_of_its_type(kind, document, columns, rows):
    frame = run([final(document)], output=kind).output_frame()
    assert isinstance(frame, pd.DataFrame)
    assert (list(frame.columns), len(frame)) == (columns, rows)


def test_the_objects_in_cells_of_the_frame_have_the_order_of_their_type():
    document = {"rows": [{"price": 1.5, "name": "tea"}], "customer": "Ada", "number": 3}
    frame = run([final(document)], output=Order).output_frame()
    assert list(frame["rows"][0][0]) == ["name", "price"]


def test_the_schema_is_an_input_only_where_there_is_one():
    plain = agent([], output=None).inputs("go")
    typed = agent([]).inputs("go")
    assert set(plain) == set(INPUTS)
    assert plain.hash == digest_value([plain[name] for name in INPUTS])
    assert {k: typed[k] for k in INPUTS} == plain
    assert typed.hash != plain.hash


def test_a_type_with_another_name_and_the_same_schema_is_the_same_input():
    @dataclasses.dataclass
    class One:
        """The same."""

        a: int

    @dataclasses.dataclass
    class Two:
        """The same."""

        a: int

    assert agent([], output=One).inputs("go") == agent([], output=Two).inputs("go")


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (list[Order], "output: the type changed: list[Row] → list[Order]"),
        (None, "output: the type changed: list[Row] → none"),
    ],
)
def test_a_changed_type_makes_a_record_stale_and_is_named(now, words):
    record = run_record(run([final(ROWS)]).log, Provenance(cell="c"))
    made = agent([], output=now)
    found = Match.find([record], made.inputs("go"))
    assert found.status == "stale"
    assert "output" in found.changed
    assert words in made.make_inputs("go").describe_differences(log_of(record), found.changed)


def test_a_changed_field_of_the_type_is_shown():
    class Row(dataclasses.make_dataclass("Row", [("name", str), ("cost", float)])):  # type: ignore[misc]
        pass

    record = run_record(run([final(ROWS)]).log, Provenance(cell="c"))
    lines = (
        agent([], output=list[Row])
        .make_inputs("go")
        .describe_differences(log_of(record), ["output"])
    )
    assert lines[0] == "output: the type changed: list[Row]"
    assert any('"cost"' in line and line.startswith("+") for line in lines)


def test_the_inputs_of_a_record_name_the_output_only_if_it_has_one():
    assert "output" in Digests.read_log(run([final(ROWS)]).log)
    assert "output" not in Digests.read_log(run(["x"], output=None, dialect="xml").log)


def test_an_agent_as_a_tool_hands_on_the_json():
    child = agent([final(ROWS)], tools=()).as_tool("child", "Ask.")
    done = run([calls(("child", {"prompt": "go"})), final({"value": 1})], output=int, tools=[child])
    assert [e.content for e in done.log.of("result")] == [[TEA]]
    assert done.output == 1


def test_a_later_turn_reads_the_json():
    first = run([final(ROWS)])
    model = Asked(["ok"], dialect="native")
    run(model, output=None, history=[list(first.log)])
    assert ("assistant", '[{"name":"tea","price":3.5}]') in model.said()


def test_a_changed_record_gives_no_value():
    log = EventLog.of_events(
        [
            msgspec.structs.replace(e, content="[{") if e.type == "respond" else e
            for e in run([final(ROWS)]).log
        ]
    )
    assert Run(log).output is None
