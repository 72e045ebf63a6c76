"""`jupyter agent-nb convert`: files, pipes, detection, the report of losses, exit codes, memory."""

import io
import json
import os
import subprocess
import sys

import pytest
from helpers.paths import CHECKOUT
from helpers.streams import ndjson

from agent_nb.cli.main import main
from agent_nb.codecs.convert import decode
from agent_nb.events import End, Extension, Respond, RunStart, Think, User
from agent_nb.events.log import EventLog

COMMAND = [sys.executable, "-m", "agent_nb", "convert"]
LOOM = [
    {"session_id": "s", "event_id": 1, "type": "run_start", "message": "hi", "agent": "a"},
    {"session_id": "s", "event_id": 2, "type": "message_chunk", "content": "Hel", "id": "think"},
    {"session_id": "s", "event_id": 3, "type": "message_chunk", "content": "lo.", "id": "think"},
    {"session_id": "s", "event_id": 4, "reply": "Hello."},
]


@pytest.fixture
def loom(tmp_path):
    """Return a file of Loom frames."""
    path = tmp_path / "run.ndjson"
    path.write_text(ndjson(*LOOM))
    return path


@pytest.fixture
def canonical(tmp_path):
    """Return a file of canonical events that no other format can carry completely."""
    log = EventLog("r1")
    events = (
        RunStart(),
        User(content="q"),
        Think(content="t"),
        Extension(namespace="x", name="y"),
        Respond(content="a", turn=1),
        End(),
    )
    for event in events:
        log.append(event)
    path = tmp_path / "run.canonical.ndjson"
    path.write_text(log.to_ndjson())
    return path


@pytest.mark.parametrize("redirected", ["", "<", ">"])
def test_a_file_is_not_converted_into_itself(loom, redirected):
    before = loom.read_bytes()
    source = [] if redirected == "<" else [str(loom)]
    target = [] if redirected == ">" else ["-o", str(loom)]
    with loom.open("rb") as read, loom.open("ab") as written:
        streams = {"<": {"stdin": read}, ">": {"stdout": written}}.get(redirected, {})
        done = subprocess.run(
            [*COMMAND, *source, "--to", "cogency", *target],
            check=False,
            stderr=subprocess.PIPE,
            **streams,
        )
    assert done.returncode == 2
    assert f"{loom} would be written over while it is read." in done.stderr.decode()
    assert loom.read_bytes() == before


def test_a_file_into_a_file(loom, tmp_path):
    out = tmp_path / "out.ndjson"
    assert main(["convert", "--from", "loom", "--to", "cogency", str(loom), "-o", str(out)]) == 0
    said = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(o["type"], o.get("content")) for o in said] == [
        ("user", "hi"),
        ("respond", "Hello."),
        ("end", None),
    ]


def test_without_from_the_first_lines_decide_the_format(loom, capsys):
    assert main(["convert", "--to", "canonical", str(loom)]) == 0
    said = capsys.readouterr()
    assert [json.loads(line)["type"] for line in said.out.splitlines()] == [
        "run_start",
        "user",
        "respond",
        "end",
    ]
    assert "loom -> canonical: " in said.err


def test_from_stdin_to_stdout(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ndjson(*LOOM).encode())))
    assert main(["convert", "--from", "loom", "--to", "agent-event"]) == 0
    said = capsys.readouterr().out
    assert 'data: {"type":"final"}\n\n' in said


def test_losses_are_counted_on_stderr(canonical, capsys):
    assert main(["convert", "--to", "cogency", str(canonical)]) == 0
    said = capsys.readouterr()
    assert "1  extension: " in said.err
    assert "extension" not in said.out


def test_strict_fails_on_a_loss(canonical, capsys):
    assert main(["convert", "--to", "cogency", "--strict", str(canonical)]) == 1
    assert "Leave strict mode" in capsys.readouterr().err


def test_strict_passes_when_nothing_is_lost(loom):
    assert main(["convert", "--to", "canonical", "--strict", str(loom)]) == 0


@pytest.mark.parametrize("framing", ["ndjson", "sse"])
def test_the_framing_can_be_chosen(loom, framing, capsys):
    assert main(["convert", "--to", "canonical", "--framing", framing, str(loom)]) == 0
    assert capsys.readouterr().out.startswith("{" if framing == "ndjson" else "id: ")


def test_a_form_of_a_format(loom, capsys):
    assert main(["convert", "--to", "loom:export", str(loom)]) == 0
    assert '{"RunStart":' in capsys.readouterr().out.splitlines()[0].replace(" ", "")


WRONG = [
    ["--to", "canonical", "there-is-none.ndjson"],
    ["--to", "morse"],
    ["--from", "morse", "--to", "canonical"],
    ["--to", "loom:none"],
]


@pytest.mark.parametrize("arguments", WRONG)
def test_a_wrong_command_is_exit_code_2(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ndjson(*LOOM).encode())))
    assert main(["convert", *arguments]) == 2
    assert capsys.readouterr().err.startswith("jupyter agent-nb: ")


def test_a_format_that_is_not_clear_is_asked_for(tmp_path, capsys):
    path = tmp_path / "x"
    path.write_text('{"nothing": "known"}\n')
    assert main(["convert", "--to", "loom", str(path)]) == 2
    assert "Name it: " in capsys.readouterr().err


def test_a_file_is_not_written_over_while_it_is_read(loom, capsys):
    before = loom.read_text()
    assert main(["convert", "--to", "canonical", str(loom), "-o", str(loom)]) == 2
    assert loom.read_text() == before


def test_to_is_required(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["convert"])
    assert stop.value.code == 2


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(CHECKOUT)}


@pytest.mark.slow
def test_a_pipe_is_translated_while_it_is_open():
    with subprocess.Popen(
        [*COMMAND, "--from", "loom", "--to", "canonical"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
    ) as process:
        process.stdin.write(ndjson(*LOOM[:1]).encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["type"] == "run_start"
        process.stdin.close()
        assert process.stdout.read()
    assert process.returncode == 0


@pytest.mark.slow
def test_a_reader_that_goes_away_is_not_an_error(tmp_path):
    big = tmp_path / "big.ndjson"
    big.write_text(
        ndjson(*LOOM[:1])
        + ndjson(*({"session_id": "s", "type": "custom", "value": i} for i in range(20_000)))
    )
    with subprocess.Popen(
        [*COMMAND, "--from", "loom", "--to", "canonical", str(big)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (0, b"")


MEASURE = """
import resource, sys
from agent_nb.cli.main import main
main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def peak(tmp_path, count):
    """Return the peak memory (KB) of converting a run with `count` answers."""
    path = tmp_path / f"{count}.ndjson"
    path.write_text(
        ndjson(*LOOM[:1])
        + ndjson(*({"session_id": "s", "type": "custom", "value": "x" * 200} for _ in range(count)))
    )
    arguments = [
        "convert",
        "--from",
        "loom",
        "--to",
        "canonical",
        str(path),
        "-o",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        check=True,
        text=True,
    )
    return int(done.stderr.split()[-1])


@pytest.mark.long
@pytest.mark.slow
def test_memory_does_not_grow_with_the_stream(tmp_path):
    assert peak(tmp_path, 40_000) - peak(tmp_path, 1_000) < 8_000


def test_what_was_converted_can_be_read_again(loom, tmp_path):
    for name in ("looopy", "agent-event", "cogency", "loom"):
        out = tmp_path / name
        assert main(["convert", "--to", name, str(loom), "-o", str(out)]) == 0
        assert [e.content for e in decode(out, name) if e.type == "respond"] == ["Hello."]
