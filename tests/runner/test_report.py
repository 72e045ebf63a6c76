"""Reports of `test`: lines, JSON, JUnit XML; which notebooks it takes."""

import json
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from agent_nb.cli.main import main
from agent_nb.cli.run import is_in_part
from agent_nb.errors import UsageError
from agent_nb.record import RunNumbers
from agent_nb.runner import client, project
from agent_nb.runner.notebook_check import check_notebook
from agent_nb.runner.report import (
    Problem,
    Report,
)

GOOD = Report(
    notebook="a.ipynb",
    runs=2,
    scripted=1,
    masked=("cell 1, clock: 'x' = 'y'",),
    unseen=("the code of json.dumps",),
)
WARNED = Report(
    notebook="w.ipynb",
    runs=1,
    warnings=(Problem(text="cell 2: `double` changed", cell=2, kind="changed", warning=True),),
    patterns=("cell 1, pattern 'x': 'a' = 'b'",),
)
BAD = Report(
    notebook="b c.ipynb",
    problems=(Problem(text="cell 3: \x1b[31mno\x00 \ud800 & <x>\nmore", cell=3),),
    seconds=1.25,
)
SKIPPED = Report(notebook="s.ipynb", skipped="needs the extra serve")


def test_a_report_counts_runs_and_scripts():
    assert str(GOOD) == "a.ipynb: ok, 2 runs replayed, 1 scripted, not replayed"


def test_what_was_masked_and_not_seen_is_listed_on_demand():
    assert GOOD.text(verbose=True).splitlines()[1:] == [
        "  masked: cell 1, clock: 'x' = 'y'",
        "  not seen: the code of json.dumps",
    ]


def test_warnings_and_patterns_of_the_project_are_always_listed():
    assert str(WARNED).splitlines()[1:] == [
        "  warning: cell 2: `double` changed",
        "  not compared: cell 1, pattern 'x': 'a' = 'b'",
    ]


def test_the_command_to_record_again_is_shown_only_if_it_helps():
    assert (
        str(BAD).splitlines()[-1]
        == "  To record it again: jupyter agent-nb run --inplace 'b c.ipynb'"
    )
    failed = Problem(text="cell 1: NameError", kind="error", stale=False)
    assert "record it again" not in str(Report(notebook="b.ipynb", problems=(failed,)))


def advice(*problems):
    return [line.split(": ", 1)[1] for line in Report(notebook="n.ipynb", problems=problems).advice]


def test_the_cheapest_command_that_helps_is_named():
    """Only what `run` alone would play again asks everything; a signature needs no model."""
    stale, drift = Problem(text="x", kind="stale"), Problem(text="x", kind="drift")
    picture, tool = Problem(text="x", kind="picture"), Problem(text="x", kind="changed")
    untrusted = Problem(text="x", kind="untrusted", stale=False)
    run, live = (f"jupyter agent-nb run{how} --inplace n.ipynb" for how in ("", " --live"))
    sign = "jupyter agent-nb sign n.ipynb"
    assert advice(stale, drift) == [run]
    assert advice(stale, picture) == advice(tool) == [live]
    assert advice(untrusted, untrusted) == [sign]
    assert advice(stale, untrusted) == [run, sign]


def test_json_gives_each_problem_with_cell_kind_and_message():
    found = json.loads(json.dumps(WARNED.to_builtins()))
    assert (found["ok"], found["problems"]) == (True, [])
    assert found["warnings"] == [
        {"cell": 2, "kind": "changed", "message": "cell 2: `double` changed"}
    ]
    assert BAD.to_builtins()["problems"][0].keys() == {"cell", "kind", "message"}
    assert BAD.to_builtins()["advice"] == list(BAD.advice)


@pytest.mark.parametrize("value", [1, "x", [1], ["x"], [["x"]], {"x": 1}])
def test_forged_numbers_of_a_run_do_not_crash_a_test(value, tmp_path, monkeypatch):
    nb = new_notebook(cells=[new_code_cell("1 + 1", id="a")])
    path = tmp_path / "n.ipynb"
    nbformat.write(nb, path)
    names = ("masked", "unseen", "changes", "differences", "drift")
    run = RunNumbers(run="r", ordinal=0, **dict.fromkeys(names, value))
    for numbers in (run, run | {"replayed": True}, run | {"drift": None, "replayed": True}):
        outcome = client.Outcome(nb, [(1, RunNumbers(numbers))], reached=1)
        monkeypatch.setattr(client, "execute_notebook", lambda *_, o=outcome, **__: o)
        assert check_notebook(path).notebook == str(path)


def test_several_notebooks_are_summed_up():
    assert (
        Report.summarize([GOOD, WARNED, BAD, SKIPPED])
        == "2 passed, 1 failed, 1 skipped: 3 runs replayed"
    )


def test_junit_xml_is_valid_whatever_a_kernel_says():
    root = ElementTree.fromstring(Report.render_junit([GOOD, WARNED, BAD, SKIPPED]))
    (suite,) = root
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped", "time")} == {
        "tests": "4",
        "failures": "1",
        "skipped": "1",
        "time": "1.250",
    }
    failure = suite[2].find("failure")
    assert failure.get("message").startswith("cell 3: ")
    assert "& <x>" in failure.text
    assert [case.get("name") for case in suite] == ["a.ipynb", "w.ipynb", "b c.ipynb", "s.ipynb"]


def test_a_notebook_stays_in_its_shard_whatever_others_come():
    paths = [Path(f"folder/n{n}.ipynb") for n in range(40)]
    parts = [{p for p in paths if is_in_part(p, (number, 3))} for number in (1, 2, 3)]
    assert all(parts)
    assert set.union(*parts) == set(paths)
    assert sum(map(len, parts)) == len(paths)
    assert is_in_part(paths[0].absolute(), (1, 3)) == is_in_part(paths[0], (1, 3))


def test_a_shard_without_notebooks_says_so(tmp_path, capsys):
    path = tmp_path / "n.ipynb"
    nbformat.write(new_notebook(), path)
    number = 1 if is_in_part(path, (2, 2)) else 2
    assert main(["test", "--shard", f"{number}/2", str(path)]) == 0
    assert capsys.readouterr().out == "This shard holds no notebooks.\n"


WRONG = [
    "--shard 0/3",
    "--shard 4/3",
    "--shard x",
    "-j 0",
    "-j two",
    "--timeout 0",
    "--timeout inf",
]


@pytest.mark.parametrize("wrong", [text.split() for text in WRONG], ids=WRONG)
def test_a_wrong_number_is_named(wrong, capsys):
    with pytest.raises(SystemExit):
        main(["test", *wrong, "n.ipynb"])
    assert wrong[0] in capsys.readouterr().err


@pytest.mark.kernel
def test_one_broken_notebook_does_not_hide_the_others(tmp_path, capsys):
    for name, text in (
        ("a.ipynb", "{}"),
        ("b.ipynb", "<<<<<<< ours\n"),
        ("c.ipynb", '{"cells": [], "metadata": {}, "nbformat": 4}'),
    ):
        (tmp_path / name).write_text(text)
    xml = tmp_path / "r.xml"
    assert main(["test", "--json", "--junit", str(xml), str(tmp_path)]) == 1
    reports = json.loads(capsys.readouterr().out)
    assert [r["ok"] for r in reports] == [False, False, True]
    assert "merge" in reports[1]["problems"][0]["message"]
    assert ElementTree.parse(xml).getroot()[0].get("failures") == "2"


class TestPatternsOfTheProject:
    def write(self, folder, text):
        (folder / "pyproject.toml").write_text(text)
        (folder / "sub").mkdir()
        return folder / "sub" / "n.ipynb"

    def test_the_nearest_file_above_counts(self, tmp_path):
        entry = '[[tool.agent_nb.normalize]]\npattern = "{}"\n'
        path = self.write(tmp_path, f'{entry.format("x+")}{entry.format("y")}replace = "z"\n')
        assert [(r.pattern, r.replace) for r in project.read_rules(path)] == [
            ("x+", "…"),
            ("y", "z"),
        ]
        (tmp_path / "sub" / "pyproject.toml").write_text("")
        assert project.read_rules(path) == ()

    @pytest.mark.parametrize(
        "entry",
        [
            'pattern = "("',
            'replace = "x"',
            'pattern = "x"\nwith = "y"',
            'pattern = "x"\nreplace = "\\\\2"',
            'pattern = "x"\nreplace = "\\\\g<name>"',
            'pattern = "x{99999999999}"',
            f'pattern = "{"(" * 5000}{")" * 5000}"',
        ],
    )
    def test_a_wrong_entry_is_named(self, entry, tmp_path):
        path = self.write(tmp_path, f"[[tool.agent_nb.normalize]]\n{entry}\n")
        with pytest.raises(
            UsageError, match=r"pyproject\.toml: \[\[tool\.agent_nb\.normalize\]\] number 1: "
        ):
            project.read_rules(path)

    @pytest.mark.parametrize("value", ["{pattern = 1}", "0", "false", '""', "{}"])
    def test_a_value_that_is_not_a_list_is_named(self, value, tmp_path):
        path = self.write(
            tmp_path, f"[tool.agent_nb]\nnormalize = {value}\nallowed_hosts = {value}\n"
        )
        for read in (project.read_rules, project.read_hosts):
            with pytest.raises(UsageError, match=r"(normalize|allowed_hosts) is a list of"):
                read(path)

    def test_hosts_that_a_test_may_ask_are_names_without_a_port(self, tmp_path):
        path = self.write(tmp_path, '[tool.agent_nb]\nallowed_hosts = ["A.example.", "fd00::1"]\n')
        assert project.read_hosts(path) == ("a.example", "fd00::1")
        assert project.read_rules(path) == ()

    @pytest.mark.parametrize("value", ['"a.example"', "[1]", '["*"]', '["a,*"]', '["https://a"]'])
    def test_a_wrong_list_of_hosts_opens_none(self, value, tmp_path):
        path = self.write(tmp_path, f"[tool.agent_nb]\nallowed_hosts = {value}\n")
        with pytest.raises(UsageError, match=r"pyproject\.toml: allowed_hosts is a list"):
            project.read_hosts(path)
