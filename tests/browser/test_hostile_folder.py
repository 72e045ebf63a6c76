"""A notebook of JupyterLab in a hostile folder: nothing of it is executed or sent, what it offers
is asked about, and a no is a no.
"""

import os
import shutil

import pytest
from helpers.hostile_folder import Requests, cells, hostile

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]

PROXIES = "import os\nos.environ['HTTPS_PROXY'] = os.environ['HTTP_PROXY'] = {url!r}\n"


@pytest.fixture
def requests():
    server = Requests()
    yield server
    server.close()


def answer(notebook, index, said):
    """Wait for the question of a cell, answer it on the keyboard, and return its text."""
    field = notebook.output(index).locator("input.jp-Stdin-input")
    field.wait_for()
    text = notebook.output(index).inner_text()
    notebook.shot(f"hostile-folder-{index}")
    field.fill(said)
    field.press("Enter")
    return text


def deny(notebook, index):
    notebook.press(index, "Deny", "Deny")


def test_nothing_of_the_folder_is_executed_and_its_offers_are_asked_about(requests, opened, server):
    folder, marks = server.root / "hostile", server.folder / "hostile" / "marks"
    for made in (folder, marks.parent):  # by a first try of this test
        shutil.rmtree(made, ignore_errors=True)
    folder.mkdir()
    marks.mkdir(parents=True)
    hostile(folder, marks, requests.url)
    (folder / "helper.py").write_text("answer = 'helped'")
    notebook = opened(name="hostile/n")
    sources = dict(cells(marks))
    notebook.run(
        PROXIES.format(url=requests.url) + sources["setup"].replace("%load_ext agent_nb\n", "")
    )
    notebook.run("%load_ext agent_nb")
    asked = {}
    for name, source in sources.items():
        index = notebook.begin(source)
        if name in ("policy-all", "policy-one", "key", "key-other", "mcp-allow"):
            asked[name] = answer(notebook, index, "n") if name != "key-other" else ""
        if name.startswith("policy-"):
            deny(notebook, index)
        notebook.wait(index)
    assert (
        f"policy.yaml in {folder} allows *, everything that no rule names." in asked["policy-all"]
    )
    assert (
        f"one.yml in {folder} allows python. A yes counts as long as the file stays as it is."
        in asked["policy-one"]
    )
    assert (
        f".env in {folder} has OPENAI_API_KEY and ANTHROPIC_API_KEY. A yes counts in this folder, from now on."
        in asked["key"]
    )
    assert 'would start the MCP server "evil":' in asked["mcp-allow"]
    assert f'command: "touch" "{marks}/config-mcp"' in asked["mcp-allow"]
    assert "stranger" not in "".join(asked.values())
    assert os.listdir(marks) == []
    assert requests.count == []
    assert (marks.parent / "last").read_text() == "helpedhelped"
    assert (
        not (marks.parent / "chosen").exists()
        or (marks.parent / "chosen").read_text() == "local/smollm2"
    )

    notebook.run("get_ipython().magics_manager.registry['AgentMagics'].session.declined.clear()")
    index = notebook.begin(f"%%agent --live {sources['policy-one'].removeprefix('%%agent ')}")
    answer(notebook, index, "y")
    notebook.wait(index)
    assert os.listdir(marks) == ["policy-allows-the-call"]
    notebook.run("%agent config")
    notebook.sees(notebook.run("%agent trust-folder --list"), "may be obeyed in one.yml")
