"""Keys of a request leave its exchange, wherever the request carries them."""

from base64 import b64encode
from urllib.parse import quote_plus

import pytest
from helpers.printing import print_every_way

from agent_nb.tape.exchange import Body, Exchange, Request, Response
from agent_nb.tape.live_exchange import Received, Sent
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
        ("authorization", f"Basic {b64encode(f'me:{KEY}'.encode()).decode()}"),
        ("ocp-apim-subscription-key", KEY),
        ("cookie", f"sid={KEY}; theme=dark"),
    ],
)
def test_a_key_in_any_header(name, value):
    made = redacted({name: value}, body=Body("json", {"prompt": f"my key is {KEY}"}))
    assert KEY not in repr(made)


@pytest.mark.parametrize(
    "name", ["key", "api_key", "access_token", "X-Goog-Signature", "refresh_token"]
)
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


@pytest.mark.parametrize(
    "name",
    [
        "refresh_token", "client_secret", "client_assertion", "id_token",
        "assertion", "subject_token", "actor_token",
    ],
)  # fmt: skip
def test_a_key_in_the_form_of_a_token_endpoint(name):
    body = Body("text", f"grant_type=refresh&{name}={KEY}&n=1")
    made = redacted({"content-type": "application/x-www-form-urlencoded"}, body=body)
    assert KEY not in repr(made)


@pytest.mark.parametrize("name", ["access_token", "refresh_token", "id_token"])
def test_a_token_in_the_answer_of_a_token_endpoint(name):
    answer = Body("json", {name: KEY, "token_type": "Bearer", "expires_in": 3600})
    exchange = Exchange(request=Request(), response=Response(body=answer))
    made = redact_exchange(exchange, {}, {}).response.body.value
    assert made == {**answer.value, name: f"[redacted field {name}]"}


@pytest.mark.parametrize("name", ["access_token", "refresh_token", "id_token"])
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "Text/Plain; charset=utf-8"])
def test_a_token_in_the_form_with_which_a_token_endpoint_answers(name, kind):
    form = f"token_type=bearer&scope=a,b&{name}="
    answer = Body("text", f"{form}{quote_plus(f'{KEY}+/==')}\n")
    response = Response(body=answer, headers={"content-type": kind})
    request = Request(body=Body("text", f"{KEY}+/== again"))
    made = redact_exchange(Exchange(request=request, response=response), {}, {})
    assert made.response.body.value.startswith(f"{form}[redacted field {name}")
    assert KEY not in repr(made)


def test_an_answer_that_speaks_of_a_token_is_no_form():
    answer = Body("text", "Send it as the field x&access_token=abcdefgh of a form.\n")
    exchange = Exchange(request=Request(), response=Response(body=answer))
    assert redact_exchange(exchange, {}, {}) == exchange


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


def test_a_key_in_a_form_of_one_line():
    key = f"{KEY}+/=="
    form = f"grant_type=client_credentials&client_secret={quote_plus(key)}"
    headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    made = redacted(headers, body=Body("text", f"{form}&note={key}"))
    assert KEY not in repr(made.request)
    # another text may have such a form by chance
    assert KEY in repr(redacted(body=Body("text", form)))


@pytest.mark.parametrize(
    "body",
    [
        {"tools": [{"type": "mcp", "headers": {"api_key": KEY}}]},
        {"data_sources": [{"parameters": {"authentication": {"type": "api_key", "key": KEY}}}]},
        {"data_sources": [{"parameters": {"authentication": {"connection_string": KEY}}}]},
    ],
    ids=["a tool", "a data source", "a connection string"],
)
def test_a_key_for_another_server_that_a_model_is_to_ask(body):
    assert KEY not in repr(redacted(body=Body("json", body)))


def test_the_name_of_a_field_that_a_tool_searches_is_no_key():
    body = {"tools": [{"type": "file_search", "filters": {"type": "eq", "key": KEY}}]}
    assert KEY in repr(redacted(body=Body("json", body)))


def test_an_unredacted_exchange_is_printed_without_its_headers():
    sent = Sent(
        request=Request(),
        headers={"authorization": KEY},
        status=200,
        answer_headers={"set-cookie": KEY},
        received=Received(),
        began=0.0,
        answered=0.0,
        ended=0.0,
    )
    assert KEY not in print_every_way(sent)
