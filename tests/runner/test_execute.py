"""Notebooks executed from the command line: the file afterwards, and the output."""

import base64
import json
import os
import resource
import sys

import nbformat
import pytest
from helpers.paths import python_path
from helpers.scripts import calling
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from agent_nb.cli.main import main
from agent_nb.host import launch
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import RECORD_MIME, log_of
from agent_nb.runner import cell_client, early_kernels, kernels
from agent_nb.runner.cell_client import Client
from agent_nb.runner.client import Outcome, read_end

pytestmark = pytest.mark.kernel

SCRIPT = [
    '<think>I list them.</think><execute>[{"name": "python", "args": {"code": "print(6 * 7)"}}]</execute>',
    "There is **42**.",
]
SECRET = "abcdefghijklmnopqrstuvwxyz0123"


@pytest.fixture(autouse=True)
def reachable(monkeypatch, tmp_path):
    """Let kernels find this checkout, whether it is installed or not."""
    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


@pytest.fixture
def notebook(tmp_path):
    """Write a notebook of code cells, with its script beside it; return its path."""

    def notebook(*sources, script=SCRIPT, **metadata):
        (tmp_path / "script.json").write_text(json.dumps({"turns": script}))
        cells = [new_markdown_cell("# A title"), new_code_cell("%load_ext agent_nb", id="load")]
        cells += [new_code_cell(source, id=f"cell{i}") for i, source in enumerate(sources)]
        path = tmp_path / "n.ipynb"
        nbformat.write(new_notebook(cells=cells, metadata=metadata), path)
        return path

    return notebook


AGENT = "%%agent -m scripted/script.json -t python --approve auto\nHow many?"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_run_writes_an_executed_copy_with_its_record(notebook, capsys):
    path = notebook(AGENT, "_agent.answer")
    before = path.read_bytes()
    assert main(["run", "--live", str(path)]) == 0
    out = capsys.readouterr().out
    assert "n.run.ipynb: ok" in out
    assert "cell 3 · ok · scripted/script.json · 2 turns · 1 call" in out
    assert path.read_bytes() == before
    nb = read(path.with_name("n.run.ipynb"))
    [record] = nb["metadata"]["agent_nb"]["runs"]["cell0"]
    types = [e.type for e in log_of(record)]
    assert {
        "run_start",
        "user",
        "think",
        "call",
        "started",
        "result",
        "respond",
        "metric",
        "end",
    } <= set(types)
    [output] = nb["cells"][2]["outputs"]
    assert "text/html" in output["data"]
    assert "42" in "".join(output["data"]["text/html"])
    assert output["data"][RECORD_MIME] == {"version": 1, "ref": record["id"]}
    assert "widget-view" not in json.dumps(nb)
    assert "widgets" not in nb["metadata"]
    assert "There is **42**." in json.dumps(nb["cells"][3]["outputs"])


@pytest.mark.long
def test_an_offered_cell_is_an_event_with_a_card_without_a_front_end(notebook, capsys):
    path = notebook(
        "%%agent -m scripted/script.json -t add_cell\nOffer.",
        "%agent cell 1",
        script=[calling("add_cell", code="df.head()", why="To see it."), "Offered."],
    )
    sources = [cell["source"] for cell in read(path)["cells"]]
    assert main(["run", "--live", str(path)]) == 0
    done = path.with_name("n.run.ipynb")
    nb = read(done)
    assert [cell["source"] for cell in nb["cells"]] == sources
    [output] = nb["cells"][2]["outputs"]
    assert "A cell for you" in "".join(output["data"]["text/html"])
    [record] = nb["metadata"]["agent_nb"]["runs"]["cell0"]
    assert [e.args["code"] for e in log_of(record) if e.type == "call"] == ["df.head()"]
    assert main(["test", "--trust-record", str(done)]) == 0
    assert [cell["source"] for cell in read(done)["cells"]] == sources


@pytest.mark.long
def test_what_a_tool_displays_is_on_the_exported_page(notebook, tmp_path):
    shows = "class Plot:\n    def _repr_png_(self): return b'\\x89PNG a plot'\nfrom IPython.display import display"
    path = notebook(
        shows,
        AGENT,
        script=[
            calling("python", code="display(Plot())"),
            "See $x^2$.",
        ],
    )
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    assert main(["export", str(path), "-o", str(tmp_path / "page.html")]) == 0
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"data:image/png;base64,{base64.b64encode(b'%cPNG a plot' % 0x89).decode()}" in html
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in html


@pytest.mark.long
def test_the_executed_notebook_is_valid(notebook):
    path = notebook(AGENT)
    main(["run", str(path)])
    nbformat.validate(nbformat.read(path.with_name("n.run.ipynb"), as_version=4))


def test_running_in_place_again_keeps_both_runs(notebook):
    path = notebook(AGENT)
    assert main(["run", "--inplace", str(path)]) == 0
    script = {"turns": [SCRIPT[0], "It is 42."]}
    path.with_name("script.json").write_text(json.dumps(script))
    assert main(["run", "--inplace", "--live", str(path)]) == 0
    assert len(read(path)["metadata"]["agent_nb"]["runs"]["cell0"]) == 2


@pytest.mark.long
def test_a_record_with_half_a_character_is_not_played_and_all_else_runs(notebook):
    path = notebook(AGENT)
    assert main(["run", "--inplace", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert "There is **42**." in text
    path.write_text(text.replace("There is **42**.", "There is \\ud800."), encoding="utf-8")
    assert main(["run", "--inplace", str(path)]) == 0
    assert "There is **42**." in path.read_text(encoding="utf-8")


def test_a_failed_cell_is_exit_code_1_and_the_notebook_is_written(notebook, capsys):
    path = notebook(AGENT, "%%agent -m nobody/x\nhi", "'never'")
    assert main(["run", str(path)]) == 1
    assert "no provider 'nobody'" in capsys.readouterr().err
    nb = read(path.with_name("n.run.ipynb"))
    assert list(nb["metadata"]["agent_nb"]["runs"]) == ["cell0"]
    assert nb["cells"][3]["outputs"][-1]["ename"] == "AgentCellError"
    assert nb["cells"][4]["outputs"] == []


@pytest.mark.long
def test_a_run_that_ends_in_an_error_is_exit_code_1(notebook, capsys):
    path = notebook(AGENT, script=[{"error": {"status": 418, "message": "I am a teapot"}}])
    assert main(["run", str(path)]) == 1
    captured = capsys.readouterr()
    assert "error · scripted/script.json" in captured.out
    assert "teapot" in captured.err


STOPPER = """
import threading, time
from agent_nb.agent import REGISTRY
def stop():
    while not (runs := REGISTRY.list_open_runs()) or not len(runs[-1]):
        time.sleep(0.01)
    REGISTRY.reach(runs[-1]).cancel()
threading.Thread(target=stop, daemon=True).start()
"""


def test_a_stopped_cell_fails_the_notebook_and_no_later_cell_runs(notebook, capsys):
    path = notebook(STOPPER, AGENT, "after = 1", script=[{"text": "late", "delay": 60}])
    assert main(["run", "--live", str(path)]) == 1
    assert "AgentStopped: stopped (from elsewhere)" in capsys.readouterr().err
    written = read(path.with_name("n.run.ipynb"))
    assert [cell["execution_count"] for cell in written["cells"][1:]] == [1, 2, 3, None]
    (record,) = [runs[-1] for runs in NotebookRuns(written).by_cell().values()]
    assert (record["status"], log_of(record)[-1].status) == ("interrupted", "interrupted")


def test_in_place_a_file_that_was_saved_meanwhile_stays(notebook, capsys):
    saving = "import pathlib; file = pathlib.Path('n.ipynb'); text = file.read_text()"
    path = notebook(AGENT, f"{saving}; file.write_text(text.replace('A title', 'My title'))")
    assert main(["run", "--live", "--inplace", str(path)]) == 1
    assert "has changed while it ran: its runs are in " in capsys.readouterr().err
    assert read(path)["cells"][0]["source"] == ["# My title"]
    copy = read(path.with_name("n.run.ipynb"))
    assert NotebookRuns(copy).by_cell().keys() == {"cell0"}


def test_cells_that_did_not_run_show_no_run_and_lose_none(notebook, capsys):
    awaited = "from agent_nb import Agent\nawait Agent('scripted/script.json')('How many?')"
    path = notebook(awaited, "", AGENT, script=["Hello."])
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    nb = read(path)
    nb["cells"][2]["metadata"]["tags"] = ["skip-execution"]
    nb["cells"][3]["source"] = "1 / 0"
    path.write_text(json.dumps(nb))
    capsys.readouterr()
    assert main(["run", "--live", "--inplace", "--json", str(path)]) == 1
    assert json.loads(capsys.readouterr().out)[0]["runs"] == []
    assert NotebookRuns(read(path)).by_cell().keys() == {"cell0", "cell2"}


@pytest.mark.long
def test_json_for_programs(notebook, capsys):
    path = notebook(AGENT)
    main(["run", "--json", str(path)])
    [report] = json.loads(capsys.readouterr().out)
    assert report["ok"]
    assert report["output"].endswith("n.run.ipynb")
    assert [(r["cell"], r["status"], r["turns"], r["calls"]) for r in report["runs"]] == [
        (3, "ok", 2, 1)
    ]


def test_run_executes_no_copy_that_it_writes(notebook, capsys):
    path = notebook("1 + 1")
    copy = path.with_name("n.run.ipynb")
    copy.write_bytes(path.read_bytes())
    assert main(["run", "--json", str(path), str(copy)]) == 0
    assert [r["notebook"] for r in json.loads(capsys.readouterr().out)] == [str(path)]


def test_a_copy_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "n.run.ipynb"
    path.write_text("{}")
    outcome = Outcome(new_notebook(cells=[new_code_cell("x" * 10_000)]), [])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, limits[1]))  # as a full disk
    try:
        with pytest.raises(OSError, match="too large"):
            outcome.write(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [p.name for p in tmp_path.iterdir()] == ["n.run.ipynb"]
    assert path.read_text() == "{}"


@pytest.mark.parametrize("name", ["x" * 300, "folder/", "x" * 300 + "/n"])
def test_an_output_that_cannot_be_a_file_is_known_before(notebook, capsys, name):
    path = notebook("1 + 1")
    (path.parent / "folder" / path.name).mkdir(parents=True)
    assert main(["run", "-o", f"{path.parent}/{name}", str(path)]) == 2
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert name[:6] in err
    assert out == ""


def test_a_file_that_cannot_be_read_is_named_once(tmp_path, capsys):
    paths = [tmp_path / "a.ipynb", tmp_path / "b.ipynb"]
    for path in paths:
        path.write_text("{")
    assert main(["run", *map(str, paths)]) == 1
    err = capsys.readouterr().err
    assert [err.count(str(path)) for path in paths] == [1, 1]


def test_of_what_a_dead_kernel_has_written_only_the_end_is_read(tmp_path):
    path = tmp_path / "output"
    with path.open("w+b") as file:
        file.truncate(1 << 40)  # larger than the memory, and takes no space
        file.seek(0, os.SEEK_END)
        file.write("last words: …".encode())
        assert read_end(file).endswith("last words: …")


def test_progress_goes_to_stderr(notebook, capsys):
    main(["run", str(notebook(AGENT))])
    assert "3/3 n.ipynb: %%agent -m scripted/script.json" in capsys.readouterr().err


@pytest.mark.long
def test_the_model_of_the_command_line_is_used_in_every_cell(notebook, capsys):
    path = notebook("%%agent -m nobody/x\nHow many?", script=["Six."])
    assert main(["run", "--model", "scripted/script.json", str(path)]) == 0
    assert "scripted/script.json" in capsys.readouterr().out


@pytest.mark.long
def test_a_cell_that_takes_too_long_fails(notebook, capsys):
    path = notebook(AGENT, script=[{"text": "x", "delay": 60}])
    assert main(["run", "--timeout", "4", str(path)]) == 1  # a busy machine loads for a second
    assert (
        'cell 3 (cell0) "How many?": it took longer than 4 s and was stopped. Give it more time'
        in capsys.readouterr().err
    )
    assert path.with_name("n.run.ipynb").exists()


def test_a_cell_may_take_a_part_of_a_second(notebook, capsys):
    path = notebook("import time\ntime.sleep(60)")
    assert main(["run", "--timeout", "1.5", str(path)]) == 1
    assert "it took longer than 1.5 s and was stopped." in capsys.readouterr().err


def test_a_dead_kernel_is_exit_code_1_and_its_last_output_is_shown(notebook, capsys):
    path = notebook("import os, sys\nos.write(2, b'out of memory, or so')\nos._exit(1)")
    assert main(["run", str(path)]) == 1
    assert "out of memory, or so" in capsys.readouterr().err


@pytest.mark.long
def test_a_streamed_text_view_keeps_its_record_too(notebook):
    path = notebook(AGENT.replace("-m", "--view text -m"))
    assert main(["run", str(path)]) == 0
    nb = read(path.with_name("n.run.ipynb"))
    assert list(nb["metadata"]["agent_nb"]["runs"]) == ["cell0"]
    assert "42" in json.dumps(
        [o["text"] for o in nb["cells"][2]["outputs"] if o["output_type"] == "stream"]
    )


@pytest.mark.long
def test_no_record_keeps_the_run_out_of_the_file(notebook, capsys):
    path = notebook(AGENT.replace("-m", "--no-record -m"))
    assert main(["run", str(path)]) == 0
    assert "cell 3 · ok" in capsys.readouterr().out
    nb = read(path.with_name("n.run.ipynb"))
    assert NotebookRuns(nb).by_cell() == {}
    assert RECORD_MIME not in json.dumps(nb)


@pytest.mark.long
def test_a_notebook_with_a_missing_kernel_runs_on_the_default_one(notebook):
    path = notebook(
        AGENT, kernelspec={"name": "of-somebody-else", "display_name": "x", "language": "python"}
    )
    assert main(["run", str(path)]) == 0


def test_a_kernel_that_is_asked_for_and_not_here_is_exit_code_2(notebook, capsys):
    assert main(["run", "--kernel", "nowhere", str(notebook(AGENT))]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_plain_nbclient_works_and_keeps_the_record_in_the_output(notebook):
    path = notebook(AGENT)
    nb = nbformat.read(path, as_version=4)
    NotebookClient(nb, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert [log_of(r[0])[-1].status for r in NotebookRuns(nb).by_cell().values()] == ["ok"]


@pytest.mark.long
def test_what_a_tool_prints_is_saved_without_keys(notebook, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    tool = """import logging, os, sys, threading
from agent_nb import tool
logging.basicConfig(stream=sys.stderr, force=True)
def look():
    key = os.environ["SOME_API_KEY"]
    print("printed", key)
    print(*key, sep="", file=sys.stderr)
    thread = threading.Thread(target=print, args=["in a thread", key])
    thread.start()
    thread.join()
    logging.warning("logged %s", key)
    return "done"
@tool(thread="main")
def main():
    print("on the main thread", os.environ["SOME_API_KEY"])
"""
    batch = [{"name": "look", "args": {}}, {"name": "main", "args": {}}]
    script = [f"<execute>{json.dumps(batch)}</execute>", "Done."]
    path = notebook(
        tool, "%%agent -m scripted/script.json -t look,main --approve auto\ngo", script=script
    )
    assert main(["run", str(path)]) == 0
    text = path.with_name("n.run.ipynb").read_text(encoding="utf-8")
    assert SECRET not in text
    assert SECRET[:12] not in text
    for place in ("printed", "logged", "on the main thread"):
        assert f"{place} [redacted SOME_API_KEY]" in text


def test_a_key_is_nowhere_in_the_saved_notebook(notebook, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    code = "import os\nfrom IPython.display import display, HTML\nkey = os.environ['SOME_API_KEY']\nprint(key)\ndisplay(HTML(key))\nkey"
    call = f"<execute>{json.dumps([{'name': 'python', 'args': {'code': code}}])}</execute>"
    script = [call, {"chunks": ["the key is ", SECRET[:11], SECRET[11:], " indeed"]}]
    prompt = "%%agent -m scripted/script.json -t python --approve auto\nkey: {{ __import__('os').environ['SOME_API_KEY'] }}"
    failing = "%%agent -m scripted/script.json\n{{ {}[__import__('os').environ['SOME_API_KEY']] }}"
    path = notebook(prompt, failing, script=script)
    assert main(["run", str(path)]) == 1
    text = path.with_name("n.run.ipynb").read_text(encoding="utf-8")
    assert SECRET not in text
    assert SECRET[:11] not in text
    assert SECRET[11:] not in text
    assert "[redacted SOME_API_KEY]" in text


LOOK = """
import json, os, subprocess, sys
from pathlib import Path
def seen():
    child = subprocess.run([sys.executable, "-c", "import os; print(os.environ.get('AGENT_NB_PROOF', ''))"], capture_output=True, text=True)
    return [os.environ.get("AGENT_NB_PROOF", ""), child.stdout.strip()]
before = seen()
import agent_nb
Path(f"{Path(os.environ['JPY_SESSION_NAME']).stem}.json").write_text(json.dumps([before, seen(), os.environ.get("AGENT_NB_STRICT", "")]))
"""


def looking(folder, *names):
    """Write notebooks that look for the secret of their kernel; return their paths."""
    paths = [folder / f"{name}.ipynb" for name in names]
    for path in paths:
        nbformat.write(new_notebook(cells=[new_code_cell(LOOK, id="look")]), path)
    return paths


@pytest.mark.long
def test_each_kernel_has_its_own_secret_which_the_import_takes_away(tmp_path, monkeypatch):
    monkeypatch.setattr(
        launch.Launch,
        "make_secret",
        lambda made=launch.Launch.make_secret: kept.append(made()) or kept[-1],
    )
    kept, paths = [], looking(tmp_path, "a", "b", "c")
    assert main(["run", "-j", "3", *map(str, paths)]) == 0
    told = [json.loads(path.with_suffix(".json").read_text()) for path in paths]
    assert sorted(before for (before, _), _, _ in told) == sorted(kept)
    assert len(set(kept)) == 3
    assert [after for _, after, _ in told] == [["", ""]] * 3
    assert launch.Launch.PROOF not in os.environ


def test_a_runner_does_not_pass_its_own_secret_on(tmp_path, monkeypatch):
    """A runner started in a kernel may inherit a secret in its environment."""
    monkeypatch.setenv(launch.Launch.PROOF, "0" * 64)
    (path,) = looking(tmp_path, "a")
    assert main(["run", str(path)]) == 0
    ((before, _), _, strict) = json.loads(path.with_suffix(".json").read_text())
    assert before not in ("", "0" * 64)
    assert strict == ""


@pytest.mark.long
def test_a_kernel_that_is_restarted_still_knows_its_runner(tmp_path):
    cell = "import agent_nb\nassert agent_nb.host.launch.LAUNCH.proves(get_ipython().kernel.get_parent()['metadata']['agent_nb']['proof'])"

    class Restarting(Client):
        async def async_execute_cell(self, cell, cell_index, **options):
            if cell_index == 1:
                await self.km.restart_kernel(now=True)
                await self.kc.wait_for_ready(timeout=60)
            return await super().async_execute_cell(cell, cell_index, **options)

    nb = new_notebook(cells=[new_code_cell(cell, id="a"), new_code_cell(cell, id="b")])
    Restarting(
        nb,
        {},
        lambda *_: None,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()


@pytest.mark.few(1)
@pytest.mark.parametrize(("deaths", "failed"), [(2, False), (9, True)])
def test_a_kernel_that_ends_before_it_is_ready_starts_again_a_few_times(
    notebook, monkeypatch, capsys, deaths, failed
):
    started, plain = [], kernels.use_own_launcher

    def launched(manager):
        plain(manager)
        started.append(manager)
        if len(started) <= deaths:
            manager.kernel_spec.argv = [
                sys.executable,
                "-c",
                "raise SystemExit('the port is taken')",
            ]

    for module in (cell_client, early_kernels):
        monkeypatch.setattr(module, "use_own_launcher", launched)
    assert main(["run", "--live", str(notebook(AGENT))]) == failed
    assert len(started) == 3
    told = capsys.readouterr().err
    assert ("The kernel did not start" in told, "the port is taken" in told) == (failed, failed)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "lost", ["import os; os.environ.pop('AGENT_NB_PROOF', None)", "import os; os.environ.clear()"]
)
def test_a_test_whose_secret_was_lost_goes_live_no_more_than_any(notebook, capsys, lost):
    """The secret is read before the first cell; without a home the user's own key is lost."""
    path = notebook(AGENT)
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    nb = nbformat.read(path, as_version=4)
    nb.cells.insert(1, new_code_cell(lost, id="lost"))
    nb.cells[-1].source = AGENT.replace("-m", "--live -m")
    nbformat.write(nb, path)
    status = main(["test", str(path)])
    told = capsys.readouterr().out
    assert status == int("clear" in lost)
    assert ("you have not signed" in told) is ("clear" in lost)


def test_what_a_prompt_points_at_is_compared_in_a_test(notebook, tmp_path, capsys):
    (tmp_path / "visits.csv").write_text("day;guests\nMon;1\n")
    (tmp_path / "notes.md").write_text("one")
    agent = AGENT.replace("\nHow", " --attach visits.csv\nRead @notes.md and @cell:2. How")
    path = notebook("x = 1", agent, "visits.shape")
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    changed = read(path)
    changed["cells"].insert(1, {**changed["cells"][1], "id": "new", "source": "pass"})
    path.write_text(json.dumps(changed))  # from now on the cell has the number 3
    assert main(["test", str(path)]) == 0
    (tmp_path / "notes.md").unlink()
    (tmp_path / "visits.csv").write_text("day;guests\nMon;2\n")
    changed["cells"][3]["source"] = "x = 2"
    path.write_text(json.dumps(changed))
    assert main(["test", str(path)]) == 1
    out = capsys.readouterr().out
    for change in ("`@notes.md` is gone", "`visits.csv` changed", "`@cell:2` was edited"):
        assert change in out
