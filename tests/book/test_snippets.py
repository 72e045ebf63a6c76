"""Every snippet of the book runs: a page is a notebook, its snippets are the cells."""

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from book.snippets import INSTALL, missing_lines, read, shown
from helpers.lacking import needed
from helpers.paths import CHECKOUT, EXAMPLES, python_path
from helpers.typed_servers import Chat

from agent_nb.cli.main import make_parser
from agent_nb.runner.client import execute_notebook
from agent_nb.runner.execution_options import ExecutionOptions

BOOK = EXAMPLES / "book"
PAGES = sorted(BOOK.rglob("*.md"))
SCHEDULER = "tcp://scheduler:8786"
#: the snippets that cannot run, by page; each says why on its page
NOT_RUN = {"front/kaggle": 1, "howto/hub": 1, "howto/serve": 1, "howto/sign": 1, "howto/tape": 2}

#: the libraries that a page shows, by page
LIBRARIES = {"howto/tape": ["openai"]}


HIDDEN = ("before", "answers")


def page_id(page):
    return page.relative_to(BOOK).with_suffix("").as_posix()


RUNNING = [page for page in PAGES if any(snippet.source() for snippet in read(page))]


def example(schema, definitions):
    """Return a value that fits a schema."""
    if "$ref" in schema:
        return example(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "array":
        return [example(schema["items"], definitions)]
    if schema.get("type") == "object":
        return {name: example(part, definitions) for name, part in schema["properties"].items()}
    return {"integer": 3, "number": 0.5, "boolean": True}.get(schema.get("type"), "some text")


class Provider(Chat):
    """A server with one model: it gives the page's answers, then words or what a schema asks."""

    def __init__(self):
        super().__init__("Done.")
        self.answers = []

    def _answer(self, peer):
        if peer.method == "GET":
            peer.reply(200, json.dumps({"data": [{"id": "gpt-5-mini"}]}))
            return
        frames = self._frames(peer.body)
        peer.stream(*(f"data: {json.dumps(frame)}\n\n" for frame in frames))

    def _frames(self, body):
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, str):
                return self.say(answer)
            return self.call(answer["name"], json.dumps(answer["args"]))
        schema = self.asked(body)
        if schema is None:
            return self.say("Done.")
        return self.say(json.dumps(example(schema, schema.get("$defs", {}))))


@pytest.fixture
def provider(monkeypatch):
    with Provider() as made:
        monkeypatch.setenv("OPENAI_BASE_URL", made._server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "x" * 30)
        yield made


@pytest.fixture
def place(tmp_path, monkeypatch, provider):
    """A folder with the examples, in which the commands of this environment are found."""
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("book"))
    (tmp_path / "config.toml").write_text("")
    monkeypatch.setenv("AGENT_NB_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "ann")
        monkeypatch.setenv(f"{name}_EMAIL", "ann@example.org")
    return tmp_path


def notebook_of(snippets, replaced):
    """Return a notebook, and for each cell its snippet, the text to print, and if in this order."""
    cells, expected = [], []
    for snippet in snippets:
        source = snippet.source()
        for old, new in replaced.items():
            source = source.replace(old, new)
        if source:
            cells.append(nbformat.v4.new_code_cell(source, id=f"c{len(cells)}"))
            expected.append([snippet, "", True])
        elif snippet.language == "text" and snippet.mark != "not run":
            expected[-1][1] += snippet.text
            expected[-1][2] = snippet.mark != "any order"
    return nbformat.v4.new_notebook(cells=cells), expected


def scheduler_for(page):
    """Return the address of a Dask cluster for a page that needs one, and what closes it."""
    if SCHEDULER not in page.read_text(encoding="utf-8"):
        return {}, lambda: None
    needed("distributed")
    from distributed import LocalCluster

    cluster = LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        dashboard_address=":0",
    )
    return {SCHEDULER: cluster.scheduler_address}, cluster.close


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.extra
@pytest.mark.few("start/first-cell", "start/your-data", "howto/typed")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # Dask's own
@pytest.mark.parametrize("page", RUNNING, ids=page_id)
def test_the_snippets_of_a_page_run_in_order(page, place, provider):
    for library in LIBRARIES.get(page_id(page), ()):
        needed(library)
    snippets = read(page)
    provider.answers = [a for s in snippets if s.mark == "answers" for a in json.loads(s.value)]
    replaced, close = scheduler_for(page)
    nb, expected = notebook_of(snippets, replaced)
    nbformat.write(nb, place / "n.ipynb")
    try:
        options = ExecutionOptions(rerun="", timeout=100)
        outcome = execute_notebook(place / "n.ipynb", options, goes_on=lambda _: True)
    finally:
        close()
    problems = []
    for cell, (snippet, text, ordered) in zip(outcome.notebook.cells, expected, strict=True):
        printed = shown(cell.outputs)
        failed = any(output["output_type"] == "error" for output in cell.outputs)
        wrong = missing_lines(text, printed, ordered=ordered)
        if wrong or failed != (snippet.mark == "fails"):
            problems.append(f"== {cell.source}\n-- shown:\n{printed}\n-- missing: {wrong}")
    assert not problems, "\n\n".join(problems)


def test_a_snippet_that_does_not_run_says_why_and_is_counted():
    found = {}
    for page in PAGES:
        not_run = [snippet for snippet in read(page) if snippet.mark == "not run"]
        assert all(len(snippet.value) > 10 for snippet in not_run), page
        if not_run:
            found[page_id(page)] = len(not_run)
    assert found == NOT_RUN


def test_every_snippet_has_a_language_that_is_run_or_a_name_of_a_file():
    for page in PAGES:
        for snippet in read(page):
            known = ("", "python", "sh", "text", "before", "answers")
            fine = snippet.language in known or snippet.is_directive
            assert fine or snippet.mark in ("file", "not run"), f"{page}: {snippet}"
            if not snippet.language and not snippet.mark:
                assert snippet.text.startswith("%"), f"{page}: {snippet}"


def test_the_files_that_a_page_shows_can_be_read():
    readers = {"yaml": yaml.safe_load, "toml": tomllib.loads, "json": json.loads, "": str}
    files = [(page, s) for page in PAGES for s in read(page) if s.mark == "file"]
    assert files
    for page, snippet in files:
        assert readers[snippet.language](snippet.text), f"{page}: {snippet.value}"


def test_the_commands_in_the_workflows_that_a_page_shows_exist():
    workflows = [s.text for page in PAGES for s in read(page) if s.value.endswith(".yml")]
    lines = [line for text in workflows for line in re.findall(r"run: jupyter agent-nb (.*)", text)]
    assert lines
    for line in lines:
        make_parser().parse_args(line.split())


def test_every_fence_stands_at_the_margin_where_it_is_found():
    for page in PAGES:
        fences = re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.MULTILINE)
        shown_fences = [snippet for snippet in read(page) if snippet.language not in HIDDEN]
        assert len(fences) == 2 * len(shown_fences), page


def test_the_extras_that_a_page_installs_exist():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    lines = [
        (page, line)
        for page in PAGES
        for snippet in read(page)
        if snippet.language == "sh"
        for line in snippet.text.splitlines()
        if INSTALL.search(line)
    ]
    assert lines
    for page, line in lines:
        named = {
            e.strip() for group in re.findall(r"\[([a-z, ]+)\]", line) for e in group.split(",")
        }
        assert named <= set(project["optional-dependencies"]), f"{page}: {line}"
