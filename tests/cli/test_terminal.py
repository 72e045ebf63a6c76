"""No control sequence of a stranger's file reaches a terminal or a written text."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb import events as e
from agent_nb.cli import terminal
from agent_nb.cli.main import main
from agent_nb.events.log import EventLog
from agent_nb.record.record import RECORD_MIME, Provenance, run_record
from agent_nb.wire.hidden_characters import HIDDEN, escape_hidden

EVIL = "\x1b[2K\r\x1b]0;all signed\x07\x9b1A\x85\x9d\u202everdict\u2066\u200fok\x7f\x08"
LINE = f"x{EVIL}\nn.ipynb: cell 1, run 2: signed by you"
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def record(run, answer):
    log = EventLog(run)
    for event in (
        e.RunStart(model=EVIL, agent=EVIL, tools=(EVIL,), settings={EVIL: EVIL}),
        e.User(content=EVIL),
        e.Think(content=EVIL, turn=1),
        e.Call(call_id=EVIL, name=EVIL, args={EVIL: EVIL}, turn=1),
        e.Started(call_id=EVIL, name=EVIL, turn=1),
        e.Progress(call_id=EVIL, text=EVIL, message=EVIL, turn=1),
        e.Result(call_id=EVIL, name=EVIL, content={EVIL: [EVIL]}, turn=1),
        e.Error(code=EVIL, message=EVIL, turn=1),
        e.Extension(namespace=EVIL, name=EVIL, payload=EVIL),
        e.Respond(content=f"{EVIL}{answer}", turn=1),
        e.End(status="ok", finish_reason=EVIL),
    ):
        log.append(event)
    return run_record(log, Provenance(cell=LINE))


@pytest.fixture
def notebook(tmp_path):
    """Return a notebook whose every text is hostile, its name included."""
    outputs = [
        {
            "output_type": "display_data",
            "metadata": {"agent_nb": {"run": made["id"]}},
            "data": {"text/plain": EVIL, RECORD_MIME: made},
        }
        for made in (record(LINE, "one"), record(f"{LINE}2", "two"))
    ]
    cell = {
        "cell_type": "code",
        "id": LINE,
        "execution_count": 1,
        "metadata": {},
        "source": f"%%agent {EVIL}\n{EVIL}",
        "outputs": outputs,
    }
    nb = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = tmp_path / f"n{EVIL}.ipynb".replace("/", "").replace("\r", "")
    path.write_text(json.dumps(nb))
    return path


COMMANDS = {
    "verify": [],
    "diff": [],
    "events": [],
    "events csv": ["--format", "csv"],
    "events --json": ["--json"],
    "events json": ["--format", "json"],
    "events all": ["--columns", "all"],
    "export markdown": [],
    "export text": ["--to", "text"],
    "export html": ["--to", "html"],
    "export canonical": ["--to", "canonical"],
    "export loom": ["--to", "loom"],
    "export ag-ui": ["--to", "ag-ui"],
    "git-text": [],
    "git-setup": [],
    "pack": [],
    "sign": ["--yes"],
    "strip": [],
    "test": [],
    "run": ["--kernel", EVIL],
    "mcp": ["allow", EVIL],
    "frobnicate": [],
    "trust": ["remove"],
    "trust-folder": [],
    "serve": ["--port", "70000", "--store", EVIL],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_hidden_is_printed_by(command, notebook, capsys, monkeypatch):
    monkeypatch.chdir(notebook.parent)
    arguments = [] if command in ("mcp", "serve") else [str(notebook)]
    with suppress(SystemExit):
        main([command.partition(" ")[0], *arguments, *COMMANDS[command]])
    printed = capsys.readouterr()
    assert printed.out or printed.err
    assert not DANGEROUS.findall(printed.out)
    assert not DANGEROUS.findall(printed.err)


def test_no_field_of_a_record_makes_a_line_of_verify(notebook, capsys):
    main(["verify", str(notebook)])
    assert not [line for line in capsys.readouterr().out.splitlines() if line.startswith("n.ipynb")]


def test_json_on_stdout_has_the_same_values(notebook, capsys):
    main(["events", "--json", str(notebook)])
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["content"] for event in said if event["type"] == "user"] == [EVIL]


def test_text_in_files_is_escaped_and_tables_stay_tables(notebook, tmp_path):
    page = tmp_path / "page.md"
    assert main(["export", str(notebook), "-o", str(page)]) == 0
    assert not DANGEROUS.findall(page.read_text())
    table = tmp_path / "table.csv"
    assert main(["events", str(notebook), "-o", str(table)]) == 0
    rows = list(csv.reader(io.StringIO(table.read_text())))
    assert len({len(row) for row in rows}) == 1
    assert not DANGEROUS.findall(table.read_text())


def test_a_converted_stream_on_stdout_is_escaped_and_the_same(tmp_path, capsys):
    log = EventLog("run1")
    for event in (e.RunStart(), e.User(content=EVIL), e.Respond(content=EVIL, turn=1), e.End()):
        log.append(event)
    file = tmp_path / "log.ndjson"
    file.write_text(log.to_ndjson())
    assert main(["convert", "--to", "canonical", str(file)]) == 0
    said = capsys.readouterr().out
    assert not DANGEROUS.findall(said)
    assert EVIL in [json.loads(line).get("content") for line in said.splitlines()]


def test_progress_lines_name_no_control_sequence():
    from agent_nb.runner.progress import Progress

    stream = io.StringIO()
    with Progress(EVIL, stream, lines=True) as progress:
        progress.show_cell(0, 1, f"%%agent {EVIL}\n{EVIL}")
    assert stream.getvalue()
    assert not DANGEROUS.findall(stream.getvalue())


def test_a_traceback_is_escaped_too():
    code = (
        "from agent_nb.cli import terminal; terminal.prepare_streams();"
        "raise ValueError('\\x1b]0;x\\x07\\x9b')"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert "ValueError: \\x1b]0;x\\x07\\x9b" in ended.stderr.decode()


def test_a_traceback_holds_no_known_key():
    code = "from agent_nb.cli import terminal; terminal.prepare_streams(); raise ValueError('my-own-key-1')"
    environment = {**os.environ, "SERVICE_TOKEN": "my-own-key-1"}
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert b"ValueError" in ended.stderr
    assert b"ValueError: my-own-key-1" not in ended.stderr


def test_a_git_filter_passes_bytes_on_but_not_to_a_terminal(monkeypatch, capsys):
    text = f'{{"cells": 1, "x": {json.dumps(EVIL, ensure_ascii=False)}}}'
    for is_terminal in (False, True):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)  # noqa: B023
        assert main(["strip"]) == 0
        said = capsys.readouterr().out
        assert (said == text) is not is_terminal
        assert json.loads(said) == json.loads(text)
        assert not (is_terminal and DANGEROUS.findall(said))


@given(st.recursive(st.text() | st.none(), lambda inner: st.dictionaries(st.text(), inner)))
def test_escaped_json_is_the_same_value(value):
    text = json.dumps(value, ensure_ascii=False)
    assert json.loads(escape_hidden(text, "json")) == value
    assert not HIDDEN.search(escape_hidden(text, "json"))


@given(st.text(), st.text())
def test_escaping_text_in_pieces_hides_nothing(one, other):
    whole = escape_hidden(one) + escape_hidden(other)
    assert not HIDDEN.search(whole)
    assert escape_hidden(whole) == whole


def test_letters_of_other_scripts_stay():
    text = "naïve שלום سلام 👩‍💻 日本\n\tü"
    assert escape_hidden(text) == text
    assert terminal.JsonOutput().write("") == 0
