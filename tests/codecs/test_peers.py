"""What the codecs write, judged by code of others: AG-UI's pydantic models, the AI
SDK's own reader.

The peers are fetched into a folder of the test's own. What is missing is a skip with its reason;
with CI=true it is a failure.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
from helpers.lacking import lacking

pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.timeout(300)]

JUDGE = """
import sys
from pydantic import TypeAdapter
from ag_ui.core import Event
judge = TypeAdapter(Event)
for line in sys.stdin:
    found = judge.validate_json(line)
    extra = found.model_extra
    print(type(found).__name__, sorted(extra or ()))
"""
READ = """
import { readUIMessageStream, parseJsonEventStream, uiMessageChunkSchema } from 'ai'
const bytes = new ReadableStream({ async start(c) { for await (const piece of process.stdin) c.enqueue(piece); c.close() } })
const faults = []
const stream = parseJsonEventStream({ stream: bytes, schema: uiMessageChunkSchema }).pipeThrough(new TransformStream({
  transform(found, c) { found.success ? c.enqueue(found.value) : faults.push(String(found.error)) },
}))
let message
for await (const state of readUIMessageStream({ stream, onError: fault => faults.push(String(fault)) })) message = state
console.log(JSON.stringify({ message, faults }))
"""


def fetched(command, folder, what):
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=200, check=False
    )
    if done.returncode:
        lacking(f"{what} ({done.stderr.strip()[-300:]}) is not here")
    return folder


@pytest.fixture(scope="module")
def ag_ui(tmp_path_factory):
    """A folder with the package ag-ui-protocol."""
    folder = tmp_path_factory.mktemp("ag-ui")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--target",
        str(folder),
        "ag-ui-protocol>=1.0,<2",
    ]
    return fetched(command, folder, "ag-ui-protocol from the package index")


@pytest.fixture(scope="module")
def ai_sdk(tmp_path_factory):
    """A folder with the npm package `ai` and a script that reads a stream with it."""
    if not (shutil.which("npm") and shutil.which("node")):
        lacking("npm is not here")
    folder = tmp_path_factory.mktemp("ai")
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    (folder / "read.mjs").write_text(READ)
    command = [
        shutil.which("npm"),
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "ai@6",
        "zod@4",
    ]
    return fetched(command, folder, "the npm package ai")


def validated(folder, lines):
    """Return what AG-UI's models make of each line."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    text = "".join(json.dumps(line) + "\n" for line in lines)
    command = [sys.executable, "-c", JUDGE]
    done = subprocess.run(
        command,
        input=text,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def read_by_sdk(folder, text):
    """Return the message that the AI SDK's reader makes of a stream, which must please it."""
    command = [shutil.which("node"), "read.mjs"]
    done = subprocess.run(
        command, cwd=folder, input=text, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["faults"] == []
    return found["message"]


def test_every_event_of_our_run_is_one_of_ag_uis(ag_ui, tool, our_run):
    lines = validated(ag_ui, tool("ag-ui").lines(our_run))
    kinds = [line.split()[0] for line in lines]
    assert (kinds[0], kinds[-1]) == ("RunStartedEvent", "RunFinishedEvent")
    assert {
        "TextMessageContentEvent",
        "ToolCallArgsEvent",
        "ToolCallResultEvent",
        "ReasoningMessageContentEvent",
    } <= set(kinds)


@pytest.mark.few(2)
def test_every_event_of_every_corpus_is_one_of_ag_uis(ag_ui, tool, corpus, stem):
    lines = tool("ag-ui").lines(tool("loom" if stem == "loom-export" else stem).read(corpus(stem)))
    # of the corpus itself, and kept
    assert validated(ag_ui, [line for line in lines if line["type"] != "NOT_YET_INVENTED"])


def test_our_run_is_a_message_to_the_ai_sdk(ai_sdk, tool, our_run):
    message = read_by_sdk(ai_sdk, "".join(tool("ui-message").write(our_run)))
    parts = [
        part
        for part in message["parts"]
        if part["type"] not in ("step-start",) and not part["type"].startswith("data-")
    ]
    assert [part["type"] for part in parts] == ["reasoning", "tool-sh", "tool-sh", "text"]
    assert [part.get("state") for part in parts] == [
        "done",
        "output-available",
        "output-error",
        "done",
    ]
    assert parts[-1]["text"] == "There is a."
    assert parts[1]["input"] == {"c": "ls"}
