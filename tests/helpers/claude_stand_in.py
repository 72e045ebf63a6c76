"""Sends requests of the form of Claude Code, runs the commands that come back, prints the answer.

Why: what differs in the requests of the program by session, device, day, folder and commit is here
without the program. `python claude_stand_in.py -p PROMPT`; its version, its day and its device come
from variables.
"""

import datetime
import json
import os
import platform
import subprocess
import sys
import urllib.error
import urllib.request
import uuid

FILLER = " ".join(f"A sentence of the program with the number {n}." for n in range(1_000))
TOOL = " ".join(f"A sentence of the tool with the number {n}." for n in range(100))
VERSION = os.environ.get("STAND_IN_VERSION", "2.1.332")
DEVICE = os.environ.get("STAND_IN_DEVICE", "d" * 64)
ACCOUNT = os.environ.get("STAND_IN_ACCOUNT", "")
DAY = datetime.date.fromisoformat(os.environ.get("STAND_IN_DAY", "2026-11-28"))
FOLDER = os.getcwd()
CONFIG = os.environ.get("CLAUDE_CONFIG_DIR", os.path.expanduser("~/.claude"))


def run(command):
    """Return what a shell command prints."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return done.stdout


def remind(text):
    return {"type": "text", "text": f"<system-reminder>\n{text}\n</system-reminder>"}


def body(messages, session):
    user = {"device_id": DEVICE, "account_uuid": ACCOUNT, "session_id": session}
    memory = f"{CONFIG}/projects/{FOLDER.replace('/', '-')}/memory/"
    system = [
        f"x-anthropic-billing-header: cc_version={VERSION}.8c8; cc_entrypoint=sdk-cli;",
        f"You have a persistent file-based memory at `{memory}`. {FILLER}",
    ]
    return {
        "model": "claude-opus-5-5",
        "messages": messages,
        "system": [{"type": "text", "text": text} for text in system],
        "tools": [
            {
                "name": "Bash",
                "description": TOOL,
                "input_schema": {"type": "object"},
            },
            {
                "name": "WebSearch",
                "description": f"- The current month is {DAY:%B %Y} - use it.",
                "input_schema": {"type": "object"},
            },
        ],
        "metadata": {"user_id": json.dumps(user, separators=(",", ":"))},
        "max_tokens": 128_000,
        "stream": True,
    }


def begin(prompt):
    """Return the first messages of a session."""
    status = run("git status --short")
    surroundings = [
        "# Environment",
        f" - Primary working directory: {FOLDER}",
        " - Is a git repository: true",
        f" - Platform: {sys.platform}",
        f" - Shell: {os.environ.get('SHELL', 'unknown')}",
        f" - OS Version: {platform.platform()} of {DEVICE[:3]}",
        f"Notes are in {FOLDER}/notes.",
    ]
    git = "This is the git status at the start of the conversation. It is not updated."
    parts = [
        remind(
            f"# gitStatus\n{git}\n\nStatus:\n{status}\n{DAY} commit\n\nClaude Code attached this."
        ),
        remind(f"# currentDate\nToday's date is {DAY}."),
        {"type": "text", "text": prompt},
    ]
    return [
        {"role": "user", "content": parts},
        {"role": "system", "content": "\n".join(surroundings)},
    ]


def ask(body):
    """Return the text and the call of a streamed answer."""
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages?beta=true",
        json.dumps(body, separators=(",", ":")).encode(),
        {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]},
    )
    text, call = "", None
    with urllib.request.urlopen(request) as answer:
        for line in answer.read().decode().splitlines():
            event = json.loads(line[6:]) if line.startswith("data: ") else {}
            if event.get("content_block", {}).get("type") == "tool_use":
                call = {**event["content_block"], "input": ""}
            delta = event.get("delta", {})
            text += delta.get("text", "")
            if call:
                call["input"] += delta.get("partial_json", "")
    return text, call


def main(prompt):
    session, messages = str(uuid.uuid4()), begin(prompt)
    try:
        text, call = ask(body(messages, session))
        while call:
            call["input"] = json.loads(call["input"])
            output = run(call["input"]["command"])
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": output}
            messages += [
                {"role": "assistant", "content": [{"type": "text", "text": text}, call]},
                {"role": "user", "content": [result]},
            ]
            text, call = ask(body(messages, session))
    except urllib.error.HTTPError as fault:
        sys.exit(f"API Error: {fault.code} {fault.read().decode()}")
    print(text)


main(sys.argv[-1])
