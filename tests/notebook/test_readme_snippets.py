"""README's Python and cell snippets run, in reading order, in one notebook."""

import json
import re
import shutil

import nbformat
import pytest
from helpers.paths import CHECKOUT
from helpers.typed_servers import Chat

from agent_nb.runner.client import execute_notebook
from agent_nb.runner.execution_options import ExecutionOptions

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.slow,
]


def snippets():
    """Return README's snippets for cells; those without a language are `%%agent` cells."""
    page = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    found = [(language, text) for language, text in fenced if language in ("", "python")]
    assert len(found) >= 5
    assert all(text.startswith("%%agent") for language, text in found if not language)
    return [text for _, text in found]


def example(schema, defs):
    """Return a value that fits a schema."""
    schema = defs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "array":
        return [example(schema["items"], defs)]
    if schema.get("type") == "object":
        return {name: example(part, defs) for name, part in schema["properties"].items()}
    return {"integer": 3, "number": 0.5, "boolean": True}.get(schema.get("type"), "some text")


class Provider(Chat):
    """A server that has one model, which answers in words, or as a schema asks."""

    def _answer(self, peer):
        if peer.method == "GET":
            peer.reply(200, json.dumps({"data": [{"id": "gpt-5-mini"}]}))
            return
        schema = self.asked(peer.body)
        said = "Done." if schema is None else json.dumps(example(schema, schema.get("$defs", {})))
        peer.stream(*(f"data: {json.dumps(frame)}\n\n" for frame in self.say(said)))


@pytest.fixture
def provider(monkeypatch):
    with Provider("Done.") as made:
        monkeypatch.setenv("OPENAI_BASE_URL", made._server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "x" * 30)
        yield made


def test_the_snippets_of_the_readme_run_in_one_notebook(tmp_path, monkeypatch, provider):
    (tmp_path / "config.toml").write_text("")
    monkeypatch.setenv("AGENT_NB_CONFIG", str(tmp_path / "config.toml"))
    shutil.copytree(CHECKOUT / "examples", tmp_path / "examples")
    sources = snippets()
    cells = [nbformat.v4.new_code_cell(text, id=f"c{n}") for n, text in enumerate(sources)]
    path = tmp_path / "n.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    outcome = execute_notebook(path, ExecutionOptions(rerun="live", timeout=120))
    assert outcome.failure == ""
    assert outcome.reached == len(cells)
    assert all(run["status"] == "ok" for _, run in outcome.runs), outcome.runs
    asked = {number for number, _ in outcome.runs}
    assert all(n in asked for n, text in enumerate(sources, 1) if text.startswith("%%agent"))
