"""Libraries that call models on a tape: the same objects live and recorded, a changed prompt named.

The newest Instructor allows no newer OpenAI SDK than 3.3, so `AGENT_NB_TEST_INSTRUCTOR` names a
Python that has both; `.ci/run` makes one.
"""

import json
import os
import re
from typing import NamedTuple

import pytest
from helpers.lacking import needed_in_kernel
from helpers.notebooks import write
from helpers.paths import CHECKOUT
from tape.test_notebook import TAPE, record, taped

from agent_nb.runner.notebook_check import CheckOptions, check_notebook

pytestmark = [pytest.mark.kernel, pytest.mark.extra, pytest.mark.long, pytest.mark.timeout(300)]

INSTRUCTOR = os.environ.get("AGENT_NB_TEST_INSTRUCTOR", "")
COMMON = '''
import json, os
from pydantic import TypeAdapter
def show(*values):
    with open(os.environ["SHOWN"], "ab") as file:
        file.write(TypeAdapter(list).dump_json(list(values)) + b"\\n")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''


class Row(NamedTuple):
    """A library: a module that it has, what its notebook does first, what is called with each of
    its models, and the fields of its objects that hold times or addresses.
    """

    module: str
    setup: str
    models: tuple[str, ...]
    cells: tuple[str, ...]
    varying: tuple[str, ...] = ()


ROWS = {
    "openai": Row(
        "openai",
        "import openai\nfrom agent_nb import tape",
        ("URL",),
        (
            """
client = openai.OpenAI(base_url=tape.url("MODEL"))
asked = dict(model="gpt-5-mini", messages=[{"role": "user", "content": "hi"}])
show(client.chat.completions.create(**asked), *client.chat.completions.create(**asked, stream=True))
""",
            """
client = openai.AsyncOpenAI(base_url=tape.url("MODEL"))
asked = dict(model="gpt-5-mini", input="hi")
show(await client.responses.create(**asked), *[e async for e in await client.responses.create(**asked, stream=True)])
""",
        ),
    ),
    "langchain": Row(
        "langchain",
        """
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
""",
        (
            "ChatOpenAI(model='gpt-5-mini')",
            "ChatOpenAI(model='gpt-5-mini', use_responses_api=True)",
            "ChatAnthropic(model='claude-sonnet-5')",
        ),
        (
            """
show(MODEL.invoke("hi"), *MODEL.stream("hi"))
""",
            """
show(await MODEL.ainvoke("hi"), *[chunk async for chunk in MODEL.astream("hi")])
""",
            """
agent, asked = create_agent(MODEL, tools=[add]), {"messages": [("user", "What is 1 + 2?")]}
show(agent.invoke(asked), [chunk for chunk, _ in agent.stream(asked, stream_mode="messages")])
""",
        ),
    ),
    "litellm": Row(
        "litellm",
        """
import litellm
tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}}]
def user(model, text):
    return dict(model=model, messages=[{"role": "user", "content": text}])
""",
        ("openai/gpt-5-mini", "anthropic/claude-sonnet-5"),
        (
            """
asked = user("MODEL", "hi")
show(litellm.completion(**asked), *litellm.completion(**asked, stream=True))
""",
            """
asked = user("MODEL", "hi")
show(await litellm.acompletion(**asked), *[c async for c in await litellm.acompletion(**asked, stream=True)])
""",
            """
asked = user("MODEL", "What is 1 + 2?")
first = litellm.completion(**asked, tools=tools).choices[0].message
for call in first.tool_calls:
    value = add(**json.loads(call.function.arguments))
    asked["messages"] += [first, {"role": "tool", "tool_call_id": call.id, "content": str(value)}]
show(first, *litellm.completion(**asked, tools=tools, stream=True))
""",
        ),
        ("created",),
    ),
    "instructor": Row(
        "instructor",
        """
import instructor
from instructor.core import InstructorRetryException
from pydantic import BaseModel
class Add(BaseModel):
    a: int
    b: int
class Words(BaseModel):
    a: str
    b: str
def user(kind, text):
    return dict(response_model=kind, max_tokens=99, messages=[{"role": "user", "content": text}])
""",
        ("openai/gpt-5-mini", "anthropic/claude-sonnet-5"),
        (
            """
client, asked = instructor.from_provider("MODEL"), user(Add, "What is 1 + 2?")
show(client.create(**asked), *client.create_partial(**asked))
""",
            """
client, asked = instructor.from_provider("MODEL", async_client=True), user(Add, "What is 1 + 2?")
show(await client.create(**asked), *[p async for p in client.create_partial(**asked)])
""",
            """
try:
    instructor.from_provider("MODEL").create(**user(Words, "hi"), max_retries=2)
except InstructorRetryException as error:
    if error.n_attempts < 2:
        raise
    show(error.n_attempts)  # the second request holds what Pydantic says of the first answer
""",
        ),
    ),
    "pydantic-ai": Row(
        "pydantic_ai",
        "from pydantic_ai import Agent",
        ("openai-chat:gpt-5-mini", "openai-responses:gpt-5-mini", "anthropic:claude-sonnet-5"),
        (
            """
result = await Agent("MODEL", tools=[add]).run("What is 1 + 2?")
show(result.output, result.all_messages())
""",
            """
async with Agent("MODEL", tools=[add]).run_stream("What is 1 + 2?") as result:
    show([text async for text in result.stream_text(debounce_by=None)], result.all_messages())
""",
        ),
        ("timestamp", "provider_url"),
    ),
    "openai-agents": Row(
        "agents",
        """
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, trace
from openai import AsyncOpenAI
assert type(trace("adder")).__name__ == "NoOpTrace"  # nothing is uploaded
""",
        ("'gpt-5-mini'", "OpenAIChatCompletionsModel('gpt-5-mini', AsyncOpenAI())"),
        (
            """
result = await Runner.run(Agent("adder", model=MODEL, tools=[function_tool(add)]), "What is 1 + 2?")
show(result.final_output, result.to_input_list())
""",
            """
result = Runner.run_streamed(Agent("adder", model=MODEL, tools=[function_tool(add)]), "What is 1 + 2?")
show(*[e.data async for e in result.stream_events() if e.type == "raw_response_event"])
show(result.final_output, result.to_input_list())
""",
        ),
        ("created_at",),
    ),
}
OFF = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "true"}
ALIASES = {  # set while calls are recorded, not where they are replayed
    "OPENAI_API_BASE": "OPENAI_BASE_URL",
    "ANTHROPIC_API_URL": "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_BASE": "ANTHROPIC_BASE_URL",
}
_uuid = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def use_kernel(path, python, monkeypatch):
    """Make the kernel of a notebook that of another Python."""
    spec = path.parent / "kernels" / "other" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    named = {"display_name": "other", "language": "python"}
    spec.write_text(json.dumps({"argv": argv, **named, "env": {"PYTHONPATH": str(CHECKOUT)}}))
    monkeypatch.setenv("JUPYTER_PATH", str(path.parent))
    nb = json.loads(path.read_text())
    path.write_text(json.dumps({**nb, "metadata": {"kernelspec": {"name": "other", **named}}}))


def read_shown(path, varying):
    """Return what the cells of a notebook showed, without what each run makes anew."""
    return [
        strip(json.loads(line), varying) for line in _uuid.sub("…", path.read_text()).splitlines()
    ]


def strip(value, varying):
    if isinstance(value, list):
        return [strip(item, varying) for item in value]
    if isinstance(value, dict):
        return {k: strip(v, varying) for k, v in value.items() if k not in varying}
    return value


def append_changed(path):
    """Append each cell with a prompt once more, with another prompt; return their numbers."""
    nb = json.loads(path.read_text())
    changed = []
    for cell in nb["cells"][2:]:
        source = "".join(cell["source"]).replace('"hi"', '"ho"').replace("1 + 2", "1 + 3")
        changed.append({**cell, "id": f"{cell['id']}x", "source": source, "outputs": []})
    first = len(nb["cells"]) + 1
    path.write_text(json.dumps({**nb, "cells": [*nb["cells"], *changed]}))
    return range(first, first + len(changed))


@pytest.mark.parametrize("library", ROWS)
def test_a_library_is_replayed_and_its_changed_prompts_are_named(
    library, provider, tmp_path, monkeypatch
):
    row = ROWS[library]
    kernel = INSTRUCTOR if library == "instructor" else ""
    if not kernel:
        needed_in_kernel(row.module)
    provider.call = ("", ['{"a": 1, ', '"b": 2}'])
    for name, value in OFF.items():
        monkeypatch.setenv(name, value)
    for name, usual in ALIASES.items():
        monkeypatch.setenv(name, os.environ[usual])
    monkeypatch.setenv("SHOWN", str(tmp_path / "live"))
    models = [m.replace("URL", provider.server.url) for m in row.models]
    cells = [cell.replace("MODEL", model) for model in models for cell in row.cells]
    path = write(tmp_path / "n.ipynb", TAPE, COMMON + row.setup, *cells)
    if kernel:
        use_kernel(path, kernel, monkeypatch)
    record(path)
    assert len(taped(path)) == len(provider.asked)
    changed = append_changed(path)
    provider.server.close()
    for name in os.environ:
        if name in OFF or name.startswith(("OPENAI_", "ANTHROPIC_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SHOWN", str(tmp_path / "again"))
    problems = check_notebook(path, CheckOptions(keep_going=True)).problems
    assert {p.cell for p in problems} == set(changed), [p.text for p in problems]
    named = [
        next(p.text for p in problems if p.cell == number).splitlines()[0] for number in changed
    ]
    assert all(
        re.search(r'(?:messages|input)\S* differs from the recorded request: ".*" → ".*"\.$', line)
        for line in named
    ), named
    live, again = (
        read_shown(tmp_path / name, (*row.varying, "obfuscation")) for name in ("live", "again")
    )
    assert len(live) >= len(cells)
    assert live == again
