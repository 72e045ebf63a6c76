"""`run --stream`: events of the runs on stdout as they happen, in the format of a codec."""

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import nbformat
import pytest
from helpers.paths import OPEN_FILES, open_files, python_path
from nbformat.v4 import new_code_cell, new_notebook

from agent_nb.cli.main import main
from agent_nb.codecs.convert import decode
from agent_nb.errors import UsageError
from agent_nb.events import Delta, End, Respond, RunStart, User
from agent_nb.events.log import EventLog
from agent_nb.notebook.cell.event_file import write_events
from agent_nb.notebook.identity import Cell
from agent_nb.runner.event_relay import Relay

SCRIPT = [{"text": "Hello, you.", "chunk": 4, "usage": {"input": 5, "output": 3}}]


def cell(path):
    return Cell(key="c", runner_options={"stream": path})


def a_run(log):
    for event in (
        RunStart(),
        User(content="hi"),
        Delta(block="1", of="respond", text="Hel"),
        Delta(block="1", of="respond", text="lo"),
    ):
        log.append(event)
    log.append(Respond(content="Hello", block="1", turn=1))
    log.append(End())


@pytest.mark.parametrize(
    "codec", ["canonical", "cogency", "loom", "loom:export", "agent-event", "looopy"]
)
def test_what_a_log_gets_comes_out_in_the_format(codec):
    out = io.StringIO()
    with Relay(codec, out.write) as relay:
        log = EventLog("r")
        write_events(cell(relay.path), log)
        a_run(log)
    back = decode(out.getvalue(), codec.partition(":")[0])
    assert [e.content for e in back if e.type == "respond"] == ["Hello"]


def test_it_comes_while_the_run_goes_on():
    said, came = [], threading.Event()

    def write(text):
        said.append(text)
        came.set()

    with Relay("canonical", write) as relay:
        log = EventLog("r")
        write_events(cell(relay.path), log)
        log.append(RunStart())
        assert came.wait(20)
        assert json.loads(said[0])["type"] == "run_start"


def test_deltas_are_frames_of_their_own():
    out = io.StringIO()
    with Relay("loom", out.write) as relay:
        log = EventLog("r")
        write_events(cell(relay.path), log)
        a_run(log)
    frames = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [f["content"] for f in frames if f.get("type") == "message_chunk"] == ["Hel", "lo"]


def test_a_cell_without_a_follower_writes_nothing(tmp_path):
    log = EventLog("r")
    write_events(Cell(key="c"), log)
    a_run(log)
    assert log.faults == []


def test_a_reader_that_goes_away_does_not_stop_the_run():
    def gone(_):
        raise BrokenPipeError

    with Relay("canonical", gone) as relay:
        log = EventLog("r")
        write_events(cell(relay.path), log)
        a_run(log)
    assert log.faults == []


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs /proc")
def test_a_log_that_never_ends_holds_no_file_open(tmp_path):
    log = EventLog("r")
    write_events(cell(str(tmp_path / "events")), log)
    log.append(RunStart())
    assert open_files(tmp_path) == []


def test_the_file_is_private_and_goes_with_the_runner():
    with Relay("canonical", lambda _: None) as relay:
        path = Path(relay.path)
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0
    assert not path.parent.exists()


def test_an_unknown_codec_is_refused_before_anything_runs():
    with pytest.raises(UsageError, match="morse"):
        Relay("morse", lambda _: None)


@pytest.mark.parametrize("codec", ["canonical", "loom", "looopy", "agent-event", "cogency"])
def test_runs_may_overlap_in_a_format_whose_lines_name_them(codec):
    assert Relay.allows_overlap(codec) is (codec in ("canonical", "loom", "looopy"))


@pytest.mark.parametrize("more", [["--json"], ["--jobs", "2"]])
def test_what_does_not_go_together_is_refused(more, tmp_path, capsys):
    (tmp_path / "n.ipynb").write_text(
        json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    assert main(["run", "--stream", "cogency", *more, str(tmp_path / "n.ipynb")]) == 2
    assert "--stream" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.kernel
@pytest.mark.parametrize("again", [False, True], ids=["live", "replay"])
def test_the_command_streams_to_stdout_and_reports_on_stderr(tmp_path, again):
    (tmp_path / "script.json").write_text(json.dumps({"turns": SCRIPT}))
    (tmp_path / "run.ndjson").write_text('{"type":"thought","content":"Look."}\n{"type":"final"}\n')
    cells = [
        "%load_ext agent_nb",
        "%%agent -m scripted/script.json\nhi",
        "%%agent --from run.ndjson\n",
    ]
    path = tmp_path / "n.ipynb"
    nbformat.write(
        new_notebook(cells=[new_code_cell(s, id=f"c{i}") for i, s in enumerate(cells)]), path
    )
    search = python_path()
    environment = {**os.environ, "PYTHONPATH": search, "IPYTHONDIR": str(tmp_path / "ipython")}
    command = [sys.executable, "-m", "agent_nb", "run", "--inplace"]
    if again:
        subprocess.run([*command, str(path)], env=environment, check=True, capture_output=True)
    done = subprocess.run(
        [*command, "--stream", "cogency", str(path)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [
        (o["type"], o.get("content")) for o in said if o["type"] in ("user", "think", "respond")
    ] == [
        ("user", "hi"),
        ("respond", "Hello, you."),
        ("think", "Look."),
    ]
    assert "n.ipynb: ok" in done.stderr
