"""Sixty types of answers through four APIs on loopback: a value of the type, or a clear error."""

from __future__ import annotations

import json

import pytest
from helpers.output_types import TYPES, Row, wrap
from helpers.typed_servers import APIS, Chat, Claude, Compatible, Responses
from helpers.waiting import wait

from agent_nb import Agent
from agent_nb.agent.typed.output_type import OutputType
from agent_nb.models.strict_schema import ANTHROPIC, OPENAI, make_strict

API = pytest.mark.parametrize("api", APIS)


def asked(server, kind, tools=(), **options):
    made = Agent(server.model, tools, output=kind, secrets={}, approve="auto", **options)

    async def main():
        try:
            return await made("go", check=False)
        finally:
            await made.aclose()

    return wait(main)


def wired(kind, document):
    return json.dumps(wrap(OutputType(kind), document))


@pytest.mark.few(40)
@API
@pytest.mark.parametrize("name", TYPES)
def test_a_bad_answer_is_corrected_to_a_value_of_the_type(api, name):
    kind, good, value, bad = TYPES[name]
    wrong = ["{"] if bad is ... else [wired(kind, bad)]
    with APIS[api](*wrong, wired(kind, good)) as server:
        run = asked(server, kind)
        sent = [server.asked(body) for body in server.bodies]
        offered = [server.offered(body) for body in server.bodies]
    assert run.status == "ok", run.reason
    assert run.output == value
    assert type(run.output) is type(value)
    assert [e.code for e in run.log.of("error") if e.code != "no_schema"] == ["invalid_output"]
    assert run.log.of("respond")[-1].content == OutputType(kind).validate(good).text
    assert not run.log.of("call")
    wire = OutputType(kind).wire.schema
    form = make_strict(wire, ANTHROPIC if api == "anthropic" else OPENAI) or wire
    for schema, tools in zip(sent, offered, strict=True):
        assert (schema == form and not tools) or tools == ["final_answer"]


@pytest.mark.few(4)
@API
@pytest.mark.parametrize("name", ["int", "list-model", "dict-int", "recursive-model", "tuple"])
def test_three_bad_answers_end_the_run_with_an_error_in_words(api, name):
    kind, _, _, bad = TYPES[name]
    with APIS[api](wired(kind, bad)) as server:
        run = asked(server, kind)
    faults = [e for e in run.log.of("error") if e.code == "invalid_output"]
    assert (run.status, run.output, len(faults)) == ("error", None, 3)
    assert OutputType(kind).name in run.error
    assert run.log.ended
    assert run.log[-1].type == "end"


def test_each_api_sends_the_schema_under_its_own_name():
    text = json.dumps({"name": "tea", "price": 1})
    with Chat(text) as server:
        asked(server, Row)
        sent = server.bodies[0]["response_format"]
        assert (sent["type"], sent["json_schema"]["name"]) == ("json_schema", "Row")
        assert sent["json_schema"]["strict"] is True
        assert "tools" not in server.bodies[0]
    with Responses(text) as server:
        asked(server, Row)
        sent = server.bodies[0]["text"]["format"]
        assert (sent["type"], sent["name"], sent["strict"]) == ("json_schema", "Row", True)
    with Claude(text) as server:
        asked(server, Row, settings={"extra_body": {"output_config": {"effort": "low"}}})
        sent = server.bodies[0]["output_config"]
        assert (sent["effort"], sent["format"]["type"]) == ("low", "json_schema")
        assert sent["format"]["schema"]["additionalProperties"] is False


def test_a_schema_without_a_strict_form_is_a_hint_or_a_final_tool():
    text = json.dumps({"a": 1})
    with Chat(text) as server:
        asked(server, dict[str, int])
        assert server.bodies[0]["response_format"]["json_schema"]["strict"] is False
    with Claude(text) as server:
        run = asked(server, dict[str, int])
        assert "output_config" not in server.bodies[0]
        assert server.offered(server.bodies[0]) == ["final_answer"]
    assert run.output == {"a": 1}


def test_a_server_that_refuses_the_schema_is_asked_once_more_with_a_tool():
    with Compatible(json.dumps({"value": 3})) as server:
        model = server.model

        async def main():
            made = Agent(model, output=int, secrets={})
            try:
                return [await made("go"), await made("go")]
            finally:
                await made.aclose()

        runs = wait(main)
        schemas = [server.asked(body) is not None for body in server.bodies]
    assert [run.output for run in runs] == [3, 3]
    assert schemas == [True, False, False]
    assert [e.code for e in runs[0].log.of("error")] == ["no_schema"]
    assert not runs[1].log.of("error")


def test_a_server_that_ignores_the_schema_is_asked_with_a_tool():
    with Chat("It is three.", json.dumps({"value": 3})) as server:
        run = asked(server, int)
        schemas = [server.asked(body) is not None for body in server.bodies]
    assert (run.output, schemas) == (3, [True, False])


def test_the_refusal_of_another_field_is_not_taken_for_that_of_the_schema():
    class Picky(Chat):
        def _answer(self, peer):
            self.bodies.append(peer.body)
            peer.reply(400, json.dumps({"error": {"message": "temperature is too high"}}))

    with Picky("") as server:
        run = asked(server, int)
    assert (run.status, len(server.bodies)) == ("error", 1)
    assert "temperature" in run.error


REFUSALS = [
    ("Invalid schema for response_format 'int': minimum is not permitted", True, True),
    ("response_format is not supported by this model", True, False),
    ("Invalid schema for function 'count': type is missing", False, True),
    ("The database schema is being updated", False, True),
    ("The request is badly structured", False, True),
]


@pytest.mark.parametrize(("message", "refused", "others"), REFUSALS, ids=[r[0] for r in REFUSALS])
def test_what_a_server_refuses_is_remembered_and_nothing_else(message, refused, others):
    from agent_nb.errors import ModelError
    from agent_nb.models.http.schema_refusals import SchemaRefusals
    from agent_nb.models.messages import OutputSchema

    refusals = SchemaRefusals()
    one, two = (OutputSchema(name, {"type": "object", "title": name}) for name in ("one", "two"))
    echo = json.dumps({"error": message, "input": {"text.format": {"type": "json_schema"}}})
    fault = refusals.note_fault(ModelError(message, status=400, code="provider", raw=echo), one)
    assert (fault.code == "no_schema") is refused
    assert (refusals.may_send(one), refusals.may_send(two)) == (not refused, others)
