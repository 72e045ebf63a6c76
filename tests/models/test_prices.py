"""What tokens cost: prices of the configuration, of genai-prices, or none."""

import json

import pytest
from helpers.lacking import lacking
from helpers.waiting import wait

from agent_nb import Agent, Scripted
from agent_nb.agent.limits import Meter, limits_from
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.errors import ModelError, UsageError
from agent_nb.events import Counts
from agent_nb.host.imports import find_library
from agent_nb.models import choose, config, tariff
from agent_nb.models.parts import Head, Text, Usage
from agent_nb.models.prices import FREE, Prices, find_prices, format_dollars
from agent_nb.models.tariff import Tariff
from agent_nb.record.record import run_record

LAB = Prices(input=1.0, output=4.0, cached=0.1, cache_written=1.25)


@pytest.fixture
def configure(tmp_path, monkeypatch):
    def write(text):
        file = tmp_path / "c.toml"
        file.write_text(text)
        monkeypatch.setenv("AGENT_NB_CONFIG", str(file))

    return write


def _check_budget(model, budget):
    Tariff.of(model).check_budget(model.name, budget)


class Priced:
    """A model with a tariff that answers with these parts."""

    dialect, grammar, shots, context = "native", False, False, 0

    def __init__(self, *batches, tariff=None, name="lab/x", fault=None):
        self.name, self._batches, self._fault, self.asked = name, batches, fault, 0
        if tariff is not None:
            self.tariff = tariff

    async def stream(self, request):
        self.asked += 1
        for batch in self._batches:
            yield list(batch)
        if self._fault is not None:
            raise self._fault

    async def aclose(self):
        pass


def run(model, **options):
    return wait(lambda: Agent(model, secrets={}, **options)("go", check=False))


def test_flat_prices_charge_each_kind_of_token_once():
    used = Counts(input=1_000_000, cached=200_000, cache_written=100_000, output=500_000)
    assert LAB.cost(used) == pytest.approx(0.7 + 0.02 + 0.125 + 2.0)


def test_tokens_of_a_cache_cost_what_the_input_costs_unless_said_otherwise():
    used = Counts(input=1_000_000, cached=600_000, cache_written=400_000)
    assert Prices(input=3.0, output=9.0).cost(used) == 3.0


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
def test_a_price_is_a_number_of_at_least_0(price):
    with pytest.raises(ValueError, match="`output`"):
        Prices(input=1.0, output=price)


def test_a_models_own_name_comes_before_the_patterns_in_their_order():
    table = {"qwen*": LAB, "*": FREE, "qwen-max": Prices(input=2, output=8)}
    assert find_prices(table, "qwen-max").input == 2
    assert find_prices(table, "qwen-mini") is LAB
    assert find_prices(table, "other") is FREE
    assert find_prices({"qwen*": LAB}, "other") is None


# --- the configuration

LINES = "{ input = 1.0, output = 4.0, cached = 0.1, cache_written = 1.25 }"


@pytest.mark.parametrize(
    "text",
    [
        f"[endpoints.lab]\nbase_url = 'http://lab/v1'\nprices = {LINES}",
        f"[endpoints.lab]\nbase_url = 'http://lab/v1'\n[endpoints.lab.prices]\n'x*' = {LINES}",
        f"[endpoints.lab]\nbase_url = 'http://lab/v1'\n[prices]\n'lab/*' = {LINES}",
    ],
)
def test_the_configuration_prices_an_endpoint(configure, text):
    configure(text)
    assert Tariff.of(choose.make_model("lab/x1")).prices == LAB


def test_a_built_in_provider_is_priced_without_repeating_its_address(configure, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    configure(f"[endpoints.openai]\nprices = {LINES}\n[endpoints.groq]\nprices = {LINES}")
    for name, url in (
        ("openai/x", "https://api.openai.com/v1"),
        ("groq/x", "https://api.groq.com/openai/v1"),
    ):
        model = choose.make_model(name)
        assert (model.name, model._http.base_url, Tariff.of(model).prices) == (name, url, LAB)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prices = { input = 1.0 }", "output"),
        ("prices = { input = -1.0, output = 1.0 }", "at least 0"),
        ("prices = { input = 1.0, output = 1.0, cahced = 1.0 }", "cahced"),
        ("prices = { input = 'x', output = 1.0 }", r"prices\["),
        ("prices = { input = 1.0, 'x*' = { input = 1.0, output = 1.0 } }", "not both"),
    ],
)
def test_wrong_prices_are_named(configure, text, words):
    configure(f"[endpoints.lab]\nbase_url = 'http://lab/v1'\n{text}")
    with pytest.raises(UsageError, match=rf"c\.toml is wrong: .*{words}"):
        config.Config.load()


def test_a_model_object_has_the_price_of_its_name(configure):
    configure(f"[prices]\n'lab/*' = {LINES}")
    assert Tariff.of(Priced()).prices == LAB
    assert Tariff.of(Scripted([])).prices is None


# --- who knows a price


@pytest.mark.parametrize(
    ("url", "host", "provider"),
    [
        ("https://api.openai.com/v1", "api.openai.com", "openai"),
        ("https://api.anthropic.com", "api.anthropic.com", "anthropic"),
        ("http://api.openai.com/v1", "api.openai.com", ""),
        ("https://api.openai.com.evil.example/v1", "api.openai.com.evil.example", ""),
        ("http://127.0.0.1:8000/v1", "127.0.0.1:8000", ""),
    ],
)
def test_only_official_hosts_have_a_listed_price(url, host, provider):
    assert Tariff.at(url, host, "gpt-5", {}).provider == provider


def test_every_known_endpoint_is_listed_but_the_one_of_other_providers():
    hosts = {known.base_url.split("/")[2] for known in config.KNOWN.values()}
    assert hosts - set(tariff._PROVIDER_IDS) == {"router.huggingface.co"}


def test_models_of_this_machine_cost_nothing(monkeypatch):
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    assert Tariff.of(choose.make_model("ollama/llama3")).prices == FREE
    assert not Tariff.of(choose.make_model("ollama/gpt-oss:120b-cloud")).known
    monkeypatch.setenv("OLLAMA_HOST", "my-ollama.com")
    assert Tariff.of(choose.make_model("ollama/llama3")).prices == FREE
    monkeypatch.setenv("OLLAMA_HOST", "https://ollama.com")
    assert not Tariff.of(choose.make_model("ollama/llama3")).known


def test_the_library_is_not_imported_for_other_hosts(monkeypatch):
    monkeypatch.setattr(tariff, "import_library", pytest.fail)
    assert Tariff(model="gpt-5").cost(Counts(input=1)) is None


def test_without_the_library_the_price_is_unknown(monkeypatch):
    monkeypatch.setattr(tariff, "import_library", lambda name: None)
    assert not Tariff(model="gpt-5", provider="openai").known


# --- in a run

ANSWER = (Head(200, "x"), Usage(input=1000, output=500, cached=400), Text("Hi."))


def test_the_cost_of_a_request_is_recorded():
    done = run(Priced(ANSWER, tariff=Tariff(prices=LAB)))
    (metric,) = done.log.of("metric")
    assert metric.step.cost == metric.total.cost == pytest.approx(0.0006 + 0.00004 + 0.002)
    assert done.usage.cost == metric.total.cost


def test_the_cost_that_the_provider_reports_wins():
    own = (Usage(input=1000, output=500, cost=0.5), Text("Hi."))
    assert run(Priced(own, tariff=Tariff(prices=LAB))).usage.cost == 0.5


def test_an_unknown_price_is_no_cost_and_a_free_model_costs_0():
    assert run(Priced(ANSWER)).usage.cost is None
    assert run(Priced(ANSWER, tariff=Tariff(prices=FREE))).usage.cost == 0.0


def test_a_broken_answer_has_an_estimated_cost():
    model = Priced(
        (Text("word " * 80),),
        tariff=Tariff(prices=Prices(input=0.0, output=1000.0)),
        fault=ModelError("cut", code="cut"),
    )
    (metric,) = run(model).log.of("metric")
    assert metric.estimated
    assert metric.step.cost == pytest.approx(0.1)


def test_costs_of_requests_and_of_sub_agents_add_up():
    child = Agent(
        Scripted([{"text": "done", "usage": {"cost": 0.25}}]), name="child", secrets={}
    ).as_tool()
    call = '<execute>[{"name": "child", "args": {"prompt": "x"}}]</execute>'
    turns = [{"text": call, "usage": {"cost": 0.1}}, {"text": "ok", "usage": {"cost": 0.05}}]
    done = run(Scripted(turns), tools=[child], approve="auto")
    assert done.usage.cost == 0.4


# --- budgets


def test_a_budget_without_a_price_is_refused_before_anything_is_sent(configure, monkeypatch):
    monkeypatch.setattr(tariff, "find_library", lambda name: None)
    configure("")
    model = Priced(ANSWER)
    with pytest.raises(UsageError) as caught:
        Agent(model, secrets={}, limits={"cost": 0.1})("go")
    assert model.asked == 0
    assert "The budget of $0.10 cannot be kept: the price of lab/x is unknown." in str(caught.value)
    assert f'[prices]\n    "lab/x" = {LINES}' in str(caught.value)
    assert "c.toml" in str(caught.value)
    assert "pip install" not in str(caught.value)


def test_the_lines_of_the_refusal_are_what_the_configuration_takes(configure):
    configure("")
    with pytest.raises(UsageError) as caught:
        _check_budget(Priced(ANSWER), 0.1)
    configure(str(caught.value).partition(":\n\n")[2])
    _check_budget(Priced(ANSWER), 0.1)
    assert Tariff.of(Priced()).prices == LAB


def test_on_an_official_host_the_refusal_names_the_library(monkeypatch):
    monkeypatch.setattr(tariff, "import_library", lambda name: None)
    monkeypatch.setattr(tariff, "find_library", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'jupyter-agent-nb\[prices\]'"):
        _check_budget(choose.make_model("openai/gpt-5"), 1.0)


@pytest.mark.parametrize("tariff", [Tariff(prices=FREE), Tariff(prices=LAB), Tariff(reports=True)])
def test_a_budget_is_kept_where_the_price_is_known_or_reported(tariff):
    assert run(Priced(ANSWER, tariff=tariff), limits={"cost": 1.0}).status == "ok"


def test_openrouter_reports_its_costs_and_a_script_its_own():
    _check_budget(choose.make_model("openrouter/x/y"), 1.0)
    _check_budget(Scripted([]), 1.0)


def test_a_run_stops_within_the_turn_that_exceeds_the_budget():
    pieces = [(Text("x" * 400),) for _ in range(50)]
    model = Priced(*pieces, tariff=Tariff(prices=Prices(input=0.0, output=1000.0)))
    done = run(model, limits={"cost": 1.0})
    assert done.status == "limit"
    assert done.log.of("interrupt")[0].detail == "stopped at the limit of $1.00"
    assert 1.0 <= done.usage.cost < 1.2


def test_a_request_that_alone_exceeds_the_budget_is_not_sent():
    model = Priced(ANSWER, tariff=Tariff(prices=Prices(input=100_000.0, output=0.0)))
    done = run(model, limits={"cost": 0.01})
    assert (done.status, model.asked) == ("limit", 0)
    assert "$0.01 (this request alone" in done.log.of("interrupt")[0].detail


def test_a_record_keeps_its_cost_when_prices_change(configure):
    model = Priced(ANSWER, tariff=Tariff(prices=LAB))
    record = json.loads(json.dumps(run_record(run(model).log)))
    configure("[prices]\n'*' = { input = 100.0, output = 100.0 }")
    again = wait(lambda: Agent(model, secrets={}).replay(RecordedTurns.of(record)))
    assert again.log.of("metric")[0].step.cost == pytest.approx(0.00264)
    assert (again.usage.cost, model.asked) == (0.00264, 1)


def test_near_the_end_of_a_budget_the_model_is_asked_to_finish():
    meter = Meter(limits_from({"cost": 0.1}))
    meter.add(Counts(cost=0.08))
    assert not meter.near_limit()
    meter.add(Counts(cost=0.015))
    assert meter.near_limit()


def test_a_sub_agent_without_a_price_costs_its_call_not_the_run():
    call = '<execute>[{"name": "child", "args": {"prompt": "x"}}]</execute>'
    child = Agent(Priced(ANSWER), name="child", secrets={})
    done = run(
        Scripted([call, "I could not ask."]),
        tools=[child.as_tool()],
        approve="auto",
        limits={"cost": 1.0},
    )
    (result,) = done.log.of("result")
    assert (done.status, result.status, child.model.asked) == ("ok", "error", 0)
    assert "the price of lab/x is unknown" in result.content


# --- genai-prices


@pytest.fixture
def library():
    if find_library("genai_prices") is None:
        lacking("needs genai-prices (extra prices)")


RECORDED = (
    ("anthropic", "default", "claude-sonnet-4-5",
     {"input_tokens": 181, "cache_creation_input_tokens": 1200, "cache_read_input_tokens": 5400,
      "output_tokens": 88}),
    ("anthropic", "default", "claude-sonnet-4-5",
     {"input_tokens": 250_000, "cache_read_input_tokens": 30_000, "output_tokens": 900}),
    ("openai", "chat", "gpt-5-mini",
     {"prompt_tokens": 364, "completion_tokens": 40, "total_tokens": 404,
      "prompt_tokens_details": {"cached_tokens": 128},
      "completion_tokens_details": {"reasoning_tokens": 12}}),
    ("openai", "responses", "gpt-5",
     {"input_tokens": 9463, "output_tokens": 582, "total_tokens": 10045,
      "input_tokens_details": {"cached_tokens": 8320},
      "output_tokens_details": {"reasoning_tokens": 512}}),
    ("deepseek", "chat", "deepseek-chat",
     {"prompt_tokens": 1006, "completion_tokens": 212, "total_tokens": 1218,
      "prompt_cache_hit_tokens": 640, "prompt_cache_miss_tokens": 366,
      "prompt_tokens_details": {"cached_tokens": 640}}),
    ("google", "chat", "gemini-2.5-pro",
     {"prompt_tokens": 300_000, "completion_tokens": 500, "total_tokens": 300_500}),
)  # fmt: skip


THOUGHTS = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 420,
    "completion_tokens_details": {"reasoning_tokens": 300},
}
RECORDED += (("x-ai", "chat", "grok-4", THOUGHTS),)


@pytest.mark.extra
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("provider", "flavor", "model", "usage"), RECORDED)
def test_costs_are_those_of_the_library_for_the_same_usage(provider, flavor, model, usage):
    from genai_prices import extract_usage

    from agent_nb.models.http.values import make_usage as chat
    from agent_nb.models.messages_api.decoder import make_usage as messages

    read = messages if provider == "anthropic" else chat
    theirs = extract_usage(
        {"model": model, "usage": usage}, provider_id=provider, api_flavor=flavor
    )
    ours = Tariff(model=model, provider=provider).cost(read(usage))
    assert ours == pytest.approx(float(theirs.calc_price().total_price))
    assert ours > 0


@pytest.mark.extra
@pytest.mark.usefixtures("library")
def test_the_model_that_answered_is_asked_about_if_the_name_is_unknown():
    used = Counts(input=1000, output=1000)
    asked = Tariff(model="my-alias", provider="openai")
    assert asked.cost(used) is None
    assert asked.cost(used, "gpt-5") == Tariff(model="gpt-5", provider="openai").cost(used)


@pytest.mark.extra
@pytest.mark.usefixtures("library")
def test_the_default_models_of_the_well_known_endpoints_have_a_price():
    names = [f"{p}/{m}" for p, m in choose.DEFAULTS.items()]
    names += [f"{p}/{known.model}" for p, known in config.KNOWN.items() if known.model]
    unknown = {name for name in names if not Tariff.of(choose.make_model(name)).known}
    assert unknown <= {"openrouter/openrouter/auto"}


@pytest.mark.extra
@pytest.mark.usefixtures("library")
def test_prices_need_no_network_and_are_imported_only_when_needed():
    import subprocess
    import sys

    code = """
import json, socket, sys
def refuse(*_, **__): raise OSError("no network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from agent_nb.models import choose
from agent_nb.models.tariff import Tariff
from agent_nb.events import Counts
tariff = Tariff.of(choose.make_model("openai/gpt-5"))
before = "genai_prices" in sys.modules
cost = tariff.cost(Counts(input=1000))
from genai_prices.data_snapshot import get_snapshot
print(json.dumps([before, cost, get_snapshot().from_auto_update]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    before, cost, updated = json.loads(done.stdout)
    assert (before, updated) == (False, False)
    assert cost > 0


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(0.1, "$0.10"), (12.345, "$12.35"), (0.005, "$0.005"), (0.00001, "$0.00001"), (0, "$0")],
)
def test_dollars_are_written_without_an_exponent(dollars, text):
    assert format_dollars(dollars) == text
