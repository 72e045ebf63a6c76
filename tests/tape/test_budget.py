"""The budget of the tape: what it lets pass, what it counts, and how a library hears of its end."""

import asyncio
import json
import threading
import time

import pytest
from helpers.lacking import needed
from tape.taped_server import TapedServer

from agent_nb.events import Counts
from agent_nb.tape.exchange import Body, Exchange, Refusal, Request, Response
from agent_nb.tape.prices import Prices
from agent_nb.tape.providers import Provider, make_error
from agent_nb.tape.spending import Spending

PRICE = (11 * 100 + 7 * 1000) / 1e6  # of an answer of the provider of these tests
ESTIMATE = (3 * 100 + 10 * 1000) / 1e6  # of `ASKED`, at most, within a cent
ASKED = {"model": "gpt-5-mini", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def priced(provider, loaded, tmp_path, monkeypatch):
    """A shell; models of the provider have prices."""
    config = tmp_path / "config.toml"
    names = ("openai/gpt-5*", "anthropic/claude*")
    config.write_text(
        "".join(f'[prices."{name}"]\ninput = 100.0\noutput = 1000.0\n' for name in names)
    )
    monkeypatch.setenv("AGENT_NB_CONFIG", str(config))
    yield loaded
    loaded.run_cell("%agent tape off").raise_error()


def run(shell, code):
    """Run a cell, and return what the variable `out` holds then."""
    shell.run_cell(code).raise_error()
    return shell.user_ns.get("out")


OPENAI = """\
import openai
def ask(prompt="hi", model="gpt-5-mini"):
    with openai.OpenAI() as client:
        try:
            return client.chat.completions.create(
                model=model, max_tokens=10, messages=[{"role": "user", "content": prompt}])
        except openai.APIStatusError as fault:
            return fault
"""
ANTHROPIC = """\
import anthropic
def ask(prompt="hi", model="claude-sonnet-5"):
    with anthropic.Anthropic() as client:
        try:
            return client.messages.create(
                model=model, max_tokens=10, messages=[{"role": "user", "content": prompt}])
        except anthropic.APIStatusError as fault:
            return fault
"""


@pytest.mark.extra
@pytest.mark.parametrize(
    ("library", "kind"), [("openai", "insufficient_quota"), ("anthropic", "rate_limit_error")]
)
def test_a_library_hears_once_that_the_budget_is_used_up(library, kind, provider, priced):
    needed(library)
    run(priced, f"%agent tape --budget {PRICE:.4f}")
    run(priced, OPENAI if library == "openai" else ANTHROPIC)
    assert not isinstance(run(priced, "out = ask('hi')"), Exception)
    fault = run(priced, "out = ask('you')")
    assert type(fault).__name__ == "RateLimitError"
    assert fault.response.json()["error"]["type"] == kind
    assert "budget of $0.0081 is used up. $0.0081 were spent. Nothing was sent." in str(fault)
    assert len(provider.asked) == 1


@pytest.mark.extra
def test_a_changed_budget_holds_and_recorded_calls_cost_nothing(provider, priced):
    needed("openai")
    run(priced, f"%agent tape --budget {PRICE:.4f}")
    run(priced, OPENAI)
    run(priced, "ask('hi')")
    assert not isinstance(run(priced, "out = ask('hi')"), Exception)
    assert isinstance(run(priced, "out = ask('you')"), Exception)
    run(priced, "%agent tape --rpm 600")
    assert isinstance(run(priced, "out = ask('you')"), Exception)
    run(priced, "%agent tape --budget 1.00")
    assert not isinstance(run(priced, "out = ask('you')"), Exception)
    assert len(provider.asked) == 2


@pytest.mark.extra
def test_a_call_without_a_known_price_is_refused_under_a_budget_alone(provider, priced):
    needed("openai")
    run(priced, "%agent tape --budget 1.00")
    run(priced, OPENAI)
    fault = run(priced, "out = ask(model='own-model')")
    assert "the price of openai/own-model is unknown. Nothing was sent." in str(fault)
    assert provider.asked == []
    run(priced, "%agent tape --budget 0")
    assert not isinstance(run(priced, "out = ask(model='own-model')"), Exception)


ALL_AT_ONCE = (
    OPENAI
    + """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(20)
asked = [pool.submit(ask, f"{n}") for n in range(20)]
"""
)


def wait_asked(provider, count):
    """Wait until the provider has so many requests, 30 seconds at most."""
    deadline = time.monotonic() + 30
    while len(provider.asked) < count and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.extra
def test_calls_at_once_wait_until_there_is_room_for_them(provider, priced):
    needed("openai")
    provider.gate = threading.Event()
    run(priced, f"%agent tape --budget {3 * ESTIMATE + 0.005}")
    run(priced, ALL_AT_ONCE)
    asked = priced.user_ns["asked"]
    wait_asked(provider, 3)
    time.sleep(0.5)  # the others do not begin, and are not refused
    assert len(provider.asked) == 3
    assert not any(each.done() for each in asked)
    provider.gate.set()
    answers = [each.result(30) for each in asked]
    refused = [answer for answer in answers if isinstance(answer, Exception)]
    # what they cost is less than their estimates, so two more begin, the last one beyond
    assert len(provider.asked) == len(answers) - len(refused) == 5
    assert all("budget of $0.0359 is used up" in str(fault) for fault in refused)


@pytest.mark.extra
def test_calls_that_wait_begin_when_the_budget_is_raised(provider, priced):
    needed("openai")
    provider.gate = threading.Event()
    run(priced, f"%agent tape --budget {ESTIMATE + 0.005}")
    run(priced, ALL_AT_ONCE)
    run(priced, "%agent tape --budget 10")
    wait_asked(provider, 20)
    assert len(provider.asked) == 20
    provider.gate.set()
    assert not [
        a for each in priced.user_ns["asked"] if isinstance(a := each.result(30), Exception)
    ]


def begin(spending, request):
    """Return the charge of a request that begins, else why it is refused."""
    charge = spending.estimate(request)
    return asyncio.run(spending.begin(charge)) or charge


def test_a_call_that_sends_more_than_is_left_is_refused_alone(spending):
    spending.budget = 0.1
    text = "word " * 5_000
    refusal = begin(spending, request(messages=[{"role": "user", "content": text}]))
    assert refusal.status == 429
    assert "has no room for this call: it sends about 6,2" in refusal.message
    assert "Nothing was sent." in refusal.message


def test_a_call_whose_answer_may_cost_more_than_is_left_begins_alone(spending):
    spending.budget = 0.1
    assert begin(spending, request(max_tokens=5_000)).cost > 5


def test_a_client_that_goes_away_while_its_call_waits_ends_the_call(spending):
    gate = threading.Event()

    def behaviour(peer):
        gate.wait(20)
        peer.reply(200, b"{}")

    one = TapedServer(behaviour)
    one.relay.limit(None, None, 0.02)
    body = json.dumps(ASKED).encode()
    first = threading.Thread(target=one.ask, kwargs={"body": body})
    first.start()
    try:
        while not one.server.asked:
            time.sleep(0.01)
        second = one.connect()
        second.request("POST", one.url.path + "/chat/completions", body)
        time.sleep(0.3)
        assert one.sent == []
        second.close()
        assert one.over.wait(10)
        assert one.sent == [None]
    finally:
        gate.set()
        first.join(20)
        one.close()
    assert len(one.server.asked) == 1


def test_calls_wait_in_their_order_and_one_that_leaves_lets_the_next_begin(spending):
    async def play():
        first, large, small = (spending.estimate(request(max_tokens=n)) for n in (500, 900, 100))
        assert await spending.begin(first) is None
        waiting = [asyncio.ensure_future(spending.begin(each)) for each in (large, small)]
        await asyncio.sleep(0.05)
        assert not any(each.done() for each in waiting)  # there is room for the small one
        waiting[0].cancel()
        assert await asyncio.wait_for(waiting[1], 5) is None

    asyncio.run(play())


def spend(spending, request, response):
    charge = begin(spending, request)
    spending.end(charge, response and Exchange(request=request, response=response))
    return spending.spent


def request(path="/chat/completions", **body):
    return Request(provider="openai", path=path, body=Body("json", {**ASKED, **body}))


@pytest.fixture
def spending(tmp_path, monkeypatch):
    config = tmp_path / "config.toml"
    config.write_text('[prices."openai/*"]\ninput = 100.0\noutput = 1000.0\n')
    monkeypatch.setenv("AGENT_NB_CONFIG", str(config))
    made = Spending()
    made.budget = 1.0
    return made


@pytest.mark.parametrize(
    ("response", "least", "most"),
    [
        (None, 0, 0),
        (Response(status=500, body=Body("json", {"error": {"message": "no"}})), 0, 0),
        (Response(body=Body("text", "?")), 0.01, 0.02),
        (
            Response(
                body=Body(
                    "stream", [{"data": {"choices": [{"delta": {"content": "word " * 80}}]}}]
                ),
                complete=False,
            ),
            0.1,
            0.2,
        ),
    ],
    ids=["no answer", "an error", "unreadable", "broken off"],
)
def test_an_answer_without_usage_counts_what_it_shows(spending, response, least, most):
    assert least <= spend(spending, request(), response) <= most


@pytest.mark.parametrize(
    "free",
    [
        Request(method="GET", provider="openai", path="/models"),
        Request(provider="anthropic", path="/v1/messages/count_tokens", body=Body("json", ASKED)),
        Request(provider="openai", path="/files", body=Body("text", "file")),
        Request(provider="openai", path="/uploads/upload_1/parts", body=Body("text", "part")),
        Request(provider="openai", path="/uploads/upload_1/complete", body=Body("json", {})),
        Request(provider="openai", path="/conversations", body=Body("json", {})),
    ],
)
def test_what_is_no_model_call_passes_a_used_up_budget(spending, free):
    spending.spent = 2.0
    assert begin(spending, free).cost == 0
    assert isinstance(begin(spending, request()), Refusal)


def test_an_estimate_counts_what_a_request_allows_and_a_picture_once(spending):
    allowed = [spending.estimate(request(max_tokens=n)).cost for n in (10, 20)]
    assert allowed[1] - allowed[0] == pytest.approx(0.01)
    assert spending.estimate(request(n=3)).cost > 3 * 0.01
    one, many = (spending.estimate(request(max_tokens=None, n=n)).cost for n in (1, 3))
    assert many > 2.9 * one  # also where the request limits nothing
    picture = request(
        messages=[{"role": "user", "content": "data:image/png;base64," + "A" * 10**6}]
    )
    assert spending.estimate(picture).sent < 1_100


def test_a_model_in_the_path_of_a_request_is_priced():
    path = "/v1beta/models/gemini-3-pro:streamGenerateContent"
    assert Request(provider="google", path=path).model == "gemini-3-pro"


@pytest.mark.parametrize("end", ["", "/", "/chat/completions"])
def test_a_taped_address_has_the_prices_of_its_endpoint(end, tmp_path, monkeypatch):
    (tmp_path / "c.toml").write_text(
        f"[endpoints.lab]\nbase_url = 'http://lab.invalid/v1{end}'\nprices = {{input = 1, output = 2}}"
    )
    monkeypatch.setenv("AGENT_NB_CONFIG", str(tmp_path / "c.toml"))
    provider = Provider.at("http://lab.invalid/v1/").name
    asked = Request(provider=provider, path="/chat/completions", body=Body("json", ASKED))
    assert Prices().price_tokens(asked, Counts(input=10**6, output=10**6)) == 3


@pytest.mark.parametrize(
    ("provider", "error"),
    [
        ("openai", {"message": "m", "type": "insufficient_quota", "code": "agent_nb_tape"}),
        ("google", {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}),
    ],
)
def test_the_end_of_a_budget_is_an_error_of_the_provider(provider, error):
    assert make_error(provider, "", 429, "m") == {"error": error}
