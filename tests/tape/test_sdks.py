"""The SDKs of OpenAI, Anthropic and Google on a tape: they return the same live and recorded."""

import json

import pytest
from helpers.lacking import needed
from helpers.notebooks import write
from tape.test_notebook import TAPE, printed, record, taped

from agent_nb.runner.client import execute_notebook
from agent_nb.runner.execution_options import ExecutionOptions
from agent_nb.runner.notebook_check import check_notebook

pytestmark = [pytest.mark.kernel, pytest.mark.extra]

SHOW = """\
import json
def show(*values):
    # Google's answers hold the headers of HTTP
    print(json.dumps([v.model_dump(mode="json", exclude={"sdk_http_response"}) for v in values], sort_keys=True))
def add(a, b):
    return a + b
"""
OPENAI = {
    "chat": """
import openai
client = openai.OpenAI()
asked = dict(model="gpt-5-mini", messages=[{"role": "user", "content": "hi"}])
show(client.chat.completions.create(**asked))
show(*client.chat.completions.create(**asked, stream=True))
""",
    "chat, async": """
import openai
client = openai.AsyncOpenAI()
asked = dict(model="gpt-5-mini", messages=[{"role": "user", "content": "hi"}])
show(await client.chat.completions.create(**asked))
show(*[chunk async for chunk in await client.chat.completions.create(**asked, stream=True)])
""",
    "a tool": """
import openai
client = openai.OpenAI()
tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}}]
messages = [{"role": "user", "content": "What is 1 + 2?"}]
with client.chat.completions.stream(model="gpt-5-mini", messages=messages, tools=tools) as stream:
    first = stream.get_final_completion()
call = first.choices[0].message.tool_calls[0]
value = add(**json.loads(call.function.arguments))
messages += [first.choices[0].message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}),
    {"role": "tool", "tool_call_id": call.id, "content": str(value)}]
show(first, *client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=tools, stream=True))
""",
    "responses": """
import openai
client = openai.OpenAI()
asked = dict(model="gpt-5-mini", input="hi", instructions="Be brief.")
show(client.responses.create(**asked))
show(*client.responses.create(**asked, stream=True))
""",
    "responses, async": """
import openai
client = openai.AsyncOpenAI()
asked = dict(model="gpt-5-mini", input="hi", instructions="Be brief.")
show(await client.responses.create(**asked))
show(*[event async for event in await client.responses.create(**asked, stream=True)])
""",
    "a retried call": """
import openai
client = openai.OpenAI(max_retries=2)
show(client.chat.completions.create(model="gpt-5-mini", messages=[{"role": "user", "content": "again"}]))
""",
}
ANTHROPIC = {
    "messages": """
import anthropic
client = anthropic.Anthropic()
asked = dict(model="claude-sonnet-5", max_tokens=99, messages=[{"role": "user", "content": "hi"}])
show(client.messages.create(**asked))
show(*client.messages.create(**asked, stream=True))
""",
    "messages, async": """
import anthropic
client = anthropic.AsyncAnthropic()
asked = dict(model="claude-sonnet-5", max_tokens=99, messages=[{"role": "user", "content": "hi"}])
show(await client.messages.create(**asked))
show(*[event async for event in await client.messages.create(**asked, stream=True)])
""",
    "a tool": """
import anthropic
client = anthropic.Anthropic()
tools = [{"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}]
messages = [{"role": "user", "content": "What is 1 + 2?"}]
with client.messages.stream(model="claude-sonnet-5", max_tokens=99, messages=messages, tools=tools) as stream:
    first = stream.get_final_message()
call = next(block for block in first.content if block.type == "tool_use")
result = {"type": "tool_result", "tool_use_id": call.id, "content": str(add(**call.input))}
messages += [{"role": "assistant", "content": [block.model_dump(include={"type", "text", "id", "name", "input"}) for block in first.content]}, {"role": "user", "content": [result]}]
show(first, client.messages.create(model="claude-sonnet-5", max_tokens=99, messages=messages, tools=tools))
""",
}
GOOGLE = {
    "content": """
from google import genai
client = genai.Client()
asked = dict(model="gemini-2.5-flash", contents="hi")
show(client.models.generate_content(**asked))
show(*client.models.generate_content_stream(**asked))
""",
    "content, async": """
from google import genai
client = genai.Client()
asked = dict(model="gemini-2.5-flash", contents="hi")
show(await client.aio.models.generate_content(**asked))
show(*[chunk async for chunk in await client.aio.models.generate_content_stream(**asked)])
""",
    "a tool": """
from google import genai
client = genai.Client()
def add(a: int, b: int) -> int:
    \"\"\"Add two numbers.\"\"\"
    return a + b
asked = dict(model="gemini-2.5-flash", contents="What is 1 + 2?", config={"tools": [add]})
show(client.models.generate_content(**asked))
""",
}
SDKS = {"openai": OPENAI, "anthropic": ANTHROPIC, "google.genai": GOOGLE}
CASES = [(library, name) for library, cases in SDKS.items() for name in cases]


def change_prompt(path, old, new):
    nb = json.loads(path.read_text())
    nb["cells"][2]["source"] = "".join(nb["cells"][2]["source"]).replace(old, new)
    path.write_text(json.dumps(nb))


@pytest.mark.long
@pytest.mark.parametrize(("library", "name"), CASES)
def test_a_library_gets_the_same_objects_from_the_record(
    library, name, provider, tmp_path, monkeypatch
):
    needed(library)
    provider.call = ("add", ['{"a": 1, ', '"b": 2}'])
    provider.replies = [500, 429] if name == "a retried call" else []
    path = write(tmp_path / "n.ipynb", TAPE, SHOW, SDKS[library][name])
    live = record(path)
    calls = len(provider.asked) - (2 if name == "a retried call" else 0)
    assert len(taped(path)) == calls
    provider.server.close()
    for variable in (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_BASE_URL",
        "GOOGLE_GEMINI_BASE_URL",
    ):
        monkeypatch.delenv(variable)
    assert not [p.text for p in check_notebook(path).problems]
    again = execute_notebook(path, ExecutionOptions(rerun="replay", strict=True))
    assert again.failure == ""
    shown = [[json.loads(t) for t in printed(o)[-1].splitlines()] for o in (live, again)]
    # chat chunks hold random padding, which is served empty
    assert strip_padding(shown[0]) == strip_padding(shown[1])
    for prompt in ('"hi"', "1 + 2", "again"):
        change_prompt(path, prompt, prompt.replace("i", "o").replace("2", "3").replace("ag", "eg"))
    problems = [p.text for p in check_notebook(path).problems]
    assert any("differs from the recorded request" in text for text in problems), problems


def strip_padding(value):
    if isinstance(value, list):
        return [strip_padding(item) for item in value]
    if isinstance(value, dict):
        return {k: strip_padding(v) for k, v in value.items() if k != "obfuscation"}
    return value


def test_the_result_of_a_tool_stands_in_the_record_of_its_call(provider, tmp_path):
    needed("openai")
    provider.call = ("add", ['{"a": 1, ', '"b": 2}'])
    path = write(tmp_path / "n.ipynb", TAPE, SHOW, OPENAI["a tool"])
    record(path)
    results = [e for r in taped(path) for e in r["events"] if e["type"] == "result"]
    assert [(r["content"], r["origin"]) for r in results] == [("3", "imported")]
