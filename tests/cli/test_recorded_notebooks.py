"""`jupyter agent-nb test` and other commands on recorded runs."""

import json
import re
import shutil
from importlib.metadata import entry_points
from pathlib import Path

import pandas as pd
import pytest
from helpers.marks import starts
from helpers.notebooks import code_cell, write
from helpers.scripts import batch, calling

import agent_nb
from agent_nb import decode
from agent_nb.cli.main import main
from agent_nb.host import plugins
from agent_nb.record.ipynb import load_notebook
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import record_hash
from agent_nb.rows.recorded_runs import runs

pytest_plugins = ["pytester"]
SETUP = "%load_ext agent_nb\nfrom agent_nb import Scripted, tool\nbase = 40"
CALL = calling("python", code="base + 2")
MODELS = f"one = Scripted([{CALL!r}, 'It is 42.'])\ntwo = Scripted(['Yes.'])"
FIRST = "%%agent -m one -t python --approve auto\nWhat is base + 2?"
COMMAND = re.compile(r"jupyter agent-nb [\w /.-]*(?:ipynb|NOTEBOOK)")
SECOND = "%%agent -m two\nAre you sure?"


def edit(path, number, old, new):
    nb = json.loads(path.read_text())
    source = "".join(nb["cells"][number - 1]["source"])
    assert old in source
    nb["cells"][number - 1]["source"] = source.replace(old, new)
    path.write_text(json.dumps(nb, indent=1))


def tamper(path, how):
    """Change the record of the third cell."""
    nb = json.loads(path.read_text())
    (record,) = nb["metadata"]["agent_nb"]["runs"]["cell3"]
    events = record["events"]
    if how == "byte":
        events[:] = json.loads(json.dumps(events).replace("It is 42.", "It is 43."))
    elif how == "hash":
        record["hash"] = "sha256:" + "0" * 64
    elif how == "gone":
        del events[-2]
    else:
        events[-2], events[-3] = events[-3], events[-2]
    path.write_text(json.dumps(nb))


@pytest.fixture(scope="module")
@starts("kernel")
def made(tmp_path_factory):
    """Return a recorded notebook, made once, and the folder with the secret that signed it."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "jupyter"))
        path = write(folder / "n.ipynb", SETUP, MODELS, FIRST, SECOND)
        assert main(["run", "--live", "--inplace", str(path)]) == 0
    return path


@pytest.fixture
def notebook(made, tmp_path, monkeypatch):
    """Return a copy of the recorded notebook, for the user who made it."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(made.parent / "jupyter"))
    return shutil.copy(made, tmp_path / "n.ipynb")


class TestReplaying:
    def test_run_says_which_cells_it_replayed(self, notebook, capsys):
        edit(notebook, 4, "sure?", "quite sure?")
        assert main(["run", str(notebook)]) == 0
        first, second = capsys.readouterr().out.splitlines()[1:]
        assert first.startswith("  cell 3 · ok, replayed · ")
        assert second.startswith("  cell 4 · ok · ")

    def test_a_recorded_notebook_passes(self, notebook, capsys):
        before = notebook.read_bytes()
        assert main(["test", str(notebook)]) == 0
        assert "ok, 2 runs replayed" in capsys.readouterr().out
        assert notebook.read_bytes() == before

    @pytest.mark.long
    def test_executing_twice_yields_the_same_events_outputs_and_record(self, notebook):
        for _ in range(2):
            assert main(["run", "--inplace", "--rerun", "replay", str(notebook)]) == 0
            once = load_notebook(notebook)
            outputs = json.dumps([c["outputs"] for c in once["cells"]], sort_keys=True)
            if _ == 0:
                before, first = once, outputs
        assert json.dumps(once["metadata"]["agent_nb"], sort_keys=True) == json.dumps(
            before["metadata"]["agent_nb"], sort_keys=True
        )
        assert outputs == first

    @pytest.mark.long
    def test_the_metadata_of_a_replay_is_byte_for_byte_that_of_the_recording(self, notebook):
        before = json.dumps(load_notebook(notebook)["metadata"]["agent_nb"])
        main(["run", "--inplace", str(notebook)])
        assert json.dumps(load_notebook(notebook)["metadata"]["agent_nb"]) == before

    def test_a_drift_names_the_cell_and_the_first_difference(self, notebook, capsys):
        edit(notebook, 1, "base = 40", "base = 41")
        assert main(["test", str(notebook)]) == 1
        told = capsys.readouterr().out
        assert 'cell 3 (cell3) "What is base + 2?"' in told
        assert re.search(r"event \d+, the result of python", told)
        assert "-42" in told
        assert "+43" in told
        assert "jupyter agent-nb run --inplace" in told

    def test_a_changed_prompt_is_stale_and_shown(self, notebook, capsys):
        edit(notebook, 4, "Are you sure?", "Are you very sure?")
        assert main(["test", str(notebook)]) == 1
        told = capsys.readouterr().out
        assert "cell 4" in told
        assert "stale (prompt changed)" in told
        assert "+Are you very sure?" in told

    @pytest.mark.long
    def test_a_changed_script_is_another_model(self, notebook, capsys):
        edit(notebook, 2, "Yes.", "No.")
        assert main(["test", str(notebook)]) == 1
        assert "stale (model changed)" in capsys.readouterr().out

    def test_a_cell_without_a_record_fails(self, notebook, capsys):
        nb = load_notebook(notebook)
        del nb["metadata"]["agent_nb"]["runs"]["cell4"]
        notebook.write_text(json.dumps(nb))
        assert main(["test", str(notebook)]) == 1
        assert 'cell 4 (cell4) "Are you sure?": there is no record' in capsys.readouterr().out

    @pytest.mark.few(1)
    @pytest.mark.parametrize("change", ["byte", "hash", "gone", "order"])
    def test_a_tampered_record_is_not_a_drift(self, notebook, capsys, change):
        tamper(notebook, change)
        assert main(["test", str(notebook)]) == 1
        told = capsys.readouterr().out
        assert "changed after it was recorded" in told
        assert "tampered" in told
        assert "another result" not in told
        assert main(["verify", str(notebook)]) == 1
        assert "cell cell3" in capsys.readouterr().out

    def test_a_tampered_record_gets_one_command_as_advice(self, notebook, capsys):
        tamper(notebook, "byte")
        assert main(["test", str(notebook)]) == 1
        told = capsys.readouterr().out
        commands = {line.replace(str(notebook), "NOTEBOOK") for line in COMMAND.findall(told)}
        assert commands == {"jupyter agent-nb run --inplace NOTEBOOK"}

    @pytest.mark.parametrize("command", ["test", "pack", "verify"])
    def test_records_of_a_newer_version_are_named_and_kept(self, notebook, capsys, command):
        nb = json.loads(notebook.read_text())
        nb["metadata"]["agent_nb"] |= {"version": 2, "new": [1]}
        notebook.write_text(json.dumps(nb))
        before = notebook.read_bytes()
        assert main([command, str(notebook)]) in (1, 2)
        said = capsys.readouterr()
        lines = [x for x in (said.out + said.err).splitlines() if "a newer agent_nb wrote" in x]
        assert len(lines) == 1
        assert "version 2; this one knows 1" in lines[0]
        assert "pip install -U jupyter-agent-nb" in lines[0]
        assert notebook.read_bytes() == before

    @pytest.mark.long
    def test_a_tampered_record_is_not_played_and_auto_says_so(self, notebook, capsys):
        tamper(notebook, "byte")
        assert main(["run", "--inplace", str(notebook)]) == 0
        (told,) = [
            o["text"]
            for o in load_notebook(notebook)["cells"][2]["outputs"]
            if o["output_type"] == "stream"
        ]
        assert "changed after it was made" in "".join(told)
        assert "drift" not in "".join(told)
        assert main(["test", str(notebook)]) == 0

    @pytest.mark.long
    @pytest.mark.few(1)
    @pytest.mark.parametrize("started", [9e9, 1.5e9, "9e9", 4e9, True])
    def test_a_forged_record_beside_the_users_changes_nothing(self, notebook, capsys, started):
        nb = load_notebook(notebook)
        listed = nb["metadata"]["agent_nb"]["runs"]["cell3"]
        forged = json.loads(
            json.dumps({**listed[0], "id": "forged", "started": started}).replace(
                "It is 42.", "It is 666."
            )
        )
        del forged["signature"]
        listed.insert(0, {**forged, "hash": record_hash(forged)})
        notebook.write_text(json.dumps(nb))
        assert main(["test", str(notebook)]) == 0
        assert main(["export", str(notebook), "--to", "text"]) == 0
        assert main(["run", "--inplace", str(notebook)]) == 0
        told = capsys.readouterr().out + json.dumps(load_notebook(notebook)["cells"])
        assert "It is 42." in told
        assert "It is 666." not in told

    @pytest.mark.long
    def test_a_failing_cell_without_agent_fails(self, notebook, capsys):
        edit(notebook, 1, "base = 40", "base = 40\n1 / 0")
        assert main(["test", str(notebook)]) == 1
        assert "ZeroDivisionError" in capsys.readouterr().out

    def test_another_user_must_trust_its_code(self, notebook, monkeypatch, tmp_path, capsys):
        monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "somebody"))
        assert main(["test", str(notebook)]) == 1
        assert "--trust-record" in capsys.readouterr().out
        assert main(["test", "--trust-record", str(notebook)]) == 0

    def test_json_for_programs(self, notebook, capsys):
        assert main(["test", "--json", str(notebook)]) == 0
        (report,) = json.loads(capsys.readouterr().out)
        assert (report["ok"], report["runs"]) == (True, 2)

    @pytest.mark.long
    def test_folders_and_several_at_a_time(self, notebook, capsys):
        shutil.copy(notebook, notebook.with_name("m.ipynb"))
        assert main(["test", "-j", "2", str(notebook.parent)]) == 0
        assert capsys.readouterr().out.count("ok, 2 runs") == 2

    def test_pytest_collects_notebooks(self, notebook, pytester, monkeypatch):
        monkeypatch.setenv("PYTHONPATH", str(Path(agent_nb.__file__).parents[1]))
        edit(notebook, 1, "base = 40", "base = 41")
        installed = entry_points(group="pytest11", name="agent_nb")
        plugin = (
            *(() if installed else ("-p", "agent_nb.runner.pytest_plugin")),
            "-p",
            "no:cacheprovider",
        )
        done = pytester.runpytest_subprocess(*plugin, "--agent-nb", str(notebook))
        done.assert_outcomes(failed=1)
        assert "+43" in done.stdout.str()
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # those of others start slowly
        plugin = ("-p", "agent_nb.runner.pytest_plugin", "-p", "no:cacheprovider")
        assert (
            pytester.runpytest_subprocess(*plugin, str(notebook.parent)).ret
            == pytest.ExitCode.NO_TESTS_COLLECTED
        )

    @pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
    def test_pytest_refuses_a_time_that_no_cell_can_take(self, seconds, pytester, monkeypatch):
        monkeypatch.setenv("PYTHONPATH", str(Path(agent_nb.__file__).parents[1]))
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        plugin = ("-p", "agent_nb.runner.pytest_plugin", "--agent-nb-timeout")
        done = pytester.runpytest_subprocess(*plugin, seconds)
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        assert "argument --agent-nb-timeout: it must be more than 0" in done.stderr.str()


SERVING = "import sys\nsys.modules['uvicorn'] = None\nimport agent_nb\nagent_nb.serve()"
SERVE = "pip install 'jupyter-agent-nb[serve]'"


class TestAnExtraThatIsNotInstalled:
    @pytest.fixture
    def serving(self, notebook):
        """Return the recorded notebook with a cell that needs the missing extra `serve`."""

        def serving():
            nb = json.loads(notebook.read_text())
            nb["cells"].insert(3, code_cell("serving", SERVING))
            notebook.write_text(json.dumps(nb))
            return notebook

        return serving

    @pytest.fixture
    def without(self, monkeypatch):
        """Hide the extra from this process, too."""
        from agent_nb.notebook.doctor.environment import EXTRAS

        hidden = EXTRAS["serve"]._replace(modules=("no_such_module",))
        monkeypatch.setitem(EXTRAS, "serve", hidden)

    def test_the_notebook_is_skipped_with_the_extra_it_needs(self, serving, without, capsys):
        path = serving()
        assert main(["test", str(path)]) == 0
        assert capsys.readouterr().out == f"{path}: skipped: needs the extra serve ({SERVE})\n"
        assert main(["test", "--json", str(path)]) == 0
        (report,) = json.loads(capsys.readouterr().out)
        assert (report["ok"], report["skipped"], report["runs"]) == (
            True,
            f"needs the extra serve ({SERVE})",
            1,
        )

    @pytest.mark.long
    def test_a_notebook_that_imports_the_extra_is_skipped_too(self, serving, without, capsys):
        path = serving()
        edit(path, 4, SERVING, "import no_such_module.server")
        assert main(["test", str(path)]) == 0
        assert capsys.readouterr().out == f"{path}: skipped: needs the extra serve ({SERVE})\n"

    @pytest.mark.long
    def test_where_the_extra_is_installed_nothing_is_skipped(self, serving, capsys):
        assert main(["test", str(serving())]) == 1
        assert "MissingExtra: The server is not installed" in capsys.readouterr().out

    @pytest.mark.long
    def test_a_library_that_is_here_and_broken_is_a_failure(self, serving, without, capsys):
        path = serving()
        # what uvicorn imports
        edit(path, 4, "sys.modules['uvicorn'] = None", "sys.modules['click'] = None")
        assert main(["test", str(path)]) == 1
        assert "ModuleNotFoundError: import of click halted" in capsys.readouterr().out

    @pytest.mark.long
    def test_a_drift_before_it_is_a_failure(self, serving, without, capsys):
        path = serving()
        edit(path, 1, "base = 40", "base = 41")
        assert main(["test", str(path)]) == 1
        told = capsys.readouterr().out
        assert "+43" in told
        assert SERVE in told

    @pytest.mark.long
    def test_a_cell_below_it_without_a_record_is_a_failure(self, serving, without, capsys):
        path = serving()
        nb = load_notebook(path)
        del nb["metadata"]["agent_nb"]["runs"]["cell4"]
        path.write_text(json.dumps(nb))
        assert main(["test", str(path)]) == 1
        assert 'cell 5 (cell4) "Are you sure?": there is no record' in capsys.readouterr().out

    @pytest.mark.long
    def test_pytest_skips_it_with_the_reason(self, serving, without, pytester):
        path = serving()
        installed = entry_points(group="pytest11", name="agent_nb")
        plugin = (
            *(() if installed else ("-p", "agent_nb.runner.pytest_plugin")),
            "-p",
            "no:cacheprovider",
        )
        done = pytester.runpytest_inprocess(*plugin, "--agent-nb", "-rs", str(path))
        done.assert_outcomes(skipped=1)
        assert "needs the extra serve" in done.stdout.str()


BOTH = batch(("answer", {"n": 2}), ("shout", {"text": "hm"}))
PLAIN = f"""%load_ext agent_nb
from agent_nb import Scripted
base = 40
found = []
def answer(n: int) -> int:
    "Add."
    found.append(base + n)
    return base + n
def shout(text: str) -> str:
    "No data of the notebook."
    return text.upper()
three = Scripted([{BOTH!r}, 'It is 42.'])
"""
THIRD = "%%agent -m three -t answer,shout\nWhat is the answer?\nSay it."


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Return a recorded notebook whose undeclared tool uses and changes variables."""
    folder = tmp_path_factory.mktemp("plain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "jupyter"))
        path = write(folder / "n.ipynb", PLAIN, THIRD, "assert found == [base + 2], found")
        assert main(["run", "--live", "--inplace", str(path)]) == 0
    return path


@pytest.fixture
@starts("kernel")
def functions(plain, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(plain.parent / "jupyter"))
    return shutil.copy(plain, tmp_path / "n.ipynb")


class TestFunctionsOfTheNotebook:
    @pytest.mark.long
    def test_with_the_same_data_it_passes_and_later_cells_find_what_it_did(self, functions, capsys):
        before = functions.read_bytes()
        assert main(["test", str(functions)]) == 0
        assert functions.read_bytes() == before
        record = json.dumps(load_notebook(functions)["metadata"]["agent_nb"])
        assert main(["run", "--inplace", str(functions)]) == 0
        assert json.dumps(load_notebook(functions)["metadata"]["agent_nb"]) == record

    @pytest.mark.long
    def test_with_other_data_it_fails_and_says_what_to_do(self, functions, capsys):
        edit(functions, 1, "base = 40", "base = 41")
        assert main(["test", str(functions)]) == 1
        told = capsys.readouterr().out
        assert 'cell 2 (cell2) "What is the answer?"' in told
        assert re.search(r"event \d+, the result of answer", told)
        assert "-42" in told
        assert "+43" in told
        assert "because it uses base, found of the notebook" in told
        assert f"jupyter agent-nb run --inplace {functions}" in told

    @pytest.mark.long
    def test_data_that_are_gone_are_a_drift(self, functions, capsys):
        edit(functions, 1, "base = 40", "")
        assert main(["test", str(functions)]) == 1
        assert "NameError" in capsys.readouterr().out

    @pytest.mark.long
    def test_a_declared_effect_wins(self, functions, capsys):
        edit(
            functions,
            1,
            "def answer",
            "from agent_nb import tool\n@tool(effect='none')\ndef answer",
        )
        edit(functions, 1, "base = 40", "base = 41")
        edit(functions, 3, "[base + 2]", "[]")
        assert main(["test", str(functions)]) == 0

    @pytest.mark.long
    def test_another_user_must_trust_their_arguments(
        self, functions, monkeypatch, tmp_path, capsys
    ):
        monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "somebody"))
        assert main(["test", str(functions)]) == 1
        told = capsys.readouterr().out
        assert "--trust-record" in told
        assert "AGENT_NB_TRUST_RECORD" in told
        assert main(["test", "--trust-record", str(functions)]) == 0


class TestParameters:
    @pytest.mark.kernel
    def test_a_parameter_is_set_before_the_notebook_runs(self, tmp_path):
        path = write(tmp_path / "p.ipynb", "n = 1", "print(n + 1)")
        nb = json.loads(path.read_text())
        nb["cells"][0]["metadata"]["tags"] = ["parameters"]
        path.write_text(json.dumps(nb))
        assert main(["run", "-p", "n=41", str(path)]) == 0
        done = load_notebook(path.with_name("p.run.ipynb"))
        assert "".join(done["cells"][2]["outputs"][0]["text"]) == "42\n"
        assert main(["run", "-p", "n=1", "-o", str(path), str(path.with_name("p.run.ipynb"))]) == 0
        assert len(load_notebook(path)["cells"]) == 3

    def test_an_invalid_parameter_is_exit_code_2(self, notebook, capsys):
        assert main(["run", "-p", "1x", str(notebook)]) == 2
        assert "NAME=VALUE" in capsys.readouterr().err


class TestReading:
    def test_events_as_csv_json_and_parquet(self, notebook, tmp_path, capsys):
        assert main(["events", str(notebook), "--format", "csv"]) == 0
        assert capsys.readouterr().out.startswith("turn,type,name,text,seconds")
        assert main(["events", str(notebook), "-o", str(tmp_path / "e.json")]) == 0
        assert len(json.loads((tmp_path / "e.json").read_text())) == sum(
            len(r.log) for r in runs(notebook)
        )
        pytest.importorskip("pyarrow")
        assert (
            main(["events", str(notebook), "--columns", "calls", "-o", str(tmp_path / "e.parquet")])
            == 0
        )
        assert list(pd.read_parquet(tmp_path / "e.parquet")["name"]) == ["python"]

    @pytest.mark.extra
    def test_events_as_a_spreadsheet_hold_no_formula(self, notebook, tmp_path, capsys):
        openpyxl = pytest.importorskip("openpyxl")
        text = notebook.read_text(encoding="utf-8").replace("It is 42.", "=1+1 is 42.")
        notebook.write_text(text, encoding="utf-8")
        assert main(["events", str(notebook), "-o", str(tmp_path / "e.xlsx")]) == 0
        cells = [c for row in openpyxl.load_workbook(tmp_path / "e.xlsx").active for c in row]
        assert not [cell.coordinate for cell in cells if cell.data_type == "f"]
        assert "'=1+1 is 42." in {cell.value for cell in cells}
        assert main(["events", str(notebook), "-o", str(tmp_path / "no" / "e.xlsx")]) == 2
        assert "cannot be written" in capsys.readouterr().err

    def test_events_of_chosen_columns(self, notebook, capsys):
        assert main(["events", str(notebook), "--columns", "type,text"]) == 0
        assert "It is 42." in capsys.readouterr().out
        assert main(["events", str(notebook), "--columns", "nonsense,x"]) == 2

    @pytest.mark.parametrize(
        ("form", "words"),
        [("markdown", "It is 42."), ("html", "<"), ("text", "It is 42."), ("canonical", '"type"')],
    )
    def test_export(self, notebook, capsys, form, words):
        assert main(["export", str(notebook), "--to", form]) == 0
        assert words in capsys.readouterr().out

    def test_export_to_a_file_by_its_ending_and_one_run(self, notebook, tmp_path):
        run = runs(notebook)[0].id
        assert main(["export", str(notebook), "--run", run, "-o", str(tmp_path / "x.ndjson")]) == 0
        lines = (tmp_path / "x.ndjson").read_text().splitlines()
        assert {json.loads(line)["run"] for line in lines} == {run}

    @pytest.mark.parametrize("codec", plugins.list_plugins("codecs"))
    def test_export_in_every_codec_to_stdout_by_a_dash(
        self, notebook, tmp_path, monkeypatch, capsys, codec
    ):
        monkeypatch.chdir(tmp_path)
        assert main(["export", str(notebook), "--to", codec, "-o", "-"]) == 0
        assert list(decode(capsys.readouterr().out.splitlines(keepends=True), codec))
        assert not (tmp_path / "-").exists()

    def test_losses_of_a_codec_are_reported(self, notebook, capsys):
        assert main(["export", str(notebook), "--to", "cogency"]) == 0
        assert "not written as cogency" in capsys.readouterr().err

    def test_exported_html_is_a_whole_page(self, notebook, tmp_path):
        assert main(["export", str(notebook), "-o", str(tmp_path / "x.html")]) == 0
        text = (tmp_path / "x.html").read_text(encoding="utf-8")
        assert text.startswith("<!doctype html>")
        assert 'charset="utf-8"' in text
        assert "<title>Agent runs: n.ipynb</title>" in text
        assert "<script" not in text

    def test_events_as_they_are_into_a_file(self, notebook, tmp_path):
        assert main(["events", str(notebook), "--json", "-o", str(tmp_path / "e.ndjson")]) == 0
        assert (
            json.loads((tmp_path / "e.ndjson").read_text().splitlines()[0])["type"] == "run_start"
        )

    def test_diff_takes_two_notebooks_at_most(self, notebook, capsys):
        assert main(["diff", *[str(notebook)] * 3]) == 2
        assert "not 3" in capsys.readouterr().err

    def test_export_in_an_unknown_form_names_the_known_ones(self, notebook, capsys):
        assert main(["export", str(notebook), "--to", "morse"]) == 2
        assert "markdown" in capsys.readouterr().err

    @pytest.mark.long
    def test_diff_of_two_notebooks(self, notebook, tmp_path, capsys):
        other = shutil.copy(notebook, tmp_path / "other.ipynb")
        assert main(["diff", str(notebook), str(other)]) == 0
        edit(other, 2, "Yes.", "No.")
        assert main(["run", "--inplace", str(other)]) == 0
        capsys.readouterr()
        assert main(["diff", str(notebook), str(other)]) == 1
        told = capsys.readouterr().out
        assert "- Yes." in told
        assert "+ No." in told

    def test_diff_of_one_notebook_compares_with_the_run_before(self, notebook, capsys):
        assert main(["diff", str(notebook)]) == 2
        edit(notebook, 4, "sure", "certain")
        assert main(["run", "--inplace", str(notebook)]) == 0
        capsys.readouterr()
        assert main(["diff", str(notebook)]) == 1
        assert "certain" in capsys.readouterr().out

    def test_verify_says_who_signed(self, notebook, monkeypatch, tmp_path, capsys):
        assert main(["verify", "--signed", str(notebook)]) == 0
        assert capsys.readouterr().out.count("signed by you") == 2
        monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "somebody"))
        assert main(["verify", str(notebook)]) == 0
        assert main(["verify", "--signed", str(notebook)]) == 1

    def test_verify_checks_notebooks_beside_one_that_cannot_be_read(
        self, notebook, tmp_path, capsys
    ):
        torn = tmp_path / "a.ipynb"
        torn.write_text("{")
        tamper(notebook, "byte")
        assert main(["verify", str(torn), str(notebook)]) == 1
        report = capsys.readouterr().out
        assert torn.name in report
        assert "cell cell3" in report

    def test_verify_finds_secrets_and_does_not_repeat_them(self, notebook, monkeypatch, capsys):
        monkeypatch.setenv("MY_API_KEY", "What is base + 2?")
        assert main(["verify", str(notebook)]) == 1
        told = capsys.readouterr().out
        assert re.search(r"a secret in event \d+ \(user\): MY_API_KEY", told)
        assert "What is" not in told


def test_no_home_folder_is_recorded(made):
    text = json.dumps(
        [r for listed in NotebookRuns(load_notebook(made)).by_cell().values() for r in listed]
    )
    assert str(made.parent) not in text
