"""The result of an MCP tool: what comes as text and as structured content is sent once."""

from types import SimpleNamespace

import pytest

from agent_nb.tools.mcp.content import read_result


def result(structured, *texts):
    blocks = [SimpleNamespace(type="text", text=text) for text in texts]
    return SimpleNamespace(content=blocks, structured_content=structured)


@pytest.mark.parametrize(
    ("structured", "texts", "value"),
    [
        ({"result": "7 oaks"}, ["7 oaks"], "7 oaks"),
        ({"result": [1, 2]}, ["1", "2"], [1, 2]),
        ({"answer": "7 oaks"}, ["7 oaks"], {"answer": "7 oaks"}),
        ({"text": "7 oaks", "count": 7}, ["7 oaks"], {"text": "7 oaks", "count": 7}),
        ({"rows": [{"a": 1}], "more": False}, ['[{"a": 1}]'], {"rows": [{"a": 1}], "more": False}),
        ({"items": ["a", "b"]}, ["a", "b"], {"items": ["a", "b"]}),
        ({"a": 1}, ['{"a": 1}'], {"a": 1}),
        ({"count": 7}, ["There are many."], 'There are many.\n{"count":7}'),
        ({"count": 7}, [], {"count": 7}),
        ({"result": 7}, [], 7),
        (None, ["7 oaks"], "7 oaks"),
    ],
)
def test_a_result_that_comes_twice_is_sent_once(structured, texts, value):
    assert read_result(result(structured, *texts)) == (value, [])
