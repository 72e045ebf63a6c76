"""A canary key in every place it may come from, and in none where a run can be seen: not in a
request to a provider, not in an event, a record, a journal, an output, a warning or an export.

`PLACES` is the list: each function puts the key of the stage into one place and lets a cell (or a
command) run. The key comes in two forms: the value of an environment variable, of characters that
JSON and HTML write otherwise, and a provider's key that no variable names. What may hold no key is
gathered by `Stage.seen`: whole, as it looks inside JSON (twice) and HTML, and any 12 characters of
it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import threading
import zlib
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Literal

import httpx
import nbformat
import pytest
from helpers.scripts import calling
from IPython.core.displaypub import CapturingDisplayPublisher
from pydantic import Field

import agent_nb
from agent_nb import Agent, Run, Scripted, ToolContext, events, tool
from agent_nb.cli.main import main
from agent_nb.codecs.base import Losses
from agent_nb.events.log import EventLog
from agent_nb.host import plugins
from agent_nb.models import keys
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.notebook.files.export import PAGES, export
from agent_nb.record.record import Provenance, run_record
from agent_nb.server.hub import Hub
from agent_nb.wire.key_forms import list_written_forms
from agent_nb.wire.media import PNG

KEYS = {
    "variable": 'c4nary"\\<&é-Wx9Yz8Vu7Ts6',
    "form": "sk-proj-C4naryWx9Yz8Vu7Ts6Rq5Po4Nm3Lk2Ji1",
}
VARIABLE = "CANARY_TOKEN"
MARK, BLOT = "[redacted", "***"
HEADERS = ("authorization", "x-api-key")  # they must carry the real key of the provider
PLACES = {}


def place(function):
    """Enter a function into the list of places."""
    PLACES[function.__name__] = function
    return function


class Provider(BaseHTTPRequestHandler):
    """A loopback provider: keeps what it is sent, answers with the next of the server's replies:
    (status, headers, body).
    """

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        sent = [
            f"{name}: {value}"
            for name, value in self.headers.items()
            if name.lower() not in HEADERS
        ]
        self.server.asked.append("\n".join([self.path, *sent, "", body]))
        status, headers, reply = (
            self.server.replies.pop(0) if self.server.replies else (200, {}, chat("done"))
        )
        self.send_response(status)
        for name, value in {
            "content-type": "text/event-stream",
            "content-length": str(len(reply)),
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        """Say nothing."""


def sse(*data):
    return "".join(f"data: {json.dumps(d)}\n\n" for d in data).encode()


def chat(*pieces, **more):
    """A chat completion: texts are content, dicts are deltas."""
    deltas = [p if isinstance(p, dict) else {"content": p} for p in pieces]
    return sse(*({"id": "1", "choices": [{"index": 0, "delta": d}], **more} for d in deltas)) + sse(
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    )


def call(name, **args):
    """A chat completion that calls one tool, its arguments in pieces."""
    raw = json.dumps(args)
    whole = {"index": 0, "id": "c1", "function": {"name": name, "arguments": ""}}
    pieces = [
        {"tool_calls": [{"index": 0, "function": {"arguments": raw[n : n + 7]}}]}
        for n in range(0, len(raw), 7)
    ]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return sse(
        *({"choices": [{"index": 0, "delta": d}]} for d in [{"tool_calls": [whole]}, *pieces]), end
    )


class Stage:
    """A shell, a provider and a key, and everything that came of a run."""

    def __init__(self, key, server, shell, cell, capsys, folder, patch):
        self.key, self.server, self.shell, self.folder, self.patch = (
            key,
            server,
            shell,
            folder,
            patch,
        )
        self._cell, self._capsys = cell, capsys
        self.said = []  # whatever else a place has to show

    @property
    def quoted(self):
        """The key as a word of an option line."""
        return f"'{self.key}'"

    def reached(self):
        """Say that the key came where it should, in a place that leaves it out instead of marking
        it.
        """
        self.said.append(f"{MARK}, by leaving it out]")

    def replies(self, *replies):
        self.server.replies[:] = [
            reply if isinstance(reply, tuple) else (200, {}, reply) for reply in replies
        ]

    def cell(self, line="", body="hello", fails=False, **names):
        """Run a cell with the loopback provider; return its Run."""
        model = "" if "-m" in line.split() else "-m openai/canary"
        if not fails:
            return self._cell(f"{model} --view html {line}", body, **names)
        with pytest.raises(AgentCellError) as failure:
            self._cell(f"{model} --view html {line}", body, **names)
        self.said += [str(failure.value), repr(failure.value), *failure.value._render_traceback_()]
        return self.shell.user_ns["_agent"]

    def tool(self, function, line="", **args):
        """Let the model call `function`, then answer."""
        self.replies(call(function.__name__, **args), chat("done"))
        return self.cell(
            f"-t {function.__name__} --approve auto {line}", **{function.__name__: function}
        )

    def seen(self):
        """Yield (surface, text) for everything that a run leaves or sends; the folder is the user's
        own but for exports.
        """
        yield from (("request", text) for text in self.server.asked)
        out, err = self._capsys.readouterr()
        yield from (("stdout", out), ("stderr", err))
        yield from (("said", str(text)) for text in self.said)
        shown = self.shell.display_pub.outputs
        yield from (
            ("output", json.dumps(output, default=str, ensure_ascii=False)) for output in shown
        )
        for path in self.folder.parent.rglob("*"):
            if path.is_file() and (self.folder not in path.parents or path.name.startswith("out.")):
                yield (
                    f"file {path.name}",
                    f"{path.name}\n{path.read_bytes().decode(errors='replace')}",
                )
        run = self.shell.user_ns.get("_agent")
        if isinstance(run, Run):
            yield from seen_of(run)


def seen_of(run):
    yield "log", run.log.to_ndjson()
    yield "deltas", "".join(d.text for d in run.log.deltas())
    yield "record", json.dumps(run_record(run.log), ensure_ascii=False)
    yield (
        "run",
        "\n".join(
            [
                repr(run),
                repr(run.log),
                str(run.messages()),
                str(run.timeline()),
                run.to_frame().to_csv(),
            ]
        ),
    )
    for form in (*PAGES, *plugins.list_plugins("codecs")):
        yield f"export {form}", export([run], form, Losses())
    hub = Hub()
    hub.attach(run.log)
    (channel,) = hub.channels()
    yield (
        "hub",
        repr(channel.info()) + "".join(str(entry) for entry in hub.subscribe(run.id).take()),
    )


def pieces(key):
    """Return the key in all ways in which it could be read, and its pieces."""
    return [*list_written_forms(key), *(key[n : n + 12] for n in range(len(key) - 11))]


# What the user writes.


@place
def the_prompt(stage):
    stage.cell(body=f"use {stage.key} please")


@place
def an_expression_in_the_prompt(stage):
    stage.cell(body="use {{ key }} please", key=stage.key)


@place
def a_table_in_the_prompt(stage):
    import pandas

    stage.cell(
        body="look at {{ frame }}", frame=pandas.DataFrame({"name": ["a"], "key": [stage.key]})
    )


@place
def an_expression_that_fails(stage):
    stage.cell(body="{{ {}[key] }}", key=stage.key, fails=True)


@place
def the_system_text(stage):
    stage.cell(f"--system {stage.quoted}")


@place
def the_system_text_of_the_configuration(stage):
    stage.shell.run_line_magic("config", f"AgentMagics.system = {stage.key!r}")
    stage.cell()


@place
def a_stop_text(stage):
    stage.cell(f"--stop {stage.quoted}")


@place
def extra_body(stage):
    run = stage.cell(
        "--extra " + "'" + json.dumps({"metadata": [{"user": stage.key}]}) + "'", fails=True
    )
    assert "There is a key in extra_body.metadata[0].user" in run.error
    assert not stage.server.asked
    stage.reached()


@place
def a_name_in_extra_body(stage):
    run = stage.cell("--extra " + "'" + json.dumps({"metadata": {stage.key: 1}}) + "'", fails=True)
    assert "There is a key in extra_body.metadata" in run.error
    assert not stage.server.asked
    stage.reached()


@place
def a_key_in_the_place_of_a_model(stage):
    stage.cell(f"-m {stage.quoted}", fails=True)


@place
def a_key_in_the_name_of_a_model(stage):
    run = stage.cell(f"-m 'openai/{stage.key}'", fails=True)
    assert "name of the model" in run.error
    assert not stage.server.asked


@place
def the_name_of_a_conversation(stage):
    stage.cell(f"-c {stage.quoted}")


@place
def an_unknown_option(stage):
    stage.cell(f"'--{stage.key}'", fails=True)


@place
def the_name_of_an_agent_and_of_its_tool(stage):
    child = Agent(
        Scripted(["I am well."]), system=f"You are {stage.key}", name=f"helper {stage.key}"
    )
    stage.replies(call("helper", prompt=f"ask {stage.key}"), chat("done"))
    stage.cell("-t helper", helper=child.as_tool("helper", f"Knows {stage.key}"))
    stage.said.append(child.run_sync("hi").log.to_ndjson())


# What tools declare.


@place
def a_docstring(stage):
    def look():
        return 1

    look.__doc__ = f"Look with {stage.key}.\n\nArgs:\n    at: not {stage.key}"
    stage.tool(look)


@place
def the_description_of_a_parameter(stage):
    def look(at: int = 1):
        return at

    look.__doc__ = f"Look.\n\nArgs:\n    at: as {stage.key} does"
    stage.tool(look, at=2)


@place
def the_default_of_a_parameter(stage):
    def look(key: str = stage.key, at: int = 1):
        return at

    stage.tool(look, at=2)
    schema = json.loads(stage.server.asked[0].split("\n\n", 1)[1])["tools"][0]["function"][
        "parameters"
    ]
    assert "default" not in schema["properties"]["key"]
    assert schema["properties"]["at"]["default"] == 1
    stage.reached()


@place
def the_default_of_a_parameter_in_a_text_dialect(stage):
    def look(key: str = stage.key):
        return 1

    stage.replies(chat(calling("look")), chat("done"))
    stage.cell("-t look -d xml", look=look)
    assert "[redacted" not in "".join(stage.server.asked)  # a model would send the marker back
    stage.reached()


@place
def the_values_of_a_parameter(stage):
    Kind = StrEnum("Kind", {"a": "plain", "b": stage.key})

    def look(
        one: Literal[stage.key, "x"] = "x",
        kind: Kind = Kind.a,
        some: Annotated[str, Field(examples=[stage.key])] = "",
    ):
        return 1

    look.__annotations__ |= {
        "one": Literal[stage.key, "x"],
        "kind": Kind,
        "some": Annotated[str, Field(examples=[stage.key], pattern="^a")],
    }
    stage.tool(look, one="x")
    stage.reached()


# What tools do.


@place
def the_result_of_a_tool(stage):
    def look():
        return f"it is {stage.key}"

    stage.tool(look)


@place
def a_structured_result(stage):
    def look():
        return {
            "signature": stage.key,
            "data": [stage.key],
            stage.key: json.dumps({"inner": json.dumps({"key": stage.key})}),
        }

    stage.tool(look)


@place
def the_error_of_a_tool(stage):
    def look():
        def deeper(key):
            raise RuntimeError(f"no {key} here")

        deeper(stage.key)

    stage.tool(look)


@place
def the_progress_of_a_tool(stage):
    def look(context: ToolContext):
        for char in stage.key:
            context.progress(char)
        context.progress({"stdout_chunk": stage.key, stage.key: 1}, message=stage.key)
        yield 0.5
        yield f"and {stage.key}"

    stage.tool(look)


@place
def what_a_tool_shows(stage):
    @tool(
        render=lambda _: {
            "text/html": f"<b>{stage.key}</b>",
            "text/markdown": stage.key,
            "text/latex": stage.key,
            "text/plain": stage.key,
            "image/svg+xml": f"<svg><text>{stage.key}</text></svg>",
            "application/json": {"key": [stage.key]},
        }
    )
    def look():
        return "seen"

    stage.tool(look)


@place
def html_with_comments_inside_a_key(stage):
    from html import escape

    middle = len(stage.key) // 2
    halves = [escape(stage.key[:middle]), escape(stage.key[middle:])]

    @tool(
        render=lambda _: {
            "text/html": " ".join(
                comment.join(halves) for comment in ("<!-- -->", "<!x>", "</>", "<!-->")
            )
        }
    )
    def look():
        return "seen"

    stage.tool(look)


@place
def the_texts_of_a_picture(stage):
    @tool(render=lambda _: {"image/png": picture(stage.key)})
    def look():
        return picture(stage.key)

    result = stage.tool(look).log.of("result")[0]
    for shown in (result.display["image/png"], result.attachments[0]["data"]):
        stage.said.append(base64.b64decode(shown).decode("latin-1"))
    stage.reached()


@place
def the_texts_of_an_attached_picture(stage):
    run = stage.cell("--attach shot", shot=picture(stage.key))
    sent = json.loads(stage.server.asked[0].split("\n\n", 1)[1])["messages"][-1]["content"][0][
        "image_url"
    ]["url"]
    for data in (sent.partition(",")[2], run.log.of("user")[0].attachments[0]["data"]):
        stage.said.append(base64.b64decode(data).decode("latin-1"))
    stage.reached()


@place
def what_a_tool_prints(stage):
    def look():
        print("it is", stage.key)
        thread = threading.Thread(target=print, args=[stage.key])
        thread.start()
        thread.join()  # later it would print into the next test
        return 1

    stage.tool(look)


@place
def what_code_prints_and_shows(stage):
    code = "print(key)\nfrom IPython.display import HTML, display\ndisplay(HTML(key))\ndisplay({'image/png': shot}, raw=True)\nkey"
    stage.replies(call("python", code=code), chat("done"))
    stage.patch(stage.shell, "kernel", object(), raising=False)  # a terminal shows nothing but text
    run = stage.cell(
        "-t python --approve auto",
        key=stage.key,
        shot=base64.b64encode(picture(stage.key)).decode(),
    )
    assert run.log.of("result")[0].status == "ok"
    shown = [a["data"] for a in run.log.of("result")[0].attachments]
    stage.said += [base64.b64decode(data).decode("latin-1") for data in shown]
    assert shown


@place
def the_traceback_of_code(stage):
    stage.replies(
        call("python", code="def f(key):\n    raise ValueError(key)\nf(key)"), chat("done")
    )
    stage.cell("-t python --approve auto", key=stage.key)


@place
def a_command_and_its_output(stage):
    (stage.folder / "notes.txt").write_text(stage.key, encoding="utf-8")
    stage.replies(call("shell", command="cat notes.txt; ls"), chat("done"))
    stage.cell("-t shell --approve auto")


@place
def a_file_that_is_read(stage):
    (stage.folder / "notes.txt").write_text(f"key={stage.key}\n", encoding="utf-8")
    stage.replies(call("read", file="notes.txt"), chat("done"))
    stage.cell("-t read")


@place
def the_names_of_files(stage):
    (stage.folder / f"{stage.key}.txt").write_text("x", encoding="utf-8")
    stage.replies(call("list"), call("read", file=f"{stage.key}.tx"), chat("done"))
    stage.cell("-t list,read")


@place
def the_question_about_a_call(stage):
    (stage.folder / "notes.txt").write_text(f"old {stage.key}\n", encoding="utf-8")
    stage.replies(call("write", file="notes.txt", content=f"new {stage.key}\n"), chat("done"))
    stage.cell("-t write --approve ask")


# What the model and its provider say.


@place
def an_answer_in_pieces(stage):
    stage.replies(chat(*stage.key, " it is"))
    stage.cell()


@place
def a_thought(stage):
    stage.replies(chat(*({"reasoning_content": char} for char in stage.key), "done"))
    stage.cell()


@place
def a_thought_in_a_tag(stage):
    stage.replies(chat("<think>it is ", *stage.key, "</think>", "done"))
    stage.cell()


@place
def the_arguments_of_a_call(stage):
    def look(at: dict | str):
        return "seen"

    stage.tool(look, at={"signature": stage.key, stage.key: json.dumps({"key": stage.key})})


@place
def the_name_and_the_id_of_a_call(stage):
    tools = [{"index": 0, "id": stage.key, "function": {"name": stage.key, "arguments": "{}"}}]
    stage.replies(chat({"tool_calls": tools}), chat("done"))
    stage.cell("-t list")


@place
def calls_in_a_text_dialect(stage):
    batch = json.dumps([{"name": "list", "args": {"path": stage.key}}])
    stage.replies(chat("<execute>", *batch, "</execute>"), chat(f"<results>{stage.key}</results>"))
    stage.cell("-t list -d xml")


@place
def the_body_of_a_refusal(stage):
    stage.replies(
        (
            400,
            {"content-type": "application/json"},
            json.dumps({"error": {"message": f"bad key {stage.key}"}}).encode(),
        )
    )
    stage.cell(fails=True)


@place
def a_page_instead_of_an_answer(stage):
    stage.replies((200, {"content-type": "text/html"}, f"<html>{stage.key}</html>".encode()))
    stage.cell(fails=True)


@place
def the_headers_of_a_refusal(stage):
    location = f"http://127.0.0.1/{stage.key}".encode().decode("latin-1")
    stage.replies((302, {"location": location, "x-request-id": "1"}, b""))
    stage.cell(fails=True)


@place
def an_error_in_the_stream(stage):
    stage.replies(
        chat("so far") + sse({"error": {"message": f"no quota for {stage.key}", "code": stage.key}})
    )
    stage.cell(fails=True)


@place
def what_else_an_answer_says(stage):
    more = {
        "model": f"gpt {stage.key}",
        "system_fingerprint": stage.key,
        "provider_specific_fields": {"note": [stage.key], stage.key: 1},
    }
    end = sse(
        {
            "choices": [{"index": 0, "delta": {}, "finish_reason": stage.key}],
            "usage": {"prompt_tokens": 1, "note": stage.key},
        }
    )
    stage.replies(chat("done", **more).rpartition(b"data:")[0] + end)
    stage.cell()


@place
def what_goes_back_to_the_provider(stage):
    details = [
        {"type": "reasoning.text", "text": f"about {stage.key}", "signature": "s" * 40, "index": 0}
    ]
    begun = chat({"reasoning_details": details}).rpartition(b"data:")[0]
    stage.replies(begun + call("list"), chat("done"))
    stage.cell("-t list")
    assert "s" * 40 in stage.server.asked[1]  # signatures go back as they came


@place
def the_responses_api(stage):
    item = {
        "type": "reasoning",
        "id": "r1",
        "summary": [{"type": "summary_text", "text": stage.key}],
        "encrypted_content": "gAAA" * 20,
    }
    did = {
        "type": "function_call",
        "id": "f1",
        "call_id": "c1",
        "name": "list",
        "arguments": json.dumps({"path": stage.key}),
    }
    done = [
        {"type": "response.output_item.done", "output_index": n, "item": i}
        for n, i in enumerate((item, did))
    ]
    end = {
        "type": "response.completed",
        "response": {"status": "completed", "model": stage.key, "output": [item, did]},
    }
    stage.replies(
        sse(*done, end),
        sse(
            {"type": "response.output_text.delta", "output_index": 0, "delta": "done"},
            end | {"response": {}},
        ),
    )
    stage.cell("-m openai-responses/canary -t list", body=f"use {stage.key}")
    assert "gAAA" * 20 in stage.server.asked[1]


@place
def the_messages_api(stage):
    blocks = [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": f"of {stage.key}"},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "EqQB" * 20},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t1", "name": "list", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": json.dumps({"path": stage.key})},
        },
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ]
    start = {
        "type": "message_start",
        "message": {"id": "m", "model": stage.key, "usage": {"input_tokens": 1}},
    }
    text = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "done"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ]
    stage.replies(sse(start, *blocks), sse(start, *text))
    stage.cell("-m anthropic/canary -t list", body=f"use {stage.key}")
    assert "EqQB" * 20 in stage.server.asked[1]


# What was there before, and what comes from elsewhere.


@place
def the_conversation_before(stage):
    old = EventLog()
    for event in (
        events.RunStart(),
        events.User(content=f"I am {stage.key}"),
        events.Think(content=stage.key, block="1"),
        events.Call(
            call_id=f"c {stage.key}",
            name="list",
            args={"path": stage.key},
            raw_args=json.dumps({"path": stage.key}),
        ),
        events.Result(
            call_id=f"c {stage.key}", name="list", status="ok", content={"key": stage.key}
        ),
        events.Respond(content=f"Hello {stage.key}", block="2"),
        events.End(status="ok"),
    ):
        old.append(event)  # a log made before the key was known
    agent = Agent("openai/canary", ["list"])
    stage.shell.user_ns["_agent"] = agent.run_sync("and now?", history=[list(old)])


@place
def a_summary_of_the_conversation(stage):
    old = EventLog()
    said = events.User(content=f"I am {stage.key} " * 400)
    for event in (
        events.RunStart(),
        said,
        events.Respond(content="x", block="1"),
        events.End(status="ok"),
    ):
        old.append(event)
    agent = Agent("openai/canary", memory="summary")
    agent.model.context = 1500
    stage.replies(chat(f"They are {stage.key}"), chat("done"))
    stage.shell.user_ns["_agent"] = agent.run_sync("and now?", history=[list(old)])
    assert len(stage.server.asked) == 2


@place
def a_run_of_another_system(stage):
    lines = [
        {"type": "RUN_STARTED", "threadId": stage.key, "runId": f"run-{stage.key}"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": char} for char in stage.key),
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
        {"type": "STATE_SNAPSHOT", "snapshot": {"data": stage.key, "signature": stage.key}},
        {"type": "CUSTOM", "name": stage.key, "value": {"data": stage.key}},
        {"type": "RUN_FINISHED", "threadId": stage.key, "runId": f"run-{stage.key}"},
    ]

    async def watched():
        return await agent_nb.watch(sse(*lines), "ag-ui", show=False)

    stage.shell.user_ns["_agent"] = asyncio.run(watched())


@place
def a_key_of_another_program_in_dotenv(stage):
    (stage.folder / ".env").write_text(f"SHOP_DB_PASSWORD='{stage.key}'\n", encoding="utf-8")
    stage.cell(body=f"use {stage.key}")


@place
def a_key_that_was_typed_in(stage):
    stage.shell.user_ns["_agent"] = None
    keys.Key.keep("lab", "typed-in-0123456789")
    stage.cell(body=f"use typed-in-0123456789 and {stage.key}")
    assert "typed-in" not in stage.server.asked[0]


@place
def a_python_agent(stage):
    with pytest.raises(agent_nb.errors.UsageError) as failure:
        Agent(stage.key)
    stage.said.append(str(failure.value))


# Commands.


@place
def the_commands_of_the_notebook(stage):
    stage.cell(f"-c {stage.quoted}", body=f"use {stage.key}")
    for line in (
        "show",
        "status",
        "events",
        "export out.md",
        "export out.html",
        "config",
        "tools",
        "recover",
        "doctor",
        "help",
    ):
        stage.shell.run_line_magic("agent", line)
    with pytest.raises(AgentCellError) as failure:
        stage.shell.run_line_magic("agent", f"'{stage.key}'")
    stage.said.append(str(failure.value))


@place
def the_command_line(stage):
    run = stage.cell(body=f"use {stage.key}")
    record = run_record(run.log, Provenance(cell="a"))
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("%%agent\nx", id="a")])
    nb.metadata["agent_nb"] = {"version": 1, "runs": {"a": [record]}}
    path = stage.folder / "n.ipynb"
    nbformat.write(nb, path)
    for command in ("events", "export", "verify", "diff", "doctor"):
        main([command, *([] if command == "doctor" else [str(path)])])
    assert main(["export", str(path), "--to", stage.key]) == 2
    assert main(["events", f"{stage.key}.ipynb"]) == 2


@place
def a_run_over_http(stage):
    from agent_nb.server.agents import Agents
    from agent_nb.server.app import Server, Settings

    agents = Agents(Agent("openai/canary"))
    stage.replies(chat(*stage.key), chat("done"))
    server = Server(Hub(), agents, settings=Settings(keepalive=0), closing=agents.stop).start()
    headers = {"Authorization": f"Bearer {server.token}"}
    try:
        with httpx.Client(
            base_url=server.url, headers=headers, trust_env=False, timeout=30
        ) as client:
            body = {"message": f"use {stage.key}", "conversation": stage.key, "stream": True}
            stage.said.append(client.post("/runs", json=body).text)
            listed = client.get("/runs")
            stage.said.append(listed.text)
            (info,) = listed.json()["runs"]
            for form in plugins.list_plugins("codecs"):
                stage.said.append(
                    client.get(f"/runs/{info['run']}/events", params={"format": form}).text
                )
    finally:
        server.stop()


def picture(key):
    """A PNG that holds the key in every kind of text, and after its end."""

    def chunk(name, data=b""):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    secret = key.encode()
    texts = [
        (b"tEXt", b"Comment\0" + secret),
        (b"iTXt", b"Comment\0\0\0\0\0" + secret),
        (b"eXIf", secret),
        (b"prVt", secret),
    ]
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(b"\0\x10\x20\x30")) + chunk(b"IEND")
    return PNG + head + b"".join(chunk(*text) for text in texts) + pixels + secret


@pytest.fixture
def provider():
    """A loopback provider."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.asked, server.replies = [], []
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(params=KEYS)
def stage(request, provider, agent, loaded, capsys, tmp_path, monkeypatch, clean_environment):
    """A stage with one of the keys; the key of the provider itself is another."""
    key = KEYS[request.param]
    if request.param == "variable":
        monkeypatch.setenv(VARIABLE, key)
    address = f"http://127.0.0.1:{provider.server_address[1]}"
    variables = {
        "OPENAI_BASE_URL": f"{address}/v1",
        "ANTHROPIC_BASE_URL": address,
        "OPENAI_API_KEY": "the-key-of-openai-0123",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setattr(keys, "_read_keyring", lambda provider: "")
    monkeypatch.setattr(loaded, "display_pub", CapturingDisplayPublisher(parent=loaded))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Stage(key, provider, loaded, agent, capsys, folder, monkeypatch.setattr)


@pytest.mark.few(20)
@pytest.mark.parametrize("name", PLACES)
def test_a_canary_is_nowhere_to_be_seen(stage, name):
    PLACES[name](stage)
    seen = list(stage.seen())
    found = {
        where: text[max(0, text.index(p) - 80) :][:200]
        for where, text in seen
        for p in pieces(stage.key)
        if p in text
    }
    assert not found
    assert any(MARK in text or BLOT in text for _, text in seen), (
        "the key never came to the place that this is about"
    )


def test_there_are_forty_places_and_more():
    assert len(PLACES) >= 40
