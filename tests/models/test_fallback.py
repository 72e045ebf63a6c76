"""`-m a,b`: the next model goes on where one is away or overloaded, before the first part of an
answer, for the rest of the run.
"""

import json
import socket

import anyio
import pytest
from helpers.scripts import calling
from helpers.waiting import wait

from agent_nb import TURNS, Agent, Scripted, tool
from agent_nb import events as e
from agent_nb.agent.context import Context
from agent_nb.agent.drift import Drift, Resume
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.agent.sender import ADVICE
from agent_nb.errors import ModelError, UsageError
from agent_nb.events.frame import to_frame
from agent_nb.models import choose
from agent_nb.models.anthropic import provider as anthropic
from agent_nb.models.http import retry
from agent_nb.models.http.retry import Failures
from agent_nb.models.openai import provider as openai
from agent_nb.models.openai_responses import provider as responses
from agent_nb.record.record import run_record
from agent_nb.view.cards import header, model
from agent_nb.view.cards.base import Context as View
from agent_nb.view.draw import text
from agent_nb.view.state.fold import RunView

DONE = 'data: {"choices": [{"delta": {"content": "from a"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@pytest.fixture(autouse=True)
def no_waits(monkeypatch):
    monkeypatch.setattr(retry, "BUSY_DELAYS", (0.0,) * 4)
    monkeypatch.setattr(retry, "AWAY_DELAYS", (0.0,) * 3)


@tool
def look() -> str:
    """Look."""
    return "seen"


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def refusing(status, words="no", **headers):
    return lambda peer: peer.reply(status, json.dumps({"error": {"message": words}}), **headers)


def asking(models, prompt="go", **options):
    return wait(lambda: Agent(models, secrets={}, **options)(prompt, check=False))


def changes(run):
    return [e.payload for e in run.log.of("state") if e.kind == "model"]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("status", "asked"), [(500, 3), (502, 3), (503, 3), (529, 3), (408, 3), (429, 5)]
)
def test_a_server_that_is_down_or_overloaded_is_replaced_after_a_few_tries(serve, status, asked):
    a = serve(refusing(status, "Overloaded"))
    run = asking([openai("a", base_url=a.url), Scripted(["from b"], "b")])
    assert (run.status, run.answer, len(a.asked)) == ("ok", "from b", asked)
    (change,) = changes(run)
    assert (change["model"], change["instead_of"]) == ("b", "openai/a")
    assert f"({status})" in change["why"]
    assert "Overloaded" in change["raw"]
    assert len([e for e in run.log.of("error") if e.code == "retry"]) == asked - 1


def test_a_server_that_is_away_is_replaced(serve):
    b = serve(lambda peer: peer.stream(DONE))
    run = asking([openai("a", base_url=closed_port()), openai("b", base_url=b.url)])
    assert (run.status, run.answer) == ("ok", "from a")
    assert "could not be reached" in changes(run)[0]["why"]


def test_an_overload_within_the_stream_before_the_first_part_counts(serve):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    a = serve(lambda peer: peer.stream(error))
    run = asking([anthropic("a", base_url=a.url), Scripted(["from b"])])
    assert (run.answer, len(a.asked)) == ("from b", 3)


def test_a_spent_quota_and_a_long_wait_are_not_waited_out(serve):
    for words, headers in (("insufficient_quota", {}), ("slow down", {"retry_after": "3600"})):
        a = serve(refusing(429, words, **headers))
        run = asking([openai("a", base_url=a.url), Scripted(["from b"])])
        assert (run.answer, len(a.asked)) == ("from b", 1)


def test_a_server_that_asks_for_a_long_pause_is_replaced_at_once(serve):
    a = serve(refusing(503, "down", retry_after="60"))
    run = asking([openai("a", base_url=a.url), Scripted(["from b"])])
    assert (run.answer, len(a.asked)) == ("from b", 1)


@pytest.mark.parametrize(
    ("provider", "status", "asked"),
    [
        (openai, 400, 3),
        (openai, 403, 1),
        (responses, 403, 2),
        (anthropic, 422, 2),
        (anthropic, 403, 1),
    ],
)
def test_a_request_is_repeated_without_what_a_server_refuses(serve, provider, status, asked):
    a = serve(refusing(status, "include_usage, max_tokens, cache_control, summary: unsupported"))
    run = asking(provider("a", base_url=a.url), settings={"max_tokens": 9})
    assert (run.status, len(a.asked)) == ("error", asked)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_wrong_key_or_request_is_the_users_to_mend(serve, status):
    a = serve(refusing(status))
    run = asking([openai("a", base_url=a.url), Scripted(["from b"])])
    assert (run.status, run.answer, changes(run)) == ("error", "", [])


def test_where_one_model_is_named_an_outage_says_how_to_name_two(serve):
    for status, words in ((503, "down"), (529, "Overloaded"), (429, "insufficient_quota")):
        run = asking(openai("a", base_url=serve(refusing(status, words)).url))
        assert run.status == "error"
        assert f"({status})" in run.error
        assert run.error.endswith(ADVICE)


def test_where_a_second_model_cannot_help_or_could_not_none_is_advised(serve):
    a, b = serve(refusing(503)), serve(refusing(503))
    both = asking([openai("a", base_url=a.url), openai("b", base_url=b.url)])
    key = asking(openai("a", base_url=serve(refusing(401)).url))
    away = asking(openai("a", base_url=closed_port()))
    for run in (both, key, away):
        assert run.status == "error"
        assert ADVICE not in run.error


def test_a_missing_key_is_the_users_to_mend():
    run = asking("openai/a,openai/b")
    assert [e.code for e in run.log.of("error")] == ["no_key"]


def test_after_the_first_part_nothing_takes_over(serve):
    def cut(peer):
        peer.begin()
        peer.send('data: {"choices": [{"delta": {"content": "half"}}]}\n\n')

    a = serve(cut)
    run = asking([openai("a", base_url=a.url), Scripted(["from b"])])
    assert (run.status, run.log.of("respond")[0].content) == ("error", "half")
    assert changes(run) == []


def test_the_next_model_goes_on_for_this_run_and_the_next_begins_anew(serve):
    a = serve(refusing(503))
    agent = Agent(
        [openai("a", base_url=a.url), Scripted([calling("look"), "done"], "b")], [look], secrets={}
    )

    async def main():
        return [await agent("go") for _ in range(2)]

    for run in wait(main):
        assert (run.answer, len(changes(run))) == ("done", 1)
        assert run.log.of("result")[0].content == "seen"
    assert len(a.asked) == 6


def test_three_models_are_asked_in_order_and_the_last_error_is_the_runs(serve):
    a, b, c = (serve(refusing(502 + n, f"down {n}")) for n in range(3))
    models = [openai(name, base_url=s.url) for name, s in zip("abc", (a, b, c), strict=True)]
    run = asking(models)
    assert [len(s.asked) for s in (a, b, c)] == [3, 3, 5]
    assert [(p["instead_of"], p["model"]) for p in changes(run)] == [
        ("openai/a", "openai/b"),
        ("openai/b", "openai/c"),
    ]
    assert run.status == "error"
    assert "down 2" in run.error


def test_the_dialect_and_the_context_are_those_of_the_model_that_answers(serve):
    a, b = serve(refusing(503)), serve(lambda peer: peer.stream(DONE))
    small = openai("b", base_url=b.url, dialect="xml", context=3000)
    history = [asking(Scripted(["word " * 4000])).log for _ in range(3)]

    async def main():
        agent = Agent([openai("a", base_url=a.url), small], [look], secrets={})
        return await agent("go", history=history)

    run = wait(main)
    first, last = a.asked[0].body, b.asked[0].body
    assert "tools" in first
    assert "tools" not in last
    assert "look" in last["messages"][0]["content"]
    assert (len(first["messages"]), len(last["messages"])) == (7, 2)
    assert [e.kind for e in run.log.of("state")] == ["model", "window"]


def test_what_stands_beside_the_prompt_fits_the_smallest_model(serve):
    a, b = serve(refusing(503)), serve(lambda peer: peer.stream(DONE))
    models = [openai("a", base_url=a.url), openai("b", base_url=b.url, context=2000)]
    beside = Context(mode="vars", text="\n".join(f"variable {n}: int" for n in range(2000)))
    run = wait(lambda: Agent(models, secrets={})("go", context=beside))
    assert run.answer == "from a"
    for server in (a, b):
        assert "more lines" in server.asked[0].body["messages"][-1]["content"]


def test_each_model_has_its_own_price(serve, monkeypatch, tmp_path):
    a, b = serve(refusing(503)), serve(lambda peer: peer.stream(DONE))
    file = tmp_path / "c.toml"
    file.write_text(
        f'[endpoints.a]\nbase_url = "{a.url}"\nprices = {{ input = 1.0, output = 1.0 }}\n'
        f'[endpoints.b]\nbase_url = "{b.url}"\nprices = {{ input = 0.0, output = 1000000.0 }}\n'
    )
    monkeypatch.setenv("AGENT_NB_CONFIG", str(file))
    run = asking("a/x,b/y")
    assert run.usage.cost == run.usage.output > 0


def test_a_budget_needs_the_price_of_every_model():
    with pytest.raises(UsageError, match="the price of openai/b is unknown"):
        Agent(
            [Scripted([]), openai("b", base_url=closed_port())], limits={"cost": 1.0}, secrets={}
        )("go")


def test_a_server_that_cannot_even_name_its_model_is_replaced(monkeypatch):
    run = asking([openai("*", base_url=closed_port()), Scripted(["from b"], "b")])
    assert (run.answer, run.log[0].model) == ("from b", "openai/*")
    assert "does not list its models" in changes(run)[0]["why"]


def test_a_run_that_goes_on_after_a_replay_stays_with_its_next_model(serve):
    a = serve(refusing(503))
    before = asking([openai("a", base_url=a.url), Scripted(["from b"])])
    asked = len(a.asked)
    drift = Drift(seq=1, call_id="c", name="look", recorded="x", fresh="y")
    resume = Resume(events=before.log[:-1], calls=(), outcomes={}, updates={}, drift=drift)

    async def main():
        agent = Agent([openai("a", base_url=a.url), Scripted(["again from b"])], secrets={})
        return await agent("go", resume=resume)

    run = wait(main)
    assert "again from b" in run.answer
    assert (len(a.asked), len(changes(run))) == (asked, 1)


def test_what_a_sub_agent_met_changes_nothing_for_a_run_that_goes_on():
    errors = [e.Error(code=code, span="c") for code in ("no_tools", "no_images", "no_schema")]
    invalid = [e.Error(code="invalid_output", span="c")] * 3
    state = e.State(kind="model", payload={"model": "b"}, span="c")
    past = [e.RunStart(), e.User(content="go"), *errors, *invalid, state]
    drift = Drift(seq=1, call_id="c", name="look", recorded="x", fresh="y")
    resume = Resume(events=past, calls=(), outcomes={}, updates={}, drift=drift)

    async def main():
        models = [Scripted(["no number", "1"], "a"), Scripted(["2"], "b")]
        return await Agent(models, output=int, secrets={})("go", resume=resume)

    assert wait(main).output == 1


# --- the choice


def test_names_are_given_in_one_text_by_every_way(monkeypatch, tmp_path):
    (tmp_path / "c.toml").write_text('model = "openai/a, groq/b"')
    monkeypatch.setenv("AGENT_NB_CONFIG", str(tmp_path / "c.toml"))
    for given in (None, "openai/a,groq/b", " openai/a , groq/b ", ["openai/a", "groq/b"]):
        agent = Agent(given, secrets={})
        assert [m.name for m in agent.choice.models] == ["openai/a", "groq/b"]
        assert agent.model.name == "openai/a"
    choose.check_model_name("openai/a,groq/b")


@pytest.mark.parametrize("name", ["openai/a,nobody/b", "openai/a,b"])
def test_a_wrong_name_among_several_is_reported_at_once(name):
    with pytest.raises(UsageError):
        Agent(name, secrets={})
    with pytest.raises(UsageError):
        choose.check_model_name(name)


def test_a_variable_may_be_one_of_them():
    space = {"fake": Scripted(["x"], "fake")}
    agent = Agent("fake,openai/b", namespace=space, secrets={})
    assert agent.choice.models[0] is space["fake"]
    assert agent.choice.source == "the variable fake"


def test_the_asked_names_are_the_input_and_a_replay_needs_neither(serve, tmp_path):
    a, b = serve(refusing(503)), serve(lambda peer: peer.stream(DONE))
    (tmp_path / "c.toml").write_text(
        f'[endpoints.a]\nbase_url = "{a.url}"\n[endpoints.b]\nbase_url = "{b.url}"\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENT_NB_CONFIG", str(tmp_path / "c.toml"))
        run = asking("a/x,b/y")
    assert run.log[0].settings["asked"] == "a/x,b/y"
    late = Agent("a/x,b/y", late=True, secrets={})
    assert late.inputs("go") == run.log[0].settings["inputs"]
    asked = len(a.asked), len(b.asked)

    async def main():
        return await late.replay(RecordedTurns.of(json.loads(json.dumps(run_record(run.log)))))

    again = anyio.run(main)
    assert (again.answer, changes(again)) == ("from a", changes(run))
    assert (len(a.asked), len(b.asked)) == asked


@pytest.mark.parametrize(
    ("fault", "outage"),
    [
        (ModelError("x", status=500), True),
        (ModelError("x", status=529, retryable=True), True),
        (ModelError("x", status=429), True),
        (ModelError("x", code="connect", retryable=True), True),
        (ModelError("x", code="tls"), False),
        (ModelError("x", status=401), False),
        (ModelError("x", status=500, code="context"), False),
        (ModelError("x", code="script"), False),
    ],
)
def test_what_an_outage_is(fault, outage):
    assert Failures.is_outage(fault) is outage


# --- what people see


def drawn(node):
    return text.draw(node)


def test_the_header_names_the_model_that_answers_and_the_one_that_did_not(serve):
    run = asking([openai("a", base_url=serve(refusing(503)).url), Scripted(["from b"], "b")])
    view = RunView().extend(run.log)
    assert "b  instead of openai/a" in drawn(header.card(view, View()))
    (card,) = [c for c in view.cards if c.kind == "model"]
    assert "going on with b" in drawn(model.card(card, View()))
    assert "(503)" in drawn(model.card(card, View()))


def test_frames_name_the_model_of_each_turn():
    class Away:
        name, dialect, grammar, shots, context = "a", "xml", False, False, 0

        def __init__(self):
            self.turns = [calling("look")]

        async def stream(self, request):
            if not self.turns:
                raise ModelError("away", status=503)
            for part in Scripted([self.turns.pop()]).turns:
                async for batch in Scripted([part]).stream(request):
                    yield batch

        async def aclose(self):
            pass

    run = asking([Away(), Scripted(["done"], "b")], tools=[look])
    assert list(to_frame(run.log, TURNS).model) == ["a", "b"]
