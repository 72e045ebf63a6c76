"""Keys of a request leave its exchange, wherever the request carries them."""

import pytest

from agent_nb.tape.exchange import Body, Exchange, Request, Response
from agent_nb.tape.redaction import redact_exchange

KEY = "q9w8e7r6t5y4u3i2"  # of no provider's form
FORM = f'--b\r\nContent-Disposition: form-data; name="api_key"\r\n\r\n{KEY}\r\n--b--\r\n'


def redacted(headers=None, **request):
    response = Response(status=400, body=Body("json", {"error": f"no such key: {KEY}"}))
    exchange = Exchange(request=Request(**request), response=response)
    return redact_exchange(exchange, {}, headers or {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorization", f"Bearer {KEY}"),
        ("x-auth-token", KEY),
        ("helicone-auth", f"Bearer {KEY}"),
        ("ocp-apim-subscription-key", KEY),
        ("cookie", f"sid={KEY}; theme=dark"),
    ],
)
def test_a_key_in_any_header(name, value):
    made = redacted({name: value}, body=Body("json", {"prompt": f"my key is {KEY}"}))
    assert KEY not in repr(made)


@pytest.mark.parametrize("name", ["key", "api_key", "access_token", "X-Goog-Signature"])
def test_a_key_in_the_query_and_with_another_key_the_request_is_the_same(name):
    one, other = (redacted(query=f"alt=sse&{name}={key}&n=1") for key in (KEY, "another-key"))
    assert KEY not in repr(one)
    assert one.request == other.request
    assert one.request.query == f"alt=sse&{name}=[redacted {name}]&n=1"


@pytest.mark.parametrize(
    "body",
    [
        Body("json", {"api_key": KEY, "input": f"not {KEY}"}),
        Body("json", {"tools": [{"type": "mcp", "authorization": KEY}]}),
        Body("json", {"tools": [{"type": "mcp", "headers": {"Authorization": f"Bearer {KEY}"}}]}),
        Body("json", {"mcp_servers": [{"type": "url", "authorization_token": KEY}]}),
        Body("text", FORM),
    ],
)
def test_a_key_in_a_field_of_the_body(body):
    assert KEY not in repr(redacted(body=body))


@pytest.mark.parametrize(
    ("headers", "fields"),
    [
        ({}, {"body": Body("text", FORM.removesuffix("--\r\n") + f"\r\n{FORM.replace(KEY, 'other-key-123')}")}),
        ({}, {"query": f"key={KEY}&key=other-key-123"}),
        ({"cookie": f"sid={KEY}; sid=x"}, {}),
    ],
    ids=["form", "query", "cookie"],
)  # fmt: skip
def test_each_key_of_a_name_that_comes_several_times(headers, fields):
    made = repr(redacted(headers, **fields))
    assert KEY not in made
    assert "other-key-123" not in made


def test_the_key_of_a_prompt_cache_is_no_secret():
    body = Body("json", {"prompt_cache_key": "conversation-1", "input": "conversation-1"})
    assert redacted(body=body).request.body == body


def test_a_key_in_the_pieces_of_an_argument_leaves_the_others_alone():
    def chunk(path, text):
        call = {"partialArgs": [{"jsonPath": path, "stringValue": text}]}
        return {"data": {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}}

    chunks = [chunk("$.a", KEY[:8]), chunk("$.a", KEY[8:]), chunk("$.b", KEY[:6]), chunk("$.c", "")]
    exchange = Exchange(request=Request(), response=Response(body=Body("stream", chunks)))
    made = redact_exchange(exchange, {"x": KEY}, {}).response.body.value
    assert KEY[8:] not in repr(made)
    assert made[2:] == chunks[2:]
