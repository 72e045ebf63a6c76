"""A notebook with a tape: recorded live, replayed without a server, by a library of three lines."""

import json

import pytest
from helpers.marks import starts
from helpers.notebooks import write

from agent_nb.record.ipynb import read_notebook
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.signing import is_intact
from agent_nb.rows.recorded_runs import runs
from agent_nb.runner.client import execute_notebook
from agent_nb.runner.execution_options import ExecutionOptions
from agent_nb.runner.notebook_check import check_notebook

TAPE = "%load_ext agent_nb\n%agent tape"
LIBRARY = """\
import json, os, urllib.request, urllib.error
def ask(prompt, **more):
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": prompt}], **more}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(), {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    return urllib.request.urlopen(request).read().decode()
"""


@starts("kernel")
def record(path):
    """Execute a notebook live and write it with its records."""
    outcome = execute_notebook(path, ExecutionOptions(rerun="live"))
    assert outcome.failure == ""
    outcome.write(path, over=True)
    return outcome


def printed(outcome):
    return [
        o["text"]
        for c in outcome.notebook["cells"]
        for o in c.get("outputs", [])
        if o["output_type"] == "stream" and o["name"] == "stdout"
    ]


def taped(path):
    """Return the records of model calls that a notebook holds."""
    return [
        item.record
        for item in NotebookRuns(read_notebook(path)).list_all()
        if item.record.get("tape")
    ]


@pytest.fixture
def recorded(provider, tmp_path):
    path = write(
        tmp_path / "n.ipynb", TAPE, LIBRARY, "print(ask('hi', stream=True))\nprint(ask('you'))"
    )
    record(path)
    return path


@pytest.mark.kernel
def test_a_taped_notebook_is_replayed_without_its_server(recorded, provider, monkeypatch):
    assert len(provider.asked) == 2
    assert all(map(is_intact, taped(recorded)))
    provider.server.close()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    report = check_notebook(recorded)
    assert not [p.text for p in report.problems]
    assert report.runs == 1
    again = execute_notebook(recorded, ExecutionOptions(rerun="replay"))
    assert again.failure == ""
    assert "Hello from the server." in json.dumps(again.notebook)
    assert "2 model calls · gpt-5-mini · 0.0k in, 0.0k out · replayed" in json.dumps(
        again.notebook, ensure_ascii=False
    )


@pytest.mark.kernel
def test_a_changed_prompt_fails_the_test_even_if_the_cell_catches_it(recorded, provider):
    nb = json.loads(recorded.read_text())
    nb["cells"][2]["source"] = (
        "try:\n    ask('hi', stream=True); ask('her')\nexcept Exception as fault:\n    print(fault.read().decode())"
    )
    recorded.write_text(json.dumps(nb))
    report = check_notebook(recorded)
    assert (
        'messages[0].content differs from the recorded request: "you" → "her"'
        in report.problems[0].text
    )
    assert len(provider.asked) == 2


@pytest.mark.kernel
def test_no_key_cookie_or_address_of_the_relay_is_in_the_file(recorded):
    text = recorded.read_text()
    assert "k" * 30 not in text
    assert "secret-cookie" not in text
    assert "127.0.0.1" not in text


@pytest.mark.kernel
def test_a_call_of_a_changed_cell_goes_live_and_the_others_are_served(recorded, provider):
    nb = json.loads(recorded.read_text())
    nb["cells"][2]["source"] += "\nprint(ask('new'))"
    recorded.write_text(json.dumps(nb))
    outcome = execute_notebook(recorded, ExecutionOptions(rerun="auto"))
    assert outcome.failure == ""
    outcome.write(recorded, over=True)
    assert len(provider.asked) == 3
    newest = max(taped(recorded), key=lambda r: r["started"])["execution"]
    assert sum(r["execution"] == newest for r in taped(recorded)) == 3
    assert not check_notebook(recorded).problems


@pytest.mark.kernel
def test_runs_of_the_file_have_the_taped_calls(recorded):
    calls = runs(recorded)
    assert [run.status for run in calls] == ["ok", "ok"]
    assert [run.answer for run in calls] == ["Hello from the server."] * 2
    assert calls[0].usage.input == 11


@pytest.mark.kernel
def test_a_refused_call_that_is_repeated_is_one_recorded_call(provider, tmp_path):
    provider.replies = [500, 429]
    cell = "for _ in range(3):\n    try:\n        print(ask('hi'))\n    except urllib.error.HTTPError:\n        pass"
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, cell)
    record(path)
    assert len(provider.asked) == 3
    assert len(taped(path)) == 1
    nb = json.loads(path.read_text())
    nb["cells"][2]["source"] = "print(ask('hi'))"
    path.write_text(json.dumps(nb))
    assert not check_notebook(path).problems


@pytest.mark.kernel
def test_our_own_models_pass_by_the_tape(provider, tmp_path):
    agent = "from agent_nb import Agent\nprint((await Agent('openai/gpt-5-mini')('hi')).answer)\nask('hi')\nprint('http' in os.environ['OPENAI_BASE_URL'])"
    path = write(
        tmp_path / "n.ipynb",
        TAPE,
        LIBRARY,
        agent,
        "%agent tape off\nprint(os.environ['OPENAI_BASE_URL'])",
    )
    outcome = record(path)
    assert len(provider.asked) == 2
    assert len(taped(path)) == 1
    assert printed(outcome)[-1].endswith(provider.server.url + "\n")
    assert not check_notebook(path).problems


@pytest.mark.kernel
def test_a_record_of_somebody_else_is_not_served(recorded, monkeypatch, tmp_path):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "other"))
    problems = check_notebook(recorded).problems
    assert any("not signed" in p.text for p in problems)


@pytest.mark.kernel
def test_a_call_has_the_cost_that_the_configuration_names(provider, tmp_path, monkeypatch):
    config = tmp_path / "config.toml"
    config.write_text('[prices."openai/gpt-5*"]\ninput = 100.0\noutput = 1000.0\n')
    monkeypatch.setenv("AGENT_NB_CONFIG", str(config))
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, "ask('hi')")
    outcome = record(path)
    assert runs(path)[0].usage.cost == pytest.approx((11 * 100 + 7 * 1000) / 1e6)
    assert "1 model call · gpt-5-mini · 0.0k in, 0.0k out · $0.0081" in json.dumps(
        outcome.notebook, ensure_ascii=False
    )


@pytest.mark.kernel
def test_a_map_beside_taped_calls_has_its_own_records(provider, tmp_path):
    cell = "from agent_nb import Agent\nrows = await Agent('openai/gpt-5-mini').map([{'x': 1}, {'x': 2}], 'Say {{ x }}')\nask('hi')"
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, cell)
    record(path)
    assert len(provider.asked) == 3
    assert len(taped(path)) == 1
    assert not check_notebook(path).problems


@pytest.mark.kernel
def test_calls_of_a_thread_that_outlives_its_cell_are_recorded(provider, tmp_path):
    cell = "import threading, time\ndef later():\n    time.sleep(0.5); ask('hi')\nthread = threading.Thread(target=later); thread.start()"
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, cell, "thread.join()\n1")
    record(path)
    assert len(taped(path)) == 1
    assert not check_notebook(path).problems


@pytest.mark.kernel
def test_a_taped_record_is_no_record_of_an_agent_run_in_the_same_cell(provider, tmp_path):
    cell = "from agent_nb import Agent, Scripted\nask('hi')\nprint((await Agent(Scripted('one'))('hi')).answer)"
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, "ask('you')", "%agent status", cell)
    outcome = record(path)
    assert "recorded" not in "".join(
        o.get("text", "") for o in outcome.notebook["cells"][3]["outputs"]
    )
    assert not check_notebook(path).problems
