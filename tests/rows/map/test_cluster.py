"""What is sent to the workers of a cluster about rows, and what they send back."""

import asyncio
import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import pytest
from helpers.counting_server import CountingServer

from agent_nb import Agent
from agent_nb.errors import RunFailed, UsageError
from agent_nb.models import keys
from agent_nb.record.inner_records import InnerRecords
from agent_nb.record.record import events_of
from agent_nb.rows.map import planning
from agent_nb.rows.map.cluster import messages, worker
from agent_nb.rows.map.cluster.messages import MapMessages
from agent_nb.rows.map.cluster.spec import spec_of

WORDS = [f"word {n}" for n in range(12)]
SECRET = "correct-horse-battery"
TIMES = ("_run", "_seconds")


@dataclass
class Label:
    """A type that this module has."""

    word: str
    size: int = 0


@pytest.fixture
def server(monkeypatch):
    with CountingServer.open() as made:
        monkeypatch.setenv("OPENAI_BASE_URL", made.url)
        yield made


class Workers:
    """Workers that ask rows in this process; `ask` takes a message and returns the answer to it."""

    def __init__(self, ask=worker.ask_row):
        self.ask = ask
        self.sent = []

    def open(self, agent, redaction):
        return WorkerRows(self, MapMessages(spec_of(agent, redaction), redaction, agent.output))


class WorkerRows:
    """Asks the rows of one map through `workers`."""

    def __init__(self, workers, of_map):
        self._workers, self._messages = workers, of_map

    async def ask(self, row):
        message = self._messages.write(row, row.key, rpm=0, shares_revision=1)
        self._workers.sent.append(message)
        answer = await asyncio.to_thread(self._workers.ask, message)
        return self._messages.read(row, answer, 1)

    async def aclose(self):
        worker.forget_map(self._messages.name)


@pytest.fixture
def workers(monkeypatch):
    """Return workers, as a client that maps take; the name tells a map who asks its rows."""

    def distribute(agent, client, options, redaction):
        return lambda: client.open(agent, redaction)

    monkeypatch.setattr(planning, "distribute_rows", distribute)
    return Workers()


def agent(**options):
    options.setdefault("dialect", "native")
    return Agent("openai/m", **options)


def untimed(frame):
    return [{name: value for name, value in row.items() if name not in TIMES} for row in frame]


def mapped(pool, data=WORDS, prompt="{{ text }}", *, by=None, **options):
    """Return the stream of a map that has ended."""

    async def main():
        stream = (by or agent()).map(data, prompt, client=pool, store=False, **options)
        await stream
        return stream

    return asyncio.run(main())


def failed_row(pool, *, by=None, **options):
    """Return the row of a map of one row that failed, and so did the map."""

    async def main():
        stream = (by or agent()).map(["one"], "{{ text }}", client=pool, store=False, **options)
        with pytest.raises(RunFailed, match="The only row failed"):
            await stream
        return stream.frame

    (row,) = asyncio.run(main())
    return row


def test_workers_give_the_frame_that_no_workers_give(server, workers):
    here = agent().map_sync(WORDS, "{{ text }}", store=False)
    assert untimed(agent().map_sync(WORDS, "{{ text }}", store=False, client=workers)) == untimed(
        here
    )
    assert set(server.counts.values()) == {2}


def test_the_plan_of_a_map_says_where_its_rows_are_asked(server, workers):
    plans = [e for e in mapped(workers).log if getattr(e, "kind", "") == "map.plan"]
    assert plans[0].payload["where"] == "dask"


def test_each_row_leaves_the_record_of_its_run(server, workers):
    found = InnerRecords.of_log(mapped(workers).log)
    answers = {e.content for r in found.values() for e in events_of(r) if e.type == "respond"}
    assert answers == {word.upper() for word in WORDS}


def test_no_secret_is_sent(server, workers, monkeypatch, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(
        f'[endpoints.lab]\nbase_url = "{server.url}"\nkey = "LAB_KEY"\nheaders = {{ x-team = "t{SECRET}" }}\n'
    )
    monkeypatch.setenv("AGENT_NB_CONFIG", str(path))
    monkeypatch.setenv("LAB_KEY", "l" + SECRET)
    monkeypatch.setenv("SOME_TOKEN", "s" + SECRET)
    keys.Key.keep("openai", "o" + SECRET)
    server.say = lambda prompt: '{"word": "a"}'
    try:
        one = Agent("lab/m", dialect="native", system=f"Never say s{SECRET}.", output=Label)
        one.map_sync(WORDS, "Hide o{{ text }}, l" + SECRET, client=workers)
        given = Agent("lab/m", dialect="native", secrets={"MINE": "m" + SECRET})
        given.map_sync(["m" + SECRET], "Hide {{ text }}", client=workers)
    finally:
        keys.forget("openai")
    assert len(workers.sent) == len(WORDS) + 1
    assert not any(SECRET.encode() in sent for sent in workers.sent)
    assert set(server.keys) == {f"Bearer l{SECRET}"}


def test_what_a_worker_returns_is_redacted_with_the_secrets_of_the_client(server, workers):
    server.say = lambda prompt: f"It is {SECRET}."
    by = agent(secrets={"MINE": SECRET})
    stream = mapped(workers, ["one"], by=by)
    (result,) = stream.results
    assert result.answer == "It is [redacted MINE]."
    assert SECRET not in stream.log.to_ndjson()


def test_a_redacted_record_keeps_what_its_row_took_beside_its_run(server, workers):
    def ask(message):
        answer = json.loads(worker.ask_row(message))
        answer["record"]["beside"] = {"waited": 0.5}
        return json.dumps(answer).encode()

    server.say, workers.ask = (lambda prompt: f"It is {SECRET}."), ask
    stream = mapped(workers, ["one"], by=agent(secrets={"MINE": SECRET}))
    (record,) = InnerRecords.of_log(stream.log).values()
    assert record["beside"] == {"waited": 0.5}


def test_a_typed_answer_becomes_a_value_of_the_type_of_this_side(server, workers):
    @dataclass
    class Near:
        word: str
        size: int = 7

    server.say = lambda prompt: '{"word": "a"}'
    here = agent().map_sync(["one"], "{{ text }}", store=False, output=Near)
    there = agent().map_sync(["one"], "{{ text }}", store=False, output=Near, client=workers)
    assert untimed(there) == untimed(here)
    assert there[0]["size"] == 7


def test_an_answer_that_the_type_itself_refuses_is_an_error_of_its_row(server, workers):
    from pydantic import BaseModel, field_validator

    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def even(cls, value):
            if value % 2:
                raise ValueError("odd")
            return value

    server.say = lambda prompt: '{"number": 3}'
    row = failed_row(workers, output=Even)
    assert row["_status"] == "error"
    assert "odd" in row["_error"]
    assert "Define the type in a module" in row["_error"]


@pytest.mark.slow
def test_a_key_that_only_this_process_has_is_missing_there(server, workers, monkeypatch, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(f'[endpoints.lab]\nbase_url = "{server.url}"\nkey = "LAB_KEY"\n')
    monkeypatch.setenv("AGENT_NB_CONFIG", str(path))
    keys.Key.keep("lab", SECRET)
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            workers.ask = lambda message: process.submit(worker.ask_row, message).result()
            row = failed_row(workers, by=Agent("lab/m"))
    finally:
        keys.forget("lab")
    assert row["_status"] == "error"
    assert "Workers read keys from their own environment" in row["_error"]
    assert server.total == 0


def test_another_version_on_the_other_side_is_a_clear_error(server, workers):
    older = f'"version":"{messages.__version__}"'.encode()
    workers.ask = lambda message: worker.ask_row(message.replace(older, b'"version":"0.0.9"'))
    row = failed_row(workers)
    assert "comes from 0.0.9. Install the same version" in row["_error"]
    assert server.total == 0


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (b"nonsense", "did not return a result"),
        (b'{"a":' + b"[" * 9_000 + b"]" * 9_000 + b"}", "did not return a result"),
        (b'{"version":"9.9"}', r"jupyter-agent-nb 9.9; here it is"),
    ],
)
def test_an_answer_of_no_use_gives_an_error_that_says_what_to_do(server, workers, outcome, words):
    workers.ask = lambda message: outcome
    row = failed_row(workers)
    assert row["_status"] == "error"
    assert words in row["_error"].replace(r"\.", ".")


@pytest.mark.parametrize("client", ["tcp://scheduler:8786", ThreadPoolExecutor(1)])
def test_what_is_not_a_dask_client_is_refused_before_the_first_request(server, client):
    with pytest.raises(UsageError, match=f"client= is a {type(client).__name__}. Give a Dask"):
        agent().map(WORDS, "{{ text }}", store=False, client=client)
    assert server.total == 0


def test_the_loop_of_a_worker_ends_with_its_last_map(server, workers):
    mapped(workers)
    process = worker.process_worker()
    assert process.loop is None
    assert not process.maps
