"""Runs of other systems in a cell: `%%agent --from`, the cards of `await watch(…)`, records,
replay, interrupts.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import nbformat
import pytest
from helpers.paths import python_path
from helpers.streams import ndjson
from nbformat.v4 import new_code_cell, new_notebook

from agent_nb.cli.main import main
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import log_of
from agent_nb.rows.recorded_runs import runs

AGENT = [
    {"type": "thought", "content": "Look."},
    {"type": "tool_call", "toolName": "ls", "toolArgs": '{"path": "."}'},
    {"type": "tool_result", "toolName": "ls", "output": "a.txt"},
    {"type": "stream", "content": "One file."},
    {"type": "final"},
]
LOOM = [
    {"session_id": "s", "event_id": 1, "type": "run_start", "message": "hi", "agent": "tot"},
    {"session_id": "s", "event_id": 2, "type": "tot_expand", "candidates": ["left", "right"]},
    {"session_id": "s", "event_id": 3, "type": "tot_evaluate", "chosen": 1, "scores": [0.2, 0.9]},
    {"session_id": "s", "event_id": 4, "reply": "Right."},
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with a foreign run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.ndjson").write_text(ndjson(*AGENT))
    return tmp_path


@pytest.fixture
def cell(loaded, run):
    """Run one cell with only an option line, or with a body; return `_agent`."""

    def cell(line, body=""):
        source = f"%%agent {line}\n{body}"
        result = run(loaded.run_cell_async(source, transformed_cell=loaded.transform_cell(source)))
        if result.error_in_exec is not None:
            raise result.error_in_exec
        return loaded.user_ns["_agent"]

    return cell


def test_a_file_is_shown_and_left_in_the_namespace(here, cell, capsys):
    found = cell("--from run.ndjson")
    assert (found.answer, found.status) == ("One file.", "ok")
    assert {e.origin for e in found.log} == {"imported"}
    assert "One file." in capsys.readouterr().out


def test_the_body_is_the_prompt_with_its_expressions(here, cell, loaded):
    loaded.user_ns["place"] = "src"
    assert cell("--from run.ndjson", "What is in {{ place }}?").prompt == "What is in src?"


def test_o_names_the_variable(here, cell, loaded):
    cell("--from run.ndjson -o other")
    assert loaded.user_ns["other"].answer == "One file."


def test_the_codec_can_be_named(here, cell):
    (here / "short.ndjson").write_text(ndjson(*[{"type": "error", "error": "x"}]))
    assert cell("--from short.ndjson --codec loom").log.of("error")[0].extra == {"loom": {}}


def test_a_source_that_cannot_be_read_fails_the_cell(here, cell, loaded):
    with pytest.raises(AgentCellError, match="No such file"):
        cell("--from none.ndjson")
    assert loaded.user_ns["_agent"].status == "error"


def test_a_path_with_nul_fails_the_cell(here, cell, loaded):
    with pytest.raises(AgentCellError, match="null"):
        cell("--from no\0file.ndjson")
    assert loaded.user_ns["_agent"].status == "error"


@pytest.mark.parametrize("fault", [OSError("the disk is gone"), ValueError("a bug")])
def test_a_source_that_breaks_before_any_event_fails_the_cell(fault, here, cell, monkeypatch):
    def read_chunks(file):
        raise fault

    monkeypatch.setattr("agent_nb.external.sources.read_chunks", read_chunks)
    with pytest.raises(type(fault), match=str(fault)):
        cell("--from run.ndjson")


def test_a_run_that_ended_badly_elsewhere_does_not(here, cell):
    (here / "bad.ndjson").write_text(ndjson(*[AGENT[0], {"type": "error", "error": "lost"}]))
    assert cell("--from bad.ndjson").status == "error"


def test_a_source_that_is_cut_off_does_not(here, cell):
    (here / "cut.ndjson").write_text(ndjson(*AGENT[:2]))
    assert cell("--from cut.ndjson").status == "interrupted"


def test_what_was_not_read_is_told(here, cell, capsys):
    (here / "odd.ndjson").write_text(ndjson(*AGENT[:1]) + "{odd\n" + ndjson(*AGENT[1:]))
    cell("--from odd.ndjson")
    assert "not read from odd.ndjson: 1 × malformed line" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", ["-m openai/x", "-t python", "--system x", "-c other", "--max-turns 3", "--new"]
)
def test_options_of_our_own_agent_are_refused(here, cell, line):
    with pytest.raises(AgentCellError, match="no meaning with --from"):
        cell(f"--from run.ndjson {line}")


@pytest.mark.parametrize("line", ["--codec loom", "--follow"])
def test_its_options_need_from(here, cell, line):
    with pytest.raises(AgentCellError, match="belong to --from"):
        cell(f"-m scripted/x {line}", "hi")


def test_a_foreign_run_is_no_turn_of_a_conversation(here, cell, loaded):
    cell("--from run.ndjson", "What is there?")
    assert list(loaded.magics_manager.registry["AgentMagics"].session.conversations) == []


def test_only_so_many_runs_of_a_stream_are_shown_and_the_rest_is_told(here, cell, capsys):
    (here / "many.ndjson").write_text(
        ndjson(*({**o, "session_id": f"s{n}"} for n in range(23) for o in LOOM))
    )
    assert cell("--from many.ndjson").id == "s19"
    said = capsys.readouterr()
    assert said.out.count("Right.") == 20
    assert "3 more runs are not shown" in said.err


# In a kernel.


@pytest.fixture
def notebook(here, monkeypatch):
    """Write a notebook of code cells and return its path."""
    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.setenv("IPYTHONDIR", str(here / "ipython"))

    def notebook(*sources):
        cells = [
            new_code_cell("%load_ext agent_nb", id="load"),
            *(new_code_cell(s, id=f"cell{i}") for i, s in enumerate(sources)),
        ]
        path = here / "n.ipynb"
        nbformat.write(new_notebook(cells=cells), path)
        return path

    return notebook


def outputs(path, index):
    nb = json.loads(path.read_text(encoding="utf-8"))
    return nb, [
        "".join(o.get("data", {}).get("text/plain", o.get("text", "")))
        for o in nb["cells"][index + 1]["outputs"]
    ]


WATCH = """
import asyncio, agent_nb
async def stream():
    for content in ("a", "b"):
        yield {"type": "thought", "content": content}
        await asyncio.sleep(0)
    yield {"type": "stream", "content": "seen"}
    yield {"type": "final"}
found = await agent_nb.watch(stream(), prompt="hi")
"""


@pytest.mark.kernel
def test_cards_and_records_of_a_file_with_several_runs(here, notebook):
    (here / "two.ndjson").write_text(ndjson(*[*LOOM, *({**o, "session_id": "t"} for o in LOOM)]))
    path = notebook("%%agent --from two.ndjson")
    assert main(["run", "--inplace", str(path)]) == 0
    nb, shown = outputs(path, 0)
    assert [
        ("● right   chosen  0.90" in s, "imported from two.ndjson (Loom frames)" in s)
        for s in shown
    ] == [(True, True)] * 2
    assert sorted(r["id"] for r in NotebookRuns(nb).by_cell()["cell0"]) == ["s", "t"]
    assert [r.answer for r in runs(path)] == ["Right.", "Right."]


@pytest.mark.kernel
def test_records_of_foreign_runs_are_unsigned_and_in_no_conversation(notebook):
    path = notebook("%%agent --from run.ndjson")
    main(["run", "--inplace", str(path)])
    (record,) = NotebookRuns(outputs(path, 0)[0]).by_cell()["cell0"]
    assert "signature" not in record
    assert record["conversation"] == ""
    assert log_of(record).ended


@pytest.mark.long
@pytest.mark.kernel
def test_an_unchanged_file_leaves_the_notebook_as_it_is(notebook):
    path = notebook("%%agent --from run.ndjson")
    main(["run", "--inplace", str(path)])
    (before,) = NotebookRuns(outputs(path, 0)[0]).by_cell()["cell0"]
    main(["run", "--inplace", str(path)])
    assert NotebookRuns(outputs(path, 0)[0]).by_cell()["cell0"] == [before]


@pytest.mark.long
@pytest.mark.kernel
def test_a_notebook_with_foreign_runs_is_its_own_test(here, notebook, capsys):
    path = notebook("%%agent --from run.ndjson")
    main(["run", "--inplace", str(path)])
    assert main(["test", str(path)]) == 0
    (here / "run.ndjson").write_text(
        ndjson(*[*AGENT[:3], {"type": "stream", "content": "Two files."}, AGENT[4]])
    )
    assert main(["test", str(path)]) == 1
    said = capsys.readouterr()
    assert "Two files." in said.out + said.err


@pytest.mark.kernel
def test_awaiting_a_watch_shows_the_cards_once(notebook):
    path = notebook(
        WATCH, f"{WATCH}\nfound", f"{WATCH}\nawait agent_nb.watch(stream(), show=False)", "found"
    )
    assert main(["run", "--inplace", str(path)]) == 0
    assert [("❯ hi" in s, "seen" in s) for s in outputs(path, 0)[1]] == [(True, True)]
    cards, line = outputs(path, 1)[1]
    assert line.startswith("<Run ")
    assert "❯ hi" in cards
    assert len(outputs(path, 2)[1]) == 2
    assert "❯ hi" in outputs(path, 3)[1][0]


@pytest.mark.long
@pytest.mark.kernel
def test_a_watch_that_hears_the_same_again_leaves_the_notebook_as_it_is(notebook):
    def executed(*mode):
        assert main(["run", "--inplace", *mode, str(path)]) == 0
        nb, shown = outputs(path, 0)
        return NotebookRuns(nb).by_cell()["cell0"], shown

    path = notebook(WATCH)
    first = executed()
    assert executed() == first
    assert executed("--live") != first


@pytest.mark.long
@pytest.mark.kernel
def test_a_watch_that_hears_something_else_is_recorded_anew(notebook):
    path = notebook(WATCH)
    main(["run", "--inplace", str(path)])
    path.write_text(path.read_text().replace("seen", "heard"))
    main(["run", "--inplace", str(path)])
    assert [run.answer for run in runs(path)][-1] == "heard"


@pytest.fixture
def server():
    """A server of somebody else that can be switched off."""
    state = {"body": ndjson(*AGENT), "asked": 0}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            state["asked"] += 1
            self.send_response(200 if state["body"] else 503)
            self.send_header("content-type", "application/x-ndjson")
            self.end_headers()
            self.wfile.write(state["body"].encode())

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    state["url"] = f"http://127.0.0.1:{httpd.server_port}/run"
    yield state
    httpd.shutdown()
    thread.join()
    httpd.server_close()


@pytest.mark.long
@pytest.mark.kernel
def test_an_address_is_played_from_the_record_and_asked_again_when_told(notebook, server):
    path = notebook(f"%%agent --from {server['url']}")
    assert main(["run", "--inplace", str(path)]) == 0
    server["body"] = ""
    assert main(["run", str(path)]) == 0
    assert main(["test", str(path)]) == 0
    assert server["asked"] == 1
    shown = outputs(path.with_name("n.run.ipynb"), 0)[1][0]
    assert "One file." in shown
    assert "from the record" in shown
    assert main(["run", "--live", str(path)]) == 1
    assert server["asked"] == 2


@pytest.mark.kernel
def test_an_address_without_a_record_cannot_be_replayed(notebook, server, capsys):
    path = notebook(f"%%agent --from {server['url']}")
    assert main(["run", "--rerun", "replay", str(path)]) == 1
    assert "Nothing to replay" in capsys.readouterr().err
    assert server["asked"] == 0


STOPPED = "agent: stopped (kernel interrupt); what is queued behind this cell does not run"
PIPE = """
import os, json
%load_ext agent_nb
os.mkfifo("pipe")
def feed():
    with open("pipe", "w") as file:
        file.write(json.dumps({"type": "thought", "content": "I wait."}) + "\\n")
        file.flush()
        import time; time.sleep(100)
import threading; threading.Thread(target=feed, daemon=True).start()
"""


@pytest.mark.kernel
def test_an_interrupt_stops_following_and_keeps_what_came(kernel):
    assert kernel.run(PIPE)[0] == "ok"
    request = kernel.send("%%agent --from pipe\n", cell="follow")
    # it has come and is shown
    while "I wait." not in str(kernel.client.get_iopub_msg(timeout=60)["content"]):
        pass
    kernel.interrupt()
    status, said, shown = kernel.finish(request)
    assert (status, said) == ("error", STOPPED)
    assert "I wait." in str(list(shown.values())[-1]["data"])
    status, said, _ = kernel.run("print(_agent.status, [e.type for e in _agent.log])")
    assert said.strip() == "interrupted ['think', 'interrupt', 'end']"


@pytest.mark.kernel
def test_the_next_cell_works_after_an_interrupted_watch(kernel):
    code = """
import agent_nb, asyncio
from pathlib import Path
async def stream():
    yield {"type": "thought", "content": "I wait."}
    Path("mark").touch()
    await asyncio.sleep(60)
await agent_nb.watch(stream())
"""
    request = kernel.send(code, cell="watch")
    kernel.marked()
    kernel.interrupt()
    status, said, shown = kernel.finish(request)
    assert (status, said) == ("error", STOPPED)
    assert "The viewer stopped following." in list(shown.values())[-1]["data"]["text/plain"]
    assert kernel.run("print(_agent.status)")[:2] == ("ok", "interrupted\n")
