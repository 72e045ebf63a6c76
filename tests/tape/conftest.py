"""A loopback provider that the tests of the tape record from."""

import json

import pytest
from helpers.model_server import Server
from tape import answers
from tape.taped_server import TapedServer


class Provider:
    """A server that speaks the three APIs; `down` closes it, `asked` counts its requests."""

    def __init__(self):
        self.server = Server(self._answer)
        self.replies = []  # statuses of answers to come; 200 when there are none
        self.words = ["Hel", "lo ", "from ", "the ", "server", "."]
        self.call = None  # (name, pieces of arguments) of the tool to call; "": the first one
        self.stall = False  # streams do not end
        self.failing = None  # the end of streams, in place of all but their first two chunks
        self.gate = None  # an event that answers wait for

    @property
    def asked(self):
        return [peer.path for peer in self.server.asked]

    def _answer(self, peer):
        if self.gate is not None:
            self.gate.wait(30)
        status = self.replies.pop(0) if self.replies else 200
        if status != 200:
            peer.reply(
                status, json.dumps({"error": {"message": f"no: {status}"}}), retry_after_ms="1"
            )
            return
        body = peer.body
        done = any(
            m.get("role") == "tool" or "tool_result" in json.dumps(m)
            for m in body.get("messages", [])
        ) or "function_call_output" in json.dumps(body.get("input"))
        call = None if done or not body.get("tools") else self.call
        if call and not call[0]:
            tool = body["tools"][0]
            call = (tool.get("function", tool)["name"], call[1])
        if "enerateContent" in peer.path:
            answered = "functionResponse" in json.dumps(body["contents"])
            call = None if answered or not body.get("tools") else self.call
            body["stream"] = "streamGenerateContent" in peer.path
            whole = answers.google_whole(self.words, call=call)
            self._reply(
                peer, list(answers.google_chunks(self.words, call=call)), whole, marked=False
            )
        elif peer.path.partition("?")[0].endswith("/messages"):
            self._reply(
                peer,
                list(answers.message_events(self.words, call=call)),
                answers.message_whole("".join(self.words), call=call),
                names=True,
            )
        elif peer.path.endswith("/responses"):
            events = answers.numbered(answers.response_events(self.words, body, call=call))
            self._reply(peer, events, events[-1]["response"], names=True)
        else:
            self._reply(
                peer,
                list(answers.chat_chunks(self.words, call=call)),
                answers.chat_whole("".join(self.words), call=call),
            )

    def _reply(self, peer, chunks, whole, *, names=False, marked=True):
        if not peer.body.get("stream"):
            peer.reply(200, json.dumps(whole), x_request_id="req_1", set_cookie="a=secret-cookie")
            return
        peer.begin()
        for chunk in chunks if self.failing is None else chunks[:2]:
            peer.send(answers.sse(chunk, names=names, done=False).decode())
        if self.failing is not None:
            peer.send(self.failing)
        elif self.stall:
            peer.wait_gone()
        elif marked and not names:
            peer.send("data: [DONE]\n\n")
        peer.end()


def start_provider(monkeypatch):
    """Start a provider that every library of models asks while this patch holds."""
    made = Provider()
    monkeypatch.setenv("OPENAI_BASE_URL", made.server.url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", made.server.url.removesuffix("/v1"))
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", made.server.url.removesuffix("/v1"))
    monkeypatch.setenv("GEMINI_API_KEY", "AIza" + "k" * 35)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-" + "k" * 30)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-" + "k" * 30)
    monkeypatch.delenv("AGENT_NB_RERUN", raising=False)
    return made


@pytest.fixture
def provider(monkeypatch):
    made = start_provider(monkeypatch)
    yield made
    made.server.close()


@pytest.fixture
def relayed():
    """A function that starts a server of this behaviour with a relay before it."""
    made = []

    def start(behaviour, decide=None):
        made.append(TapedServer(behaviour, decide))
        return made[-1]

    yield start
    for each in made:
        each.close()
