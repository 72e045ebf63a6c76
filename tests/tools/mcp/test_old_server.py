"""What a server asks of us by itself, on a server of the older protocol that is written by hand."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from helpers import mcp_old_server
from helpers.mcp_runs import says, written

from agent_nb import Agent, mcp_server
from agent_nb.tools.mcp.elicitation import Keyboard
from agent_nb.tools.mcp.session import Session

pytestmark = pytest.mark.slow


@pytest.fixture
def old(tmp_path):
    """The old server, which leaves what it was sent in `tmp_path`."""
    return mcp_server("old", sys.executable, [str(Path(mcp_old_server.__file__)), str(tmp_path)])


class Desk:
    """A main thread with a keyboard on which these answers are typed."""

    def __init__(self, monkeypatch, *said):
        self.asked, self._left = [], list(said)
        monkeypatch.setattr("builtins.input", self._input)

    def _input(self, text=""):
        self.asked.append(text)
        item = self._left.pop(0)
        if isinstance(item, BaseException):
            raise item
        return item

    async def call(self, function):
        return function()


class NoKeyboard:
    """A main thread of a front end without keyboard input."""

    async def call(self, function):
        raise EOFError


def said(result):
    return json.loads(result.content)


def test_a_question_is_asked_field_by_field(one, old, monkeypatch):
    desk = Desk(monkeypatch, "y", "Bern", "", "plane", "train", "x, y", "", "no")
    result = said(one([old], "ask", host=desk))
    assert result == {
        "action": "accept",
        "content": {
            "name": "Bern",
            "days": 3,
            "kind": "train",
            "stops": ["x", "y"],
            "alone": False,
        },
    }
    assert desk.asked[0].startswith("The MCP server old asks:\nWhere to?")
    assert "several of x, y" in desk.asked[5]
    assert "Please type one of train, car." in desk.asked[4]
    assert all(c.isprintable() or c == "\n" for text in desk.asked for c in text)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("typed", "action"),
    [
        (["n"], "decline"),
        ([""], "decline"),
        ([EOFError()], "cancel"),
        (["y", "", "", ""], "cancel"),  # three times nothing where something is needed
    ],
)
def test_what_is_not_answered_is_declined_or_cancelled(one, old, monkeypatch, typed, action):
    desk = Desk(monkeypatch, *typed)
    assert said(one([old], "ask", host=desk))["action"] == action


@pytest.mark.parametrize("host", [None, NoKeyboard()])
def test_where_there_is_no_keyboard_a_question_is_declined(one, old, host):
    assert said(one([old], "ask", host=host))["action"] == "decline"


class CountingDesk:
    """A main thread that counts what it is to do, and types nothing."""

    def __init__(self):
        self.asked = 0

    async def call(self, function):
        self.asked += 1
        raise EOFError


def test_a_question_goes_to_its_call_not_to_the_one_that_began(old):
    async def main():
        session = Session(old, {})
        desks = [CountingDesk() for _ in range(4)]
        for number, desk in enumerate(desks):
            keyboard = Keyboard(asyncio.get_running_loop(), desk)
            await session.call("ask", {}, no_progress, keyboard)
            if number == 1:  # the next call starts the server again
                await session._disconnect()
        await session.call("ask", {}, no_progress, None)
        await session.close()
        return [desk.asked for desk in desks]

    async def no_progress(*_):
        pass

    assert asyncio.run(main()) == [1, 1, 1, 1]


def test_an_address_is_not_opened_and_nobody_is_sent_there(one, old, monkeypatch):
    desk = Desk(monkeypatch)
    assert said(one([old], "open", host=desk))["action"] == "decline"
    assert desk.asked == []


@pytest.mark.parametrize("wish", ["sample", "roots"])
def test_sampling_and_roots_are_refused_and_not_offered(one, old, tmp_path, wish):
    assert "not supported" in said(one([old], wish))["message"]
    first = [json.loads(line) for line in (tmp_path / "received").read_text().splitlines()]
    [hello] = [message for message in first if message.get("method") == "initialize"][:1]
    assert hello["params"]["capabilities"].keys() == {"elicitation"}
    assert hello["params"]["clientInfo"]["name"] == "agent_nb"


def test_a_changed_list_counts_from_the_next_run_on(old):
    def tools():
        return Agent(says([("grow", {})]), [old], approve="auto").run_sync("go").log[0].tools

    assert "grown" not in tools()
    assert "grown" in tools()


def test_lines_that_are_no_messages_do_not_disturb(one, old, capfd):
    assert one([old], "noise").content == "noise"
    assert capfd.readouterr() == ("", "")


def test_content_of_every_kind_is_told_in_words(one, old):
    assert one([old], "odd").content.splitlines() == [
        "text",
        "(audio/wav, 3 B)",
        "(image/png, 7 B)",
        "(image/tiff, 3 B)",
        "(a link to secrets, file:///etc/passwd)",
        "a://b:",
        "inside",
        "(a://c, a file, 3 B)",
    ]
    assert one([old], "nothing").status == "ok"


def test_the_model_reads_nothing_that_people_cannot_see(old):
    run = Agent(says([]), [old]).run_sync("go")
    [listed] = [e.payload for e in run.log.of("state") if e.kind == "mcp"]
    assert listed["tools"][0]["description"] == "Ask the user."
    assert listed["tools"][0]["parameters"]["properties"]["x"]["description"] == "an x"


def test_a_tool_with_a_huge_schema_is_left_out_and_named(old, tmp_path, monkeypatch):
    run = Agent(says([]), [old]).run_sync("go")
    [listed] = [e.payload for e in run.log.of("state") if e.kind == "mcp"]
    assert listed["left_out"] == ["huge"]
    assert "huge" not in run.log[0].tools
    written(tmp_path, "old", [old.command, *old.args])
    monkeypatch.setenv("AGENT_NB_TRUST_MCP", "1")
    run = Agent(says([]), ["mcp:old/huge"], folder=tmp_path).run_sync("go", check=False)
    assert "its schema is larger than 50,000 characters" in run.log.of("error")[0].message
