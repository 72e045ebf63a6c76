"""A run of another process in a real JupyterLab: followed live, answered and left by click, while
its server restarts.
"""

from __future__ import annotations

import threading

import pytest
from helpers.ports import take_port

from agent_nb import events as ev
from agent_nb.events.log import EventLog
from agent_nb.server.app import Server, Settings
from agent_nb.server.hub import Hub

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]
TOKEN = "a-token-for-the-page"


class Remote:
    """A run of another process, and its server."""

    def __init__(self, run):
        self.log, self.answers = EventLog(run), []
        self.cancelled = threading.Event()
        self.server = self._serve(take_port())  # it restarts there
        self.url = f"{self.server.url}/runs/{run}"

    def _serve(self, port):
        hub = Hub()
        hub.attach(self.log, cancel=self.cancelled.set, approve=self._approve)
        return Server(hub, port=port, token=TOKEN, settings=Settings(keepalive=1)).start()

    def _approve(self, call_id, **answer):
        self.answers.append((call_id, answer["allow"], answer["scope"]))
        args = {"bed": "beans", "litres": 20}
        self.feed(
            ev.Approval(
                call_id=call_id, stage="decided", decision="allow", by="remote", args=args, turn=1
            ),
            ev.Started(call_id=call_id, name="water", turn=1),
        )
        return True

    def feed(self, *events):
        for event in events:
            self.log.append(event)

    def ask(self):
        args = {"bed": "beans", "litres": 20}
        self.feed(
            ev.RunStart(agent="gardener", model="lab/green"),
            ev.User(content="Water what needs it."),
            ev.Think(content="The beans.", turn=1),
            ev.Call(call_id="c1", name="water", args=args, turn=1, batch="b"),
            ev.Execute(batch="b", calls=("c1",), turn=1),
            ev.Approval(call_id="c1", args=args, turn=1),
        )

    def restart(self):
        port = self.server.port
        self.server.stop()
        self.server = self._serve(port)


@pytest.fixture(scope="module")
def notebook(opened):
    """A notebook in JupyterLab whose kernel knows the token."""
    made = opened("lab", cells=(f"%load_ext agent_nb\nSERVER_TOKEN = {TOKEN!r}",))
    made.start(0)
    made.wait(0)
    yield made
    made.close()


@pytest.fixture
def remote(request):
    remote = Remote(request.node.name[5:17])
    yield remote
    remote.server.stop()


def test_a_run_is_followed_and_answered_by_click_through_a_restart(notebook, remote):
    cell = notebook.begin(f"%agent attach {remote.url} --token SERVER_TOKEN -o garden")
    remote.ask()
    notebook.sees(cell, "Water what needs it.")
    notebook.button(cell, "Approve").wait_for()
    notebook.shot("attached-live")
    notebook.button(cell, "Approve").click()
    notebook.sees(cell, "running water")
    assert remote.answers == [("c1", True, "once")]
    remote.restart()
    remote.feed(
        ev.Progress(call_id="c1", fraction=1.0, turn=1),
        ev.Result(call_id="c1", name="water", content="20 litres", turn=1),
        ev.Respond(content="The beans have **water**.", turn=2),
        ev.End(),
    )
    notebook.wait(cell)
    notebook.sees(cell, "✓ done")
    notebook.shot("attached-done")
    assert notebook.value("[garden.status, len(garden.log)]") == ["ok", len(remote.log)]
    assert TOKEN not in notebook.output(cell).inner_text()
    shown = str([c.get("outputs") for c in notebook.save().cells[1:]])
    assert TOKEN not in shown
    assert "application/vnd.jupyter.widget-view+json" not in shown


def test_stop_detaches_and_says_how_to_stop_the_run_itself(notebook, remote):
    cell = notebook.begin(f"%agent attach {remote.url} --token SERVER_TOKEN")
    remote.feed(ev.User(content="Wait for me."))
    notebook.sees(cell, "Wait for me.")
    notebook.button(cell, "■ Stop").click()
    notebook.wait(cell)
    notebook.sees(cell, "The viewer detached")
    notebook.sees(cell, f'await agent_nb.attach("{remote.url}").cancel()')
    notebook.shot("attached-left")
    assert not remote.log.ended
    assert not remote.cancelled.is_set()
