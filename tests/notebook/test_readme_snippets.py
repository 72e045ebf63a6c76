"""README's Python and cell snippets run, in reading order, in one notebook in an empty folder.

With `AGENT_NB_WHEEL` they run from an installed wheel (`helpers.installed`).
"""

import json
import re
from pathlib import Path

import nbformat
import pytest
from helpers.installed import WHEEL, run_command, run_python
from helpers.paths import CHECKOUT
from helpers.typed_servers import Chat

from agent_nb.record.ipynb import load_notebook
from agent_nb.record.notebook_file import NotebookRuns

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


def test_the_package_under_test_is_the_wheel_where_there_is_one(tmp_path):
    done = run_python("-c", "import agent_nb; print(agent_nb.__file__)", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout).is_relative_to(CHECKOUT) is not bool(WHEEL)


def test_the_snippets_of_the_readme_run_in_one_notebook(tmp_path, monkeypatch, provider):
    (tmp_path / "config.toml").write_text("")
    monkeypatch.setenv("AGENT_NB_CONFIG", str(tmp_path / "config.toml"))
    folder = tmp_path / "empty"
    folder.mkdir()
    sources = snippets()
    cells = [nbformat.v4.new_code_cell(text, id=f"c{n}") for n, text in enumerate(sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "n.ipynb")
    done = run_command("run", "--live", "--inplace", "n.ipynb", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    executed = load_notebook(folder / "n.ipynb")
    assert not [o for c in executed["cells"] for o in c["outputs"] if o["output_type"] == "error"]
    recorded = NotebookRuns(executed).by_cell()
    assert all(run["status"] == "ok" for runs in recorded.values() for run in runs)
    asked = {number for number in range(len(sources)) if f"c{number}" in recorded}
    assert asked >= {n for n, text in enumerate(sources) if re.search("%%agent|await", text)}
