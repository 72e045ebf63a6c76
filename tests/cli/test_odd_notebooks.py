"""Files that are JSON but no sound notebook: half characters, null metadata, ids that are no text.

No command crashes on them, and what is written is JSON again.
"""

import copy
import io
import json

import pytest

from agent_nb.cli.main import main
from agent_nb.events import End, Respond, RunStart, User
from agent_nb.events.log import EventLog
from agent_nb.record.record import METADATA_KEY, RECORD_MIME, Provenance, run_record

HALF = "\ud800"
LOG = EventLog("run1")
for part in (RunStart(model="x"), User(content="hi"), Respond(content="Hello.", turn=1), End()):
    LOG.append(part)
RECORD = run_record(LOG, Provenance(cell="a"))


def notebook():
    """Return a notebook with its cell, the cell's output and the record in it."""
    record = copy.deepcopy(RECORD)
    output = {
        "output_type": "display_data",
        "data": {"text/plain": "Hello.", RECORD_MIME: record},
        "metadata": {METADATA_KEY: {"run": "run1"}},
    }
    cell = {"cell_type": "code", "id": "a", "execution_count": 1, "metadata": {}}
    cell |= {"source": "%%agent\nhi", "outputs": [output]}
    return {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def lifted(**fields):
    """Return a notebook with its record in the metadata; `fields` change it."""
    nb = notebook()
    nb["cells"][0]["outputs"] = []
    nb["metadata"][METADATA_KEY] = {"version": 1, "runs": {"a": [{**RECORD, **fields}]}}
    return nb


def changed(**fields):
    """Return a notebook whose cell is changed."""
    nb = notebook()
    nb["cells"][0] |= fields
    return nb


def shown(**fields):
    """Return a notebook whose output is changed."""
    nb = notebook()
    nb["cells"][0]["outputs"][0] |= fields
    return nb


def ours(**fields):
    """Return a notebook whose metadata of ours is changed."""
    nb = lifted()
    nb["metadata"][METADATA_KEY] |= fields
    return nb


def named(run):
    """Return a notebook whose run has another id."""
    nb = notebook()
    (output,) = nb["cells"][0]["outputs"]
    output["data"][RECORD_MIME]["id"] = output["metadata"][METADATA_KEY]["run"] = run
    return nb


def said(text):
    """Return a notebook with another answer, in the record and in the output."""
    nb = notebook()
    data = nb["cells"][0]["outputs"][0]["data"]
    data["text/plain"] = data[RECORD_MIME]["events"][2]["content"] = text
    return nb


ODD_EVENTS = [
    None,
    5,
    {"type": 7},
    {"type": HALF},
    {"type": "call", "args": [1], "call_id": {"a": 1}},
    {"type": "user", "content": [1]},
]
ODD = {
    "half a character in the source": changed(source=f"%%agent\n{HALF}"),
    "half a character in the answer": said(HALF),
    "half a character as id of the run": named(HALF),
    "half a character as id of the cell": changed(id=HALF),
    "half a character as a key": {**notebook(), "metadata": {"x": {HALF: HALF}}},
    "half a character as hash": lifted(hash=HALF),
    "half characters in each field": lifted(
        id=HALF, conversation=HALF, execution=HALF, status=HALF, source=HALF, cell=HALF
    ),
    "half characters as names": ours(
        runs={HALF: [RECORD]}, payloads={HALF: HALF}, signatures={HALF: HALF}, forgotten=[HALF, 1]
    ),
    "metadata: null": {**notebook(), "metadata": None},
    "metadata: a list": {**notebook(), "metadata": []},
    "metadata: a text": {**notebook(), "metadata": "x"},
    "metadata of a cell: null": changed(metadata=None),
    "metadata of an output: null": shown(metadata=None),
    "data of an output: null": shown(data=None),
    "an id that is a number": changed(id=5),
    "an id that is a list": changed(id=[1]),
    "an id that is an object": changed(id={"a": 1}),
    "an id that is null": changed(id=None),
    "an id of a run that is a number": named(7),
    "a cell of a record that is a list": lifted(cell=[1], execution=[1]),
    "no outputs": changed(outputs=None),
    "no source": changed(source=None),
    "lines that are no text": changed(source=[1, None, HALF]),
    "cells that are none": {**notebook(), "cells": [None, 5, "x", [], {}, *notebook()["cells"]]},
    "events that are none": lifted(events=ODD_EVENTS),
    "runs: null": ours(runs=None),
    "gone: odd": ours(gone={"a": [1], "z": "x"}),
    "a start that is a text": lifted(started="x", ordinal="y"),
}
COMMANDS = [
    ["pack"],
    ["sign", "--yes"],
    ["verify"],
    ["events"],
    ["events", "--columns", "all", "--format", "json"],
    ["git-text"],
    ["strip"],
    *(["export", "--to", codec] for codec in ("loom", "ag-ui", "looopy", "cogency", "markdown")),
]


@pytest.fixture
def key(tmp_path):
    """Return a private key file."""
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    from cryptography.hazmat.primitives import serialization as s

    private = ed25519.Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
    how = (s.Encoding.PEM, s.PrivateFormat.OpenSSH, s.NoEncryption())
    file = tmp_path / "id"
    file.write_bytes(private.private_bytes(*how))
    return str(file)


@pytest.mark.few(6)
@pytest.mark.parametrize("odd", ODD)
def test_no_command_crashes_on(odd, tmp_path, key, monkeypatch):
    path = tmp_path / "n.ipynb"
    for command in COMMANDS:
        path.write_text(json.dumps(ODD[odd]))
        stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        monkeypatch.setattr("sys.stdout", stdout)
        options = ["--key", key] if command[0] == "sign" else []
        assert main([command[0], str(path), *command[1:], *options]) in (0, 1, 2)
        stdout.flush()
        json.loads(path.read_bytes())


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[0] != "sign"])
def test_a_notebook_nested_too_deeply_is_an_error_in_words(command, tmp_path, capsys):
    path = tmp_path / "n.ipynb"
    path.write_text('{"cells": [], "metadata": {"x": ' + "[" * 100_000 + "]" * 100_000 + "}}")
    main([command[0], str(path), *command[1:]])
    assert "its JSON is nested too deeply" in capsys.readouterr().err


UNSOUND = {**notebook(), "metadata": None}
HALF_CELL = {**changed(source=f"'{HALF}'"), "metadata": {}}
HALF_METADATA = {**changed(source="1"), "metadata": {"x": HALF}}


@pytest.mark.slow
def test_run_says_what_it_cannot_execute_and_executes_the_others(tmp_path, capsys):
    paths = [tmp_path / f"{name}.ipynb" for name in ("unsound", "cell", "metadata")]
    for path, nb in zip(paths, (UNSOUND, HALF_CELL, HALF_METADATA), strict=True):
        path.write_text(json.dumps(nb))
    assert main(["run", str(paths[0])]) == 2
    assert "cannot be read as a notebook: ValidationError" in capsys.readouterr().err
    assert main(["run", *map(str, paths)]) == 1
    out, err = capsys.readouterr()
    assert "UnicodeEncodeError" in err
    assert out.endswith("metadata.run.ipynb: ok\n")
    assert json.loads((tmp_path / "metadata.run.ipynb").read_bytes())["metadata"]["x"] == HALF


def test_a_filtered_notebook_nested_too_deeply_is_an_error(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("[" * 100_000))
    assert main(["strip"]) == 2
    assert "stdin is not a notebook" in capsys.readouterr().err


def test_a_filtered_notebook_is_utf_8_in_every_locale(monkeypatch):
    text = json.dumps({"cells": [{"source": "\u00c1"}], "metadata": {}}, ensure_ascii=False)
    stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="cp1252")
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setattr("sys.stdout", stdout)
    assert main(["strip"]) == 0
    stdout.flush()
    assert stdout.buffer.getvalue() == text.encode()


def test_a_filtered_notebook_may_begin_with_the_mark_of_windows(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeff" + json.dumps(lifted())))
    assert main(["strip"]) == 0
    assert METADATA_KEY not in json.loads(capsys.readouterr().out)["metadata"]


def test_git_gets_a_notebook_as_utf_8_in_every_locale(monkeypatch, tmp_path):
    path = tmp_path / "n.ipynb"
    cell = {"cell_type": "code", "source": "\u00c1 \u2026", "metadata": {}, "outputs": []}
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}))
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr("sys.stdout", stdout)
    assert main(["git-text", str(path)]) == 0
    stdout.flush()
    assert "\u00c1 \u2026\n" in stdout.buffer.getvalue().decode()


def test_a_filtered_file_that_is_not_utf_8_is_an_error(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))
    assert main(["strip"]) == 2
    assert "stdin is not a notebook" in capsys.readouterr().err


@pytest.mark.few(28)
@pytest.mark.parametrize("side", ["base", "ours", "theirs"])
@pytest.mark.parametrize("odd", ODD)
def test_the_merge_driver_does_not_crash_on(odd, side, tmp_path):
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    for path in paths:
        path.write_text(json.dumps(ODD[odd] if path.name == side else notebook(), indent=1))
    if main(["git-merge", *map(str, paths)]) == 0:
        json.loads(paths[1].read_bytes())


def test_a_merged_notebook_is_laid_out_as_ours(tmp_path):
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    for path in paths:
        text = json.dumps(notebook(), indent=2 if path.name == "ours" else 1)
        path.write_text(text, newline="\r\n" if path.name == "ours" else "\n")
    assert main(["git-merge", *map(str, paths)]) == 0
    text = paths[1].read_bytes()
    assert text.startswith(b'{\r\n  "cells": [\r\n    {')
    assert text.count(b"\n") == text.count(b"\r\n")


def test_merged_half_characters_are_still_there(tmp_path):
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    for path, nb in zip(
        paths, (notebook(), notebook(), changed(source=f"%%agent\n{HALF}")), strict=True
    ):
        path.write_text(json.dumps(nb, indent=1))
    assert main(["git-merge", *map(str, paths)]) == 0
    (cell,) = json.loads(paths[1].read_bytes())["cells"]
    assert HALF in cell["source"]


@pytest.mark.parametrize("is_notebook", [True, False])
def test_a_merge_on_a_full_disk_leaves_our_file_and_says_so(is_notebook, tmp_path, capsys):
    resource = pytest.importorskip("resource")
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    for path in paths:
        source = f"%%agent\n{path.name}"
        text = json.dumps(changed(source=source)) if is_notebook else f"{path.name}\n" * 5_000
        path.write_text(text)
    before = paths[1].read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = 1_000 if is_notebook else len(before)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))  # as a full disk
    try:
        code = main(["git-merge", *map(str, paths)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (code, paths[1].read_bytes()) == (2, before)
    complaint = capsys.readouterr().err
    assert ("ours cannot be written: File too" if is_notebook else "merge-file failed") in complaint


@pytest.mark.parametrize("source", [None, 5, {"a": 1}])
@pytest.mark.parametrize("command", ["run", "test"])
def test_a_source_that_is_no_text_is_named(command, source, tmp_path, capsys):
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps(changed(source=source)))
    assert main([command, str(path)]) != 0
    told = "".join(capsys.readouterr())
    assert f"{path} cannot be read as a notebook: the source of a cell is not text." in told
