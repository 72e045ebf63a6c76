"""Helpers of the model tests."""

import anyio
import pytest

from agent_nb import parts
from agent_nb.messages import Request, text_message


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
            return Sum(seen)

        return anyio.run(main)

    return run
