"""The command line: files, output and exit codes."""

import io
import json
import re
import shutil
import sys

import pytest

from agent_nb.cli.main import COMMANDS, main, make_parser
from agent_nb.events import End, Respond, RunStart, User
from agent_nb.events.log import EventLog
from agent_nb.record.record import RECORD_MIME, Provenance, run_record


def record(answer="Hello."):
    log = EventLog("run1")
    for event in (
        RunStart(model="scripted/x"),
        User(content="hi"),
        Respond(content=answer, turn=1),
        End(),
    ):
        log.append(event)
    return run_record(log, Provenance(cell="a"))


@pytest.fixture
def notebook(tmp_path):
    """Return a notebook file with one agent cell whose record is still in its output."""
    shown = {
        "data": {"text/plain": "Hello.", RECORD_MIME: record()},
        "metadata": {"agent_nb": {"run": "run1"}},
    }
    output = {"output_type": "display_data", **shown}
    cell = {
        "cell_type": "code",
        "id": "a",
        "execution_count": 1,
        "metadata": {},
        "source": "%%agent\nhi",
        "outputs": [output],
    }
    nb = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps(nb, indent=1))
    return path


def read(path):
    return json.loads(path.read_text())


WRONG = [
    [],
    ["frobnicate"],
    ["run"],
    ["run", "x.ipynb", "--timeout", "-1"],
    ["run", "--inplace", "-o", "x", "y"],
    ["run", "--live", "--rerun", "replay", "x"],
]


@pytest.mark.parametrize("command", WRONG)
def test_a_wrong_command_is_exit_code_2(command, capsys):
    with pytest.raises(SystemExit) as end:
        main(command)
    assert end.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_a_timeout_that_is_not_a_number_is_named(capsys):
    with pytest.raises(SystemExit):
        main(["run", "x.ipynb", "--timeout", "soon"])
    assert "argument --timeout: 'soon' is not a number\n" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does_and_what_it_takes(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    told = capsys.readouterr().out
    function, _ = COMMANDS[command]
    assert function.__doc__[1:20] in " ".join(told.split())
    assert all(
        a.help for a in make_parser()._subparsers._group_actions[0].choices[command]._actions
    )


def test_the_help_shows_examples_and_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "exit codes: 0 ok" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["run", "pack", "strip", "events"])
def test_a_missing_file_is_exit_code_2_and_named(command, tmp_path, capsys):
    assert main([command, str(tmp_path / "missing.ipynb")]) == 2
    assert "missing.ipynb" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "pack", "strip", "events"])
def test_a_file_that_is_not_a_notebook_is_exit_code_2(command, tmp_path, capsys):
    path = tmp_path / "x.ipynb"
    path.write_text("{}")
    assert main([command, str(path)]) == 2
    assert "notebook" in capsys.readouterr().err


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(command in text for command in ("run", "pack", "strip", "events"))


def test_pack_moves_records_once(notebook, capsys):
    assert main(["pack", str(notebook)]) == 0
    assert list(read(notebook)["metadata"]["agent_nb"]["runs"]) == ["a"]
    assert main(["pack", str(notebook)]) == 0
    assert "packed" in capsys.readouterr().out.splitlines()[0]


def test_strip_removes_records(notebook, capsys):
    main(["pack", str(notebook)])
    assert main(["strip", str(notebook)]) == 0
    assert "agent_nb" not in notebook.read_text()
    assert "agent-nb" not in notebook.read_text()


def test_strip_is_a_git_filter(notebook, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(notebook.read_text()))
    assert main(["strip"]) == 0
    nb = json.loads(capsys.readouterr().out)
    assert nb["cells"][0]["outputs"][0]["data"] == {"text/plain": "Hello."}


def test_strip_passes_a_file_without_records_through_unchanged(capsys, monkeypatch):
    text = '{"cells": [],   "metadata": {}}'
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert main(["strip"]) == 0
    assert capsys.readouterr().out == text


def test_strip_as_a_filter_keeps_line_ends(monkeypatch, capfdbinary):
    text = b'{"cells": [],\r\n "metadata": {}}\r\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["strip"]) == 0
    assert capfdbinary.readouterr().out == text


def test_events_as_json_lines(notebook, capsys):
    assert main(["events", str(notebook), "--json"]) == 0
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [e["type"] for e in lines] == ["run_start", "user", "respond", "end"]
    assert lines[2]["content"] == "Hello."


@pytest.mark.parametrize("command", [["events"], ["events", "--json"], ["export", "--to", "html"]])
def test_no_report_is_written_over_a_notebook_that_it_reads(command, notebook, tmp_path, capsys):
    before = notebook.read_bytes()
    link = tmp_path / "link.ipynb"
    link.symlink_to(notebook)
    for output in (notebook, link):
        assert main([*command, str(notebook), "-o", str(output)]) == 2
        assert f"{output} is a notebook to be read." in capsys.readouterr().err
    assert notebook.read_bytes() == before


@pytest.mark.kernel
def test_no_junit_report_is_written_over_a_notebook(tmp_path, capsys):
    path = tmp_path / "n.ipynb"
    text = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    path.write_text(text)
    assert main(["test", str(path), "--junit", str(path)]) == 2
    assert f"{path} is a notebook to be read." in capsys.readouterr().err
    assert path.read_text() == text


def test_events_as_a_table(notebook, capsys):
    assert main(["events", str(notebook)]) == 0
    out = capsys.readouterr().out
    assert "run run1" in out
    # columns that are empty in every row are left out
    assert out.splitlines()[1].split()[:4] == ["turn", "type", "text", "seconds"]
    assert "respond" in out


def test_a_table_of_runs_has_times_to_the_second_and_whole_counts(tmp_path, capsys):
    counts = {"input": 10, "output": 5}
    events = [
        {"type": "user", "content": "go"},
        {"type": "metric", "step": counts, "total": counts},
        {"type": "end", "status": "ok"},
    ]
    path = tmp_path / "run.ndjson"
    path.write_text(
        "".join(
            json.dumps({"run": "r", "seq": n, "ts": 1.5e9 + n / 8, **e}) + "\n"
            for n, e in enumerate(events)
        )
    )
    assert main(["events", str(path), "--columns", "runs"]) == 0
    row = capsys.readouterr().out.splitlines()[1]
    assert re.search(r"2017-07-14 02:40:00\+00:00 +0\.250 .* 10 +5", row)


def test_an_event_is_one_table_line_without_terminal_codes(tmp_path, capsys):
    events = [{"type": "user", "content": "a\nb\x1b[31m red\x07"}, {"type": "end", "status": "ok"}]
    path = tmp_path / "run.ndjson"
    path.write_text(
        "".join(
            json.dumps({"run": "r", "seq": n, "ts": 1.0, **e}) + "\n"
            for n, e in enumerate(events, 1)
        )
    )
    assert main(["events", str(path)]) == 0
    out = capsys.readouterr().out
    assert not {"\x1b", "\x07"} & set(out)
    assert [line.split()[1:] for line in out.splitlines() if " user " in line] == [
        ["user", "a", "b", "red⟨U+0007⟩", "0.000", "1"]
    ]


def test_notebooks_of_one_name_cannot_go_into_one_folder(notebook, tmp_path, capsys):
    other = tmp_path / "other" / notebook.name
    other.parent.mkdir()
    shutil.copy(notebook, other)
    into = tmp_path / "into"
    into.mkdir()
    assert main(["run", str(notebook), str(other), "-o", str(into)]) == 2
    assert not list(into.iterdir())


def test_several_notebooks_cannot_go_into_one_file(notebook, tmp_path, capsys):
    assert main(["run", str(notebook), str(notebook), "-o", str(tmp_path / "one.ipynb")]) == 2
    assert main(["run", str(notebook), "-o", str(tmp_path / "no" / "where.ipynb")]) == 2
