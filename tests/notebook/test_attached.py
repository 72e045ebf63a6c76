"""Runs of another process in a cell: `%agent attach`, `await agent_nb.attach(…)`, their records,
detaching.
"""

import json
import os
import threading

import nbformat
import pytest
from helpers.paths import python_path
from helpers.redis_server import HUBS, Apart
from nbformat.v4 import new_code_cell, new_notebook

from agent_nb import events as ev
from agent_nb.cli.main import main
from agent_nb.errors import UsageError
from agent_nb.events.log import EventLog
from agent_nb.external import server_notes
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.notebook.follow import attach
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import events_of
from agent_nb.server.app import Server, Settings
from agent_nb.server.hub import Hub

TOKEN = "test-token-123"


class Remote:
    """A server of somebody else, with one run that the test drives.

    `apart`: two hubs over Redis, of which one publishes what the other serves.
    """

    def __init__(self, apart=None):
        self.apart, self.log = apart, EventLog("far")
        self.hub = apart.kernel if apart else Hub()
        self.cancelled = threading.Event()
        self.answers = []
        self.hub.attach(self.log, cancel=self.cancelled.set, approve=self._approve)
        hub = apart.server if apart else self.hub
        self.server = Server(hub, token=TOKEN, settings=Settings(keepalive=0)).start()
        self.url = f"{self.server.url}/runs/far"

    def _approve(self, call_id, **answer):
        self.answers.append((call_id, answer["allow"]))
        return True

    def feed(self, *events):
        for event in events:
            self.log.append(event)
        if self.apart:
            self.apart.settle()
        return self

    def whole(self):
        return self.feed(
            ev.RunStart(agent="far"),
            ev.User(content="Where?"),
            ev.Respond(content="Far away.", turn=1),
            ev.End(),
        )


@pytest.fixture(params=HUBS)
def remote(tmp_path, monkeypatch, request):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    over = request.param == "redis"
    apart = Apart(request.getfixturevalue("redis_server").url) if over else None
    remote = Remote(apart)
    left = server_notes.write_server_note(remote.server.url, TOKEN)
    yield remote
    left.close()
    remote.server.stop()
    if apart:
        apart.stop()


@pytest.fixture
def line(loaded, run):
    """Run one line in a cell and return `_agent`."""

    def line(source, **names):
        loaded.user_ns.update(names)
        result = run(loaded.run_cell_async(source, transformed_cell=loaded.transform_cell(source)))
        if result.error_in_exec is not None:
            raise result.error_in_exec
        return loaded.user_ns["_agent"]

    return line


def test_a_remote_run_is_shown_and_left_in_the_namespace(line, remote, loaded, capsys):
    remote.whole()
    found = line(f"%agent attach {remote.url} -o far")
    assert list(found.log) == list(remote.log)
    assert loaded.user_ns["far"] is found
    assert "Far away." in capsys.readouterr().out


def test_a_fault_that_is_no_answer_of_the_server_ends_the_cell(line, remote, monkeypatch):
    async def follow(attached, screen=None):
        raise ValueError("a bug")

    monkeypatch.setattr("agent_nb.external.attached_run.Attached.follow", follow)
    with pytest.raises(ValueError, match="a bug"):
        line(f"%agent attach {remote.url}")


def test_it_can_be_assigned(line, remote, loaded):
    remote.whole()
    line(f"run = %agent attach {remote.url}")
    assert loaded.user_ns["run"].answer == "Far away."


def test_an_address_a_variable_and_nothing_at_all_name_the_newest_run(line, remote):
    remote.whole()
    assert line(f"%agent attach {remote.server.url}").id == "far"
    assert line("%agent attach there", there=remote.server).id == "far"
    assert line("%agent attach").id == "far"


def test_it_is_no_turn_of_a_conversation(line, remote, loaded):
    remote.whole()
    line(f"%agent attach {remote.url}")
    assert list(loaded.magics_manager.registry["AgentMagics"].session.conversations) == []


def test_it_is_followed_while_it_goes_on(line, remote):
    remote.feed(ev.User(content="Where?"))

    def go_on():
        while not remote.hub.listeners("far"):
            pass
        remote.feed(ev.Respond(content="Here.", turn=1), ev.End())

    thread = threading.Thread(target=go_on)
    thread.start()
    assert line(f"%agent attach {remote.url}").answer == "Here."
    thread.join()


def test_awaiting_shows_it_too_where_one_insists(line, remote, capsys):
    remote.whole()
    line(f"import agent_nb\nrun = await agent_nb.attach({remote.url!r}, show=True)")
    assert "Far away." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("ftp://x", "not the address of a run"),
        ("http://127.0.0.1:9 -o 1x", "takes the name of a variable"),
        ("http://127.0.0.1:9 --token NOT_THERE", "holds the token"),
        ("http://127.0.0.1:9 --frob", "nrecognized arguments"),
        ("http://127.0.0.1:9", "does not answer"),
        ("", "No server of yours"),
    ],
)
def test_what_is_wrong_is_one_line(arguments, words, line, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "none"))
    with pytest.raises(AgentCellError, match=words):
        line(f"%agent attach {arguments}")


def test_a_wrong_token_is_said_and_not_shown(line, remote):
    with pytest.raises(AgentCellError, match="refuses \\(401\\)") as caught:
        line(f"%agent attach {remote.url} --token secret", secret="wrong-token-456")
    assert "wrong-token" not in str(caught.value)


def test_several_servers_of_one_user_are_named(monkeypatch):
    notes = [
        server_notes.Note("http://127.0.0.1:1", "t"),
        server_notes.Note("http://127.0.0.1:2", "t"),
    ]
    monkeypatch.setattr(attach, "list_servers", lambda: notes)
    with pytest.raises(UsageError, match=r"http://127\.0\.0\.1:1, http://127\.0\.0\.1:2"):
        attach.parse_arguments([], {})


# In a kernel.


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """Write a notebook of code cells and return its path."""
    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))

    def notebook(*sources):
        cells = [
            new_code_cell("%load_ext agent_nb", id="load"),
            *(new_code_cell(s, id=f"cell{i}") for i, s in enumerate(sources)),
        ]
        path = tmp_path / "n.ipynb"
        nbformat.write(new_notebook(cells=cells), path)
        return path

    return notebook


@pytest.mark.long
@pytest.mark.kernel
def test_both_ways_are_recorded_shown_and_played_when_the_server_is_gone(notebook, remote, capsys):
    remote.whole()
    path = notebook(
        f"%agent attach {remote.url}",
        f"import agent_nb\nrun = await agent_nb.attach({remote.url!r})",
    )
    assert main(["run", "--inplace", str(path)]) == 0
    nb = json.loads(path.read_text(encoding="utf-8"))
    kept = NotebookRuns(nb).by_cell()
    for cell in ("cell0", "cell1"):
        (record,) = kept[cell]
        assert events_of(record) == list(remote.log)
        assert "signature" not in record
        assert record["conversation"] == ""
    (shown,) = nb["cells"][1]["outputs"]
    assert "Far away." in "".join(shown["data"]["text/html"])
    assert TOKEN not in path.read_text(encoding="utf-8")
    before = path.read_text(encoding="utf-8")
    assert main(["run", "--inplace", str(path)]) == 0
    assert (
        NotebookRuns(json.loads(path.read_text(encoding="utf-8"))).by_cell()
        == NotebookRuns(json.loads(before)).by_cell()
    )
    remote.server.stop()
    nb["cells"].pop()
    nbformat.write(nbformat.from_dict(nb), path)
    assert main(["test", str(path)]) == 0
    assert main(["run", str(path)]) == 0  # nobody answers: the record is shown, and why
    shown = path.with_name(f"{path.stem}.run.ipynb").read_text(encoding="utf-8")
    assert "attached, from the record: " in shown
    capsys.readouterr()


OWN = """
import agent_nb
from agent_nb import Scripted
server = agent_nb.serve(keepalive=0)
script = Scripted(["Hello."])
"""


@pytest.mark.long
@pytest.mark.kernel
def test_a_run_of_the_same_notebook_is_in_both_cells_and_its_own_test(notebook, capsys):
    path = notebook(
        OWN,
        "%%agent -m script\nhi",
        "%agent attach server",
        "run = await agent_nb.attach(server.url)",
        "server.stop()",
    )
    assert main(["run", "--inplace", str(path)]) == 0
    kept = NotebookRuns(json.loads(path.read_text(encoding="utf-8"))).by_cell()
    assert events_of(kept["cell1"][0]) == events_of(kept["cell2"][0]) == events_of(kept["cell3"][0])
    assert main(["run", "--inplace", str(path)]) == 0
    assert NotebookRuns(json.loads(path.read_text(encoding="utf-8"))).by_cell() == kept
    assert main(["test", "--trust-record", str(path)]) == 0
    assert "3 runs replayed" in capsys.readouterr().out


@pytest.mark.kernel
def test_without_a_record_nothing_is_played(notebook, remote, capsys):
    remote.whole()
    path = notebook(f"%agent attach {remote.url}")
    assert main(["run", "--rerun", "replay", str(path)]) == 1
    assert "Nothing to replay" in capsys.readouterr().err
    assert remote.hub.listeners() == 0


@pytest.mark.kernel
@pytest.mark.parametrize(
    "code",
    ["%agent attach {url}", "import agent_nb\nrun = await agent_nb.attach({url!r}, {token!r})"],
)
def test_an_interrupt_detaches_and_leaves_the_remote_run_alone(code, kernel, remote):
    remote.feed(ev.User(content="I wait for you."))
    kernel.run("%load_ext agent_nb")
    kernel.run(f"import os; os.environ['XDG_STATE_HOME'] = {os.environ['XDG_STATE_HOME']!r}")
    request = kernel.send(code.format(url=remote.url, token=TOKEN), cell=code[:6])
    while "I wait for you." not in str(kernel.client.get_iopub_msg(timeout=60)["content"]):
        pass
    kernel.interrupt()
    status, said, shown = kernel.finish(request)
    assert status == "error"
    assert (
        said.splitlines()[-1]
        == "agent: stopped (kernel interrupt); what is queued behind this cell does not run"
    )
    assert "Traceback" not in said
    data = str(list(shown.values())[-1]["data"])
    assert "I wait for you." in data
    assert not remote.cancelled.is_set()
    assert not remote.log.ended
    if code.startswith("%"):
        assert f'await agent_nb.attach("{remote.url}").cancel()' in said
        assert (
            kernel.run("print(_agent.status, [e.type for e in _agent.log])")[1].strip()
            == "interrupted ['user', 'interrupt', 'end']"
        )
        assert "The viewer detached" in data
    assert kernel.run("print(6 * 7)")[1].strip() == "42"
