"""A real agent behind the server: started over HTTP, asked, followed by another process's eyes, in
every format.
"""

import threading

import anyio
import httpx
import pytest

from agent_nb import Agent, Scripted, tool
from agent_nb.codecs.convert import decode
from agent_nb.external.attached_run import attach
from agent_nb.host import plugins
from agent_nb.server.app import Server, Settings
from agent_nb.tools.base import Decision

TURNS = [
    {
        "text": '<think>Look first.</think><execute>[{"name": "double", "args": {"number": 21}}]</execute>',
        "chunk": 5,
    },
    {"text": "It is 42.", "chunk": 3, "delay": 0.01},
]


@tool(effect="outside")
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


class Served:
    """Starts agents for the server; their questions wait for the route that answers them."""

    def __init__(self):
        self.questions = {}

    async def __call__(self, message, conversation):
        stream = Agent(Scripted(TURNS), tools=[double], approve="ask", ask=self._ask)(message)
        stream.approve = self._answer
        return stream.start()

    async def _ask(self, question):
        asked = self.questions[question.call_id] = (anyio.Event(), [])
        await asked[0].wait()
        return asked[1][0]

    def _answer(self, call_id, *, allow, args, scope, reason):
        if call_id not in self.questions:
            return False
        event, answer = self.questions.pop(call_id)
        answer.append(Decision(allow=allow, args=args, scope=scope, by="click", reason=reason))
        event.set()
        return True


@pytest.fixture
def served(token):
    server = Server(start=Served(), token=token, settings=Settings(keepalive=0)).start()
    yield server
    server.stop()


def test_an_agent_is_started_over_http_asks_and_is_followed_to_its_end(served, token):
    with httpx.Client(
        base_url=served.url,
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
        timeout=30,
    ) as client:
        run = client.post("/runs", json={"message": "Double 21."}).json()["run"]
        answered = threading.Event()

        async def follow():
            attached = attach(f"{served.url}/runs/{run}", token)
            async for event in attached:
                if event.type == "approval" and event.stage == "requested":
                    await attached.approve(event.call_id, allow=True)
                    answered.set()
            return attached.run

        found = anyio.run(follow)
        assert (found.answer, found.status) == ("It is 42.", "ok")
        assert answered.is_set()
        assert [str(e.content) for e in found.log if e.type == "result"] == ["42"]
        remote = client.get(
            f"/runs/{run}/events",
            params={"internal": "1"},
            headers={"Accept": "application/x-ndjson"},
        ).text
        assert decode(remote, "canonical") == list(found.log)
        for name in plugins.list_plugins("codecs"):
            text = client.get(f"/runs/{run}/events", params={"format": name}).text
            assert any(getattr(e, "content", "") == "It is 42." for e in decode(text, name))


def test_a_question_nobody_answers_can_be_cancelled_over_http(served, token):
    async def follow():
        attached = attach(f"{served.url}/runs/{run}", token)
        async for event in attached:
            if event.type == "approval":
                await attached.cancel()
        return attached.run

    with httpx.Client(
        base_url=served.url,
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
        timeout=30,
    ) as client:
        run = client.post("/runs", json={"message": "Double 21."}).json()["run"]
        found = anyio.run(follow)
    assert found.status == "interrupted"
    assert [e.status for e in found.log if e.type == "result"] == ["cancelled"]
