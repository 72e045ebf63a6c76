"""Helpers of the model tests."""

import anyio
import pytest
from helpers.model_server import Server

from agent_nb.errors import ModelError
from agent_nb.models import keys, parts
from agent_nb.models.messages import Request, text_message


class Sum:
    """What the parts of a response add up to."""

    def __init__(self, seen):
        self.parts = list(seen)
        self.text = "".join(p.text for p in self.of(parts.Text))
        self.reasoning = "".join(p.text for p in self.of(parts.Thought))
        self.calls = [(c.call_id, c.name, c.raw_args) for c in self.of(parts.Call)]
        self.finish = next((p.reason for p in reversed(self.of(parts.Finish))), None)
        self.usage = next(iter(reversed(self.of(parts.Usage))), None)
        self.faults = self.of(parts.Fault)
        self.extras = {p.name: p.payload for p in self.of(parts.Extra)}

    def of(self, kind):
        return [p for p in self.parts if isinstance(p, kind)]


@pytest.fixture(scope="session")
def total():
    return Sum


@pytest.fixture(scope="session")
def request_of():
    """Make a request from texts or messages: strings are user messages."""

    def make(*messages, **kw):
        made = tuple(text_message("user", m) if isinstance(m, str) else m for m in messages)
        return Request(messages=made, **kw)

    return make


@pytest.fixture(scope="session")
def caught(request_of):
    """Run a model that fails; return the sum of its parts and the ModelError."""

    def run(model, request=None):
        async def main():
            seen = []
            try:
                async for batch in model.stream(request or request_of("hi")):
                    seen.extend(batch)
            except ModelError as error:
                return Sum(seen), error
            finally:
                await model.aclose()
            raise AssertionError("the request did not fail")

        return anyio.run(main)

    return run


@pytest.fixture(scope="session")
def collect(request_of):
    """Run a model on a request and return the sum of its parts."""

    def run(model, request=None):
        async def main():
            seen = []
            stream = model.stream(request or request_of("hi"))
            try:
                async for batch in stream:
                    seen.extend(batch)
            finally:
                await stream.aclose()
                await model.aclose()
            return Sum(seen)

        return anyio.run(main)

    return run


@pytest.fixture
def serve():
    """Start servers of given behaviours (functions of the Peer); they are stopped at the end."""
    servers = []

    def start(*behaviours):
        servers.append(Server(*behaviours))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def clean_environment(clean_environment, monkeypatch):
    """No key, proxy, configuration or `.env` of the machine reaches a test either."""
    import os

    for name in list(os.environ):
        if name.upper().endswith(("_PROXY", "_API_KEY", "_BASE_URL")) or name in (
            "HF_TOKEN",
            "AGENT_NB_MODEL",
            "OLLAMA_HOST",
        ):
            monkeypatch.delenv(name)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "AGENT_NB_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    folder = clean_environment
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(keys, "_read_keyring", lambda provider: "")
