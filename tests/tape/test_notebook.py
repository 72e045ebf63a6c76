"""A notebook with a tape: recorded live, replayed without a server, by a library of three lines."""

import itertools
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest
from helpers.marks import starts
from helpers.notebooks import write
from tape.conftest import start_provider

from agent_nb.cli.main import main
from agent_nb.host.diverted import DIVERTED
from agent_nb.models.keys import Key, collect_secrets
from agent_nb.notebook.cell import taping
from agent_nb.notebook.files.recorded_runs import compare_notebooks
from agent_nb.record.ipynb import read_notebook
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.outputs import read_published_record
from agent_nb.record.ranking import CellRecords
from agent_nb.record.record import record_hash
from agent_nb.record.signing import UserKey, is_intact
from agent_nb.rows.recorded_runs import runs
from agent_nb.runner.client import execute_notebook
from agent_nb.runner.execution_options import ExecutionOptions
from agent_nb.runner.notebook_check import check_notebook
from agent_nb.tools.base import ToolContext
from agent_nb.tools.shell import shell

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


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """The folder of a notebook that was recorded once, and of the key that signed it."""
    folder = tmp_path_factory.mktemp("recording")
    two_calls = "print(ask('hi', stream=True))\nprint(ask('you'))"
    path = write(folder / "n.ipynb", TAPE, LIBRARY, two_calls)
    with pytest.MonkeyPatch.context() as patch:
        provider = start_provider(patch)
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "jupyter"))
        record(path)
        provider.server.close()
    assert len(provider.asked) == 2
    return folder


@pytest.fixture
def recorded(recording, provider, tmp_path, monkeypatch):
    """A copy of that notebook; its provider has another address now, and was asked nothing."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(recording / "jupyter"))
    return Path(shutil.copy(recording / "n.ipynb", tmp_path))


@pytest.mark.kernel
def test_a_taped_notebook_is_replayed_without_its_server(recorded, provider, monkeypatch):
    assert all(map(is_intact, taped(recorded)))
    provider.server.close()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    report = check_notebook(recorded)
    assert not [p.text for p in report.problems]
    assert report.runs == 1
    again = execute_notebook(recorded, ExecutionOptions(rerun="replay"))
    assert again.failure == ""
    assert "Hello from the server." in json.dumps(again.notebook)
    assert "2 model calls · gpt-5-mini · 22 in, 14 out · replayed" in json.dumps(
        again.notebook, ensure_ascii=False
    )


@pytest.mark.kernel
def test_each_call_of_a_cell_is_compared_with_the_same_call_before(recorded, provider):
    before = Path(shutil.copy(recorded, recorded.with_name("before.ipynb")))
    provider.words = ["changed"]
    record(recorded)
    for paths in ([recorded], [before, recorded]):
        diffs = compare_notebooks(paths)
        assert [[change.head for change in diff.changes] for diff in diffs] == [["answer"]] * 2


def test_an_export_holds_each_call_of_a_cell(recorded, capsys):
    assert main(["export", str(recorded)]) == 0
    shown = capsys.readouterr().out
    assert shown.index("❯ hi\n") < shown.index("❯ you\n")


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
    assert provider.asked == []


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
    assert len(provider.asked) == 1
    assert len(taped(recorded)) == 3
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


LEAVES = """\
body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "hi"}], "stream": True}
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps(body).encode(), {"content-type": "application/json"})
with urllib.request.urlopen(request) as answer:
    for line in answer:
        if '"finish_reason":"stop"' in line.decode().replace(" ", ""):
            break
print("left")
"""


@pytest.mark.kernel
def test_a_stream_that_is_left_at_the_end_of_its_answer_is_replayed(provider, tmp_path):
    provider.stall = True
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, LEAVES)
    record(path)
    assert [run.answer for run in runs(path)] == ["Hello from the server."]
    assert not check_notebook(path).problems


class Together:
    """A gate that opens when so many requests wait, for the earliest of them first."""

    def __init__(self, count):
        self._barrier, self._numbers = threading.Barrier(count), itertools.count()

    def wait(self, seconds):
        number = next(self._numbers)
        self._barrier.wait(seconds)
        time.sleep(number / 20)


@pytest.mark.kernel
def test_of_ten_equal_calls_at_once_one_that_fails_is_recorded_too(provider, tmp_path):
    provider.gate = Together(10)
    provider.replies = [503, *[200] * 9]
    cell = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def status(_):\n    try:\n        ask('hi')\n    except urllib.error.HTTPError as fault:\n"
        "        return fault.code\n    return 200\n"
        "with ThreadPoolExecutor(10) as pool:\n    print(sorted(pool.map(status, range(10))))"
    )
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, cell)
    record(path)
    assert len(taped(path)) == 10
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
    assert "1 model call · gpt-5-mini · 11 in, 7 out · $0.0081" in json.dumps(
        outcome.notebook, ensure_ascii=False
    )


@pytest.mark.long
@pytest.mark.kernel
def test_a_map_beside_taped_calls_has_its_own_records(provider, tmp_path):
    cell = "from agent_nb import Agent\nrows = await Agent('openai/gpt-5-mini').map([{'x': 1}, {'x': 2}], 'Say {{ x }}')\nask('hi')"
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, cell)
    record(path)
    assert len(provider.asked) == 3
    assert len(taped(path)) == 1
    assert not check_notebook(path).problems


@pytest.mark.long
@pytest.mark.kernel
def test_the_end_of_a_cell_waits_until_a_long_answer_is_read(provider, tmp_path):
    slow = """
import time
from agent_nb.notebook.cell.taping import NotebookTape
redact = NotebookTape._redact
NotebookTape._redact = lambda *args: (time.sleep(0.6), redact(*args))[1]"""
    path = write(tmp_path / "n.ipynb", TAPE + slow, LIBRARY, "print(ask('hi'))")
    record(path)
    assert len(taped(path)) == 1


@pytest.mark.kernel
def test_calls_below_capture_are_recorded_with_their_cell(provider, tmp_path):
    captured = "%%capture out\nprint(ask('hi'))"
    path = write(
        tmp_path / "n.ipynb", TAPE, LIBRARY, captured, "print(out.stdout, len(out.outputs))"
    )
    outcome = record(path)
    assert printed(outcome)[-1].endswith("\n 0\n")
    assert [item.cell for item in NotebookRuns(read_notebook(path)).list_all()] == ["cell3"]
    assert "1 model call" in json.dumps(outcome.notebook["cells"][2]["outputs"])
    provider.server.close()
    assert not check_notebook(path).problems
    change(path, 2, "%%capture out\ntry:\n    ask('you')\nexcept OSError:\n    pass")
    assert '"hi" → "you"' in check_notebook(path).problems[0].text


@pytest.mark.long
@pytest.mark.kernel
def test_a_press_at_the_end_of_a_cell_ends_its_waiting_alone(provider, kernel_type, tmp_path):
    kernel, provider.gate = kernel_type(sys.executable, tmp_path), threading.Event()
    try:
        kernel.run(f"{TAPE}\nfrom agent_nb.notebook.cell import taping\ntaping._LONGEST_WAIT = 30")
        kernel.run(LIBRARY)
        marks = "get_ipython().events.callbacks['post_run_cell'].insert(0, lambda _: pathlib.Path('mark').touch())"
        begin = "thread = threading.Thread(target=ask, args=['hi'])\nthread.start()\ntime.sleep(1)"
        request = kernel.send(f"import pathlib, threading, time\n{marks}\n{begin}")
        queued = kernel.send("1")
        kernel.marked()
        time.sleep(0.5)
        kernel.interrupt()
        assert kernel.finish(request, seconds=20)[:2] == ("ok", "")
        assert kernel.finish(queued)[0] == "aborted"
        provider.gate.set()
        assert "1 model call" in str(kernel.run("thread.join()")[2])
    finally:
        provider.gate.set()
        kernel.close()


@pytest.mark.long
@pytest.mark.kernel
def test_calls_of_a_thread_that_outlives_its_cell_are_recorded(provider, tmp_path):
    cell = "import threading, time\ndef later():\n    time.sleep(0.5); ask('hi')\nthread = threading.Thread(target=later); thread.start()"
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, cell, "thread.join()\n1")
    record(path)
    assert len(taped(path)) == 1
    assert not check_notebook(path).problems


@pytest.mark.long
@pytest.mark.kernel
def test_a_taped_record_is_no_record_of_an_agent_run_in_the_same_cell(provider, tmp_path):
    cell = "from agent_nb import Agent, Scripted\nask('hi')\nprint((await Agent(Scripted('one'))('hi')).answer)"
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, "ask('you')", "%agent status", cell)
    outcome = record(path)
    assert "recorded" not in "".join(
        o.get("text", "") for o in outcome.notebook["cells"][3]["outputs"]
    )
    assert not check_notebook(path).problems


def change(path, cell, source):
    nb = json.loads(path.read_text())
    nb["cells"][cell]["source"] = source
    path.write_text(json.dumps(nb))


REFUSED = "try:\n    ask('hi')\nexcept urllib.error.HTTPError as fault:\n    print(fault.code, fault.headers['x-should-retry'])"


@pytest.mark.long
@pytest.mark.kernel
@pytest.mark.parametrize("status", [401, 429])
def test_a_recorded_error_is_replayed_under_test_alone(provider, tmp_path, status):
    provider.replies = [status] * 3
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, REFUSED)
    record(path)
    times = 3 if status == 429 else 1  # a library would send it again
    change(path, 2, f"for _ in range({times}):\n    " + REFUSED.replace("\n", "\n    "))
    assert not check_notebook(path).problems
    outcome = execute_notebook(path, ExecutionOptions(rerun="replay"))
    retry = "false" if status == 429 else None
    assert printed(outcome)[-1].splitlines()[-1] == f"{status} {retry}"
    provider.replies = []
    change(path, 2, "print(ask('hi'))")
    outcome = execute_notebook(path, ExecutionOptions(rerun="auto"))
    assert outcome.failure == ""
    assert "Hello from the server." in printed(outcome)[-1]


@pytest.mark.parametrize("end", [": no end\n\n", 'data: {"error": {"message": "overloaded"}}\n\n'])
def test_a_stream_that_failed_is_sent_again_when_the_cell_runs_again(provider, loaded, end):
    provider.failing = end
    try:
        loaded.run_cell("%agent tape").raise_error()
        loaded.run_cell(LIBRARY).raise_error()
        for answered in range(1, 5):
            loaded.run_cell("answer = ask('hi', stream=True)").raise_error()
            assert len(provider.asked) == min(answered, 3)  # twice in vain, then once
            provider.failing = end if answered == 1 else None
    finally:
        loaded.run_cell("%agent tape off")
    assert "server" in loaded.user_ns["answer"]


def test_a_call_that_is_replayed_before_the_first_save_keeps_its_record(
    provider, loaded, monkeypatch
):
    shown = []

    def publish(data, metadata, transient, update):
        shown.append({"output_type": "display_data", "data": data, "metadata": metadata})

    monkeypatch.setattr("agent_nb.notebook.cell.taped_output.publish_display", publish)

    def run_cell(cell):
        shown.clear()
        loaded.run_cell(cell).raise_error()
        return [r for output in shown if (r := read_published_record(output)) is not None]

    try:
        run_cell("%agent tape")
        run_cell(LIBRARY)
        first = run_cell("ask('hi')")
        again = run_cell("ask('hi')")
    finally:
        run_cell("%agent tape off")
    assert len(provider.asked) == len(first) == 1
    assert again == first


def test_the_tape_follows_the_configured_mode(provider, loaded):
    def run_cell(cell):
        loaded.run_cell(cell).raise_error()
        return len(provider.asked)

    run_cell("%agent tape")
    run_cell(LIBRARY)
    try:
        assert run_cell("ask('hi')") == 1
        assert run_cell("ask('hi')") == 1
        run_cell("%config AgentMagics.rerun = 'live'")
        assert run_cell("ask('hi')") == 2
        run_cell("%config AgentMagics.rerun = 'replay'")
        assert run_cell("ask('hi')") == 2
        with pytest.raises(Exception, match="HTTP Error 400"):
            run_cell("ask('you')")
    finally:
        run_cell("%agent tape off")


def test_a_call_without_a_secret_is_matched_unredacted(provider, loaded, monkeypatch):
    """Redacting each would take half of the time."""
    monkeypatch.setenv("PERSONAL_TOKEN", "a-personal-token-1234")
    ask_twice = "ask('hi'), ask('I am a-personal-token-1234')"
    redacted = []
    redact = taping.redact_exchange
    try:
        loaded.run_cell("%agent tape").raise_error()
        loaded.run_cell(LIBRARY).raise_error()
        loaded.run_cell(ask_twice).raise_error()
        monkeypatch.setattr(
            taping, "redact_exchange", lambda *args: redacted.append(1) or redact(*args)
        )
        loaded.run_cell(ask_twice).raise_error()
    finally:
        loaded.run_cell("%agent tape off")
    assert len(provider.asked) == 2
    assert len(redacted) == 1


def test_a_record_that_holds_what_became_a_secret_is_made_anew(provider, loaded, monkeypatch):
    cell = "answer = ask('I am a-personal-token-1234')"
    try:
        loaded.run_cell("%agent tape").raise_error()
        loaded.run_cell(LIBRARY).raise_error()
        loaded.run_cell(cell).raise_error()
        monkeypatch.setenv("PERSONAL_TOKEN", "a-personal-token-1234")
        provider.words = ["newer"]
        for _ in range(2):  # asked, then replayed
            loaded.run_cell(cell).raise_error()
            assert "newer" in loaded.user_ns["answer"]
    finally:
        loaded.run_cell("%agent tape off")
    assert len(provider.asked) == 2


def test_a_record_is_checked_once_however_many_calls_and_cells_are_there(
    provider, loaded, monkeypatch
):
    checked = []
    is_own = UserKey.owns
    monkeypatch.setattr(
        UserKey, "owns", lambda key, record: checked.append(1) or is_own(key, record)
    )
    loaded.run_cell("%agent tape")
    loaded.run_cell(LIBRARY)
    try:
        loaded.run_cell("for n in range(9):\n    ask(str(n))").raise_error()
        loaded.run_cell("for n in range(9):\n    ask(str(n))").raise_error()
        loaded.run_cell("ask('hi')").raise_error()
    finally:
        loaded.run_cell("%agent tape off")
    assert len(provider.asked) == 10
    assert len(checked) <= 10


@pytest.mark.kernel
def test_a_call_that_goes_on_when_the_tape_ends_is_recorded(provider, tmp_path):
    provider.stall = True
    opening = LIBRARY.replace(".read().decode()", "")
    cell = "answer = ask('hi', stream=True)\nwhile b'\".\"' not in answer.readline(): pass"
    path = write(tmp_path / "n.ipynb", TAPE, opening, cell, "%agent tape off")
    record(path)
    (call,) = runs(path)
    assert (call.status, call.answer) == ("interrupted", "Hello from the server.")
    assert len(taped(path)) == 1


@pytest.mark.kernel
def test_a_proxy_of_the_environment_gets_no_taped_call(provider, tmp_path, monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    path = write(
        tmp_path / "n.ipynb",
        TAPE,
        LIBRARY,
        "print(ask('hi'))",
        "%agent tape off\nprint(os.environ.get('no_proxy'))",
    )
    outcome = record(path)
    assert len(provider.asked) == 1
    assert printed(outcome)[-1].endswith("None\n")


@pytest.mark.kernel
def test_the_address_of_the_tape_in_a_prompt_is_no_difference(provider, tmp_path):
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, "ask(os.environ['OPENAI_BASE_URL'])")
    record(path)
    assert "127.0.0.1" not in json.dumps(taped(path))
    assert not check_notebook(path).problems


@pytest.mark.kernel
def test_outputs_show_the_address_of_the_server_and_no_secret_of_the_tape(provider, tmp_path):
    provider.replies = [404]
    cell = "import httpx, sys\nurl = os.environ['OPENAI_BASE_URL']\nprint(url)\nsecret = url.split('/')[3]\nprint(secret[:9], file=sys.stderr)\nhttpx.get(url + '/models').raise_for_status()"
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, cell, "print(url, {secret: 1})\nurl, secret")
    outcome = execute_notebook(path, ExecutionOptions(rerun="live"), goes_on=lambda _: True)
    outcome.write(path, over=True)
    text = path.read_text()
    start = "".join(
        o["text"] for o in outcome.notebook.cells[2].outputs if o.get("name") == "stderr"
    )
    assert len(start) == 10
    assert start.strip() not in text.replace(start.strip(), "", 1)
    assert f"for url '{provider.server.url}/models'" in text
    assert printed(outcome)[-2:] == [
        f"{provider.server.url}\n",
        f"{provider.server.url} {{'[redacted]': 1}}\n",
    ]
    assert "'[redacted]')" in text


def test_the_secret_of_the_tape_is_a_secret_of_our_own_runs():
    DIVERTED.divert({}, {"secret of the tape": "s3cret-of-the-tape"})
    try:
        assert collect_secrets()["secret of the tape"] == "s3cret-of-the-tape"
    finally:
        DIVERTED.restore()
    assert "secret of the tape" not in collect_secrets()


def test_diverting_more_variables_leaves_the_earlier_secrets_hidden():
    try:
        DIVERTED.divert({}, {"one": "first secret"})
        DIVERTED.divert({}, {"other": "second secret"})
        assert DIVERTED.secrets == {"one": "first secret", "other": "second secret"}
    finally:
        DIVERTED.restore()


def test_the_tapes_own_key_and_address_reach_no_model_and_no_tool_of_ours(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://mine.example/v1")
    DIVERTED.divert({"OPENAI_API_KEY": "placeholder", "OPENAI_BASE_URL": "http://127.0.0.1:1/s"})
    try:
        assert Key.find_own("openai") is None
        assert shell("echo $OPENAI_BASE_URL", ToolContext()).content == "https://mine.example/v1\n"
    finally:
        DIVERTED.restore()


def test_runs_of_agents_displace_no_taped_call_of_their_cell():
    records = [{"id": str(n), "execution": str(n), "started": float(n)} for n in range(1, 6)]
    call = {"id": "call", "execution": "0", "started": 0.5, "tape": 1}
    kept = CellRecords([call, *records]).select_kept(UserKey())
    assert "call" in [r["id"] for r in kept]
    assert len(kept) < 6


@pytest.mark.long
@pytest.mark.kernel
def test_a_trusted_record_with_nonsense_for_its_time_is_served(recorded, monkeypatch):
    nb = json.loads(recorded.read_text())
    for record in nb["metadata"]["agent_nb"]["runs"]["cell3"]:
        record.pop("signature", None)
        record |= {"started": "soon", "ordinal": "first"}
        record["hash"] = record_hash(record)
    recorded.write_text(json.dumps(nb))
    monkeypatch.setenv("AGENT_NB_TRUST_RECORD", "1")
    outcome = execute_notebook(recorded, ExecutionOptions(rerun="replay"))
    assert outcome.failure == ""


PLAIN = "import os\nbefore = os.environ['OPENAI_BASE_URL']"


@pytest.mark.kernel
def test_a_notebook_without_a_line_of_ours_is_recorded_and_replayed(provider, tmp_path):
    path = write(tmp_path / "n.ipynb", PLAIN, LIBRARY, "print(ask('hi'))")
    outcome = execute_notebook(path, ExecutionOptions(rerun="live", tape=True))
    assert outcome.failure == ""
    outcome.write(path, over=True)
    assert len(taped(path)) == 1
    provider.server.close()
    report = check_notebook(path)
    assert not [p.text for p in report.problems]
    assert report.runs == 1


@pytest.mark.long
@pytest.mark.kernel
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("code", "# %agent tape\nx = 1  # or %config AgentMagics.tape = True"),
        ("code", "%load_ext agent_nb\n%config AgentMagics.tape = False\n%agent tape off"),
        ("markdown", "Start with\n\n    %agent tape"),
    ],
    ids=["a comment", "off", "a text"],
)
def test_what_starts_no_tape_leaves_it_on_for_the_recorded_calls(kind, text, provider, tmp_path):
    path = write(tmp_path / "n.ipynb", PLAIN, LIBRARY, "print(ask('hi'))")
    execute_notebook(path, ExecutionOptions(rerun="live", tape=True)).write(path, over=True)
    nb = json.loads(path.read_text())
    more = {"outputs": [], "execution_count": None} if kind == "code" else {}
    nb["cells"].append({"cell_type": kind, "id": "more", "metadata": {}, "source": text, **more})
    path.write_text(json.dumps(nb))
    assert not [p.text for p in check_notebook(path).problems if "ask" in p.text]
    assert len(provider.asked) == 1


@pytest.mark.long
@pytest.mark.kernel
def test_a_notebook_that_needs_the_tape_is_recorded_anew(provider, tmp_path):
    path = write(tmp_path / "n.ipynb", PLAIN, LIBRARY, "print(ask('hi'))")
    execute_notebook(path, ExecutionOptions(rerun="live", tape=True)).write(path, over=True)
    record(path)
    assert len(provider.asked) == 2
    assert len(taped(path)) == 1


@pytest.mark.long
@pytest.mark.kernel
def test_the_tape_of_the_options_does_not_hide_that_of_the_notebook(provider, tmp_path):
    path = write(tmp_path / "n.ipynb", PLAIN, TAPE + "\nprint(before)", LIBRARY, "ask('hi')")
    outcome = execute_notebook(path, ExecutionOptions(rerun="live", tape=True))
    assert outcome.failure == ""
    assert "already loaded" not in json.dumps(outcome.notebook)
    record(path)
    assert printed(execute_notebook(path, ExecutionOptions(rerun="replay")))[0].endswith(
        provider.server.url + "\n"
    )


@pytest.mark.kernel
def test_the_command_line_records_with_the_tape(provider, tmp_path):
    path = write(tmp_path / "n.ipynb", LIBRARY, "print(ask('hi'))")
    assert main(["run", "--live", "--tape", "--inplace", str(path)]) == 0
    assert len(taped(path)) == 1


def test_the_configuration_switches_the_tape(provider, loaded):
    def address():
        return os.environ["OPENAI_BASE_URL"]

    before = address()
    loaded.run_cell("%config AgentMagics.tape = True").raise_error()
    first = address()
    loaded.run_cell("%config AgentMagics.tape = False").raise_error()
    assert first != before
    assert address() == before


@pytest.mark.parametrize("start", ["%agent tape", "%config AgentMagics.tape = True"])
def test_the_command_and_the_configuration_switch_one_tape(start, provider, loaded):
    before = os.environ["OPENAI_BASE_URL"]
    for on, off in [(start, "%agent tape off"), (start, "%config AgentMagics.tape = False")] * 2:
        loaded.run_cell(on).raise_error()
        assert os.environ["OPENAI_BASE_URL"] != before
        loaded.run_cell(off).raise_error()
        assert os.environ["OPENAI_BASE_URL"] == before


def test_the_variable_starts_the_tape_with_the_extension(provider, shell, monkeypatch):
    before = os.environ["OPENAI_BASE_URL"]
    monkeypatch.setenv("AGENT_NB_TAPE", "1")
    shell.run_line_magic("load_ext", "agent_nb")
    assert os.environ["OPENAI_BASE_URL"] != before
    shell.run_line_magic("unload_ext", "agent_nb")
    assert os.environ["OPENAI_BASE_URL"] == before


def test_an_extension_that_is_reloaded_says_that_it_ends_the_tape(provider, loaded, capsys):
    loaded.run_cell("%agent tape").raise_error()
    capsys.readouterr()
    for _ in range(2):
        loaded.run_cell("%reload_ext agent_nb").raise_error()
    assert capsys.readouterr().out.count("The tape is off.") == 1


ADDRESS = """\
from agent_nb import tape
os.environ["OPENAI_BASE_URL"] = tape.url({address!r})
print(ask("hi"))
"""


@pytest.mark.long
@pytest.mark.kernel
def test_a_server_named_by_its_address_is_replayed_at_another_port(provider, tmp_path, monkeypatch):
    config = tmp_path / "config.toml"
    host = provider.server.host
    config.write_text(f'[prices."{host}/gpt-5*"]\ninput = 100.0\noutput = 1000.0\n')
    monkeypatch.setenv("AGENT_NB_CONFIG", str(config))
    monkeypatch.delenv("OPENAI_BASE_URL")
    cell = ADDRESS.format(address=provider.server.url)
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, cell)
    record(path)
    (call,) = runs(path)
    assert call.log[0].model == f"{host}/gpt-5-mini"
    assert call.usage.cost == pytest.approx((11 * 100 + 7 * 1000) / 1e6)
    assert not check_notebook(path).problems
    change(path, 2, ADDRESS.format(address="http://127.0.0.1:9/v1"))
    assert not check_notebook(path).problems
    change(path, 2, ADDRESS.format(address="http://127.0.0.1:9/v2"))
    assert "/v2 POST /chat/completions is not recorded" in check_notebook(path).problems[0].text
    assert len(provider.asked) == 1
