"""`jupyter agent-nb test`: completeness, messages, and strictness by cell, tool and project."""

import json
import os
import subprocess
import sys

import nbformat
import pytest

from agent_nb.cli.main import main

pytestmark = pytest.mark.kernel
SETUP = """%load_ext agent_nb
import os, time
from agent_nb import Agent, tool
from agent_nb.models.scripted import Scripted

def script(*turns):
    return Scripted([*turns], dialect="native")

def call(name, **args):
    return {"calls": [{"name": name, "args": args}]}
"""
CODE = "m = script(call('python', code='{}'), 'Done.')"
RUN = "%%agent -m m -t python --approve auto {}\nRun it."


@pytest.fixture
def write(tmp_path):
    def write(*cells, name="n"):
        nb = nbformat.v4.new_notebook()
        nb.cells = [
            nbformat.v4.new_code_cell(source, id=f"c{n}")
            for n, source in enumerate((SETUP, *cells), 1)
        ]
        path = tmp_path / f"{name}.ipynb"
        nbformat.write(nb, path)
        return path

    return write


@pytest.fixture
def record(write):
    def record(*cells, **options):
        path = write(*cells, **options)
        assert main(["run", "--live", "--inplace", str(path)]) == 0
        return path

    return record


@pytest.fixture
def check(capsys):
    def check(path, *options):
        capsys.readouterr()
        code = main(["test", *options, str(path)])
        return code, [
            line.removeprefix(f"{path}: ").strip() for line in capsys.readouterr().out.splitlines()
        ]

    return check


def edit(path, old, new):
    nb = json.loads(path.read_text())
    sources = ["".join(cell["source"]) for cell in nb["cells"]]
    assert sum(old in source for source in sources) == 1
    for cell, source in zip(nb["cells"], sources, strict=True):
        cell["source"] = source.replace(old, new)
    path.write_text(json.dumps(nb))


WATCH = """shown, publish = [], get_ipython().display_pub.publish
get_ipython().display_pub.publish = lambda *a, **k: (shown.append(a), publish(*a, **k))"""
UNSHOWN = """import sys
assert not os.environ.get("AGENT_NB_STRICT") or not shown and "agent_nb.view.live" not in sys.modules"""


def test_replays_display_nothing_and_their_numbers_come_with_the_reply(record, check):
    two = """for word in "ab":
    m = script("Done.")
    await get_ipython().run_cell_magic("agent", "-m m -t none --new", word)"""
    path = record(WATCH, CODE, RUN.format("--new"), two, UNSHOWN)
    assert check(path) == (0, ["ok, 3 runs replayed"])


class TestToItsEnd:
    @pytest.mark.long
    def test_commands_that_look_up_servers_do_not_fail_it(self, write, check, monkeypatch):
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        commands = [f"%agent {c}" for c in ("models openai", "models ollama", "models", "mcp")]
        path = write(*commands, "%agent models openai\nprint('went on')", "%agent doctor")
        assert check(path) == (0, ["ok, 0 runs replayed"])

    def test_a_cell_that_fails_is_named_with_its_line_and_error(self, write, check):
        assert check(write("1 + 1\nundefined")) == (
            1,
            ["failed", "cell 2 (c2), line 2: NameError: name 'undefined' is not defined"],
        )

    def test_code_runs_below_a_failed_cell_did_not_run(self, record, check):
        path = record("1 + 1", "run = await Agent(script('Done.'))('Do it.')")
        edit(path, "1 + 1", "undefined")
        assert check(path) == (
            1,
            [
                "failed",
                "cell 2 (c2), line 1: NameError: name 'undefined' is not defined",
                "cell 3 (c3): it did not run",
            ],
        )

    @pytest.mark.long
    def test_an_ipywidgets_output_in_a_plain_cell_is_nothing_special(self, record, check):
        path = record(
            "from ipywidgets import Output\nout = Output()\nout.append_stdout('x')\nwith out:\n    print('y')\nout"
        )
        assert check(path) == (0, ["ok, 0 runs replayed"])

    def test_a_dead_kernel_is_named_and_the_next_notebook_is_tested(self, write, capsys, tmp_path):
        write("os._exit(3)", name="a")
        write("1 + 1", name="b")
        assert main(["test", str(tmp_path)]) == 1
        told = capsys.readouterr().out
        assert "cell 2 (c2): the kernel died" in told
        assert "b.ipynb: ok" in told
        assert told.splitlines()[-1] == "1 passed, 1 failed: 0 runs replayed"

    @pytest.mark.long
    def test_a_cell_that_takes_too_long_is_named_with_what_to_do(self, write, check):
        code, lines = check(write("time.sleep(60)"), "--timeout", "4")
        assert (code, lines[1]) == (
            1,
            "cell 2 (c2): it took longer than 4 s and was stopped. Give it more time: --timeout S (pytest: --agent-nb-timeout S).",
        )

    @pytest.mark.long
    def test_after_a_failed_cell_of_python_code_it_stops_unless_it_is_to_go_on(self, record, check):
        path = record("x = 1", "m = script('Well.')", "%%agent -m m\nHow?")
        edit(path, "x = 1", "x = y")
        assert check(path)[1][1:3] == [
            "cell 2 (c2), line 1: NameError: name 'y' is not defined",
            'cell 4 (c4) "How?": it did not run',
        ]
        code, lines = check(path, "--keep-going")
        assert (code, len(lines)) == (1, 2)

    @pytest.mark.long
    def test_after_a_failed_agent_cell_it_goes_on_with_its_record_as_the_turn(self, record, check):
        path = record(
            "a, b = script('One.'), script('Two.')",
            "%%agent -m a\nFirst?",
            "%%agent -m b\nSecond?",
            "z = 3",
        )
        edit(path, "First?", "Foremost?")
        code, lines = check(path)
        assert code == 1
        assert lines[1].startswith(
            'cell 3 (c3) "Foremost?": Nothing to replay: this cell is stale (prompt changed)'
        )
        assert not [line for line in lines if line.startswith("cell 4")]

    @pytest.mark.few(1)
    @pytest.mark.parametrize(
        ("turns", "options", "expect"),
        [("{'error': {'status': 401}}", "", "error"), ("'x', 'y'", "--max-tokens 1", "limit")],
    )
    def test_a_run_may_be_expected_to_end_otherwise(self, record, check, turns, options, expect):
        path = record(
            f"m = script({turns})", f"%%agent -m m {options} --expect {expect}\nGo.", "after = 1"
        )
        assert check(path) == (0, ["ok, 1 run replayed"])

    @pytest.mark.long
    def test_a_run_that_does_not_end_as_expected_fails_the_cell(self, write, capsys):
        assert (
            main(
                [
                    "run",
                    "--live",
                    str(write("m = script('Well.')", "%%agent -m m --expect error\nGo.")),
                ]
            )
            == 1
        )
        assert (
            "the run ended with status ok, and --expect error says otherwise"
            in capsys.readouterr().err
        )

    @pytest.mark.long
    def test_every_denied_call_is_a_failure_of_a_script_that_has_no_record(self, write, check):
        path = write(
            "m = script(call('python', code='1'), 'Done.')\nawait Agent(m, ['python'], approve='deny')('go')"
        )
        assert check(path)[1][1] == "cell 2 (c2): every call of a run was denied: 1 call (1 denied)"


class TestAsStrictlyAsItSays:
    @pytest.mark.long
    def test_a_cell_may_compare_nothing(self, record, check):
        path = record("import random", CODE.format("random.random()"), RUN.format("--compare none"))
        assert check(path) == (0, ["ok, 1 run replayed"])
        edit(path, " --compare none", "")
        code, lines = check(path)
        assert code == 1
        assert lines[1].startswith(
            'cell 4 (c4) "Run it.": python gave another result when it ran again'
        )

    @pytest.mark.long
    def test_a_tool_may_compare_nothing_and_its_code_is_the_same(self, record, check):
        path = record(
            "import random\n@tool(effect='kernel')\ndef roll() -> float:\n    'Roll.'\n    return random.random()",
            "m = script(call('roll'), 'Done.')",
            "%%agent -m m -t roll --approve auto\nRoll.",
        )
        assert check(path)[0] == 1
        edit(path, "effect='kernel'", "effect='kernel', compare='none'")
        assert check(path) == (0, ["ok, 1 run replayed"])

    def test_what_the_project_masks_is_not_compared_and_listed(self, record, check):
        path = record(
            "import random", CODE.format('f"build {random.randrange(10**9)}"'), RUN.format("")
        )
        assert check(path)[0] == 1
        path.with_name("pyproject.toml").write_text(
            "[[tool.agent_nb.normalize]]\npattern = 'build \\d+'\n"
        )
        code, lines = check(path)
        assert (code, lines[0]) == (0, "ok, 1 run replayed")
        assert lines[1].startswith("not compared: cell 4, pattern 'build")

    @pytest.mark.long
    def test_the_kernel_has_the_hash_seed_and_the_time_zone_of_the_recording(
        self, record, check, monkeypatch
    ):
        monkeypatch.setenv("TZ", "Asia/Kolkata")
        path = record(
            CODE.format('print(os.environ["TZ"], os.environ["PYTHONHASHSEED"], time.tzname)'),
            RUN.format(""),
        )
        monkeypatch.setenv("TZ", "America/St_Johns")
        assert check(path) == (0, ["ok, 1 run replayed"])


@pytest.mark.long
@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1"])
def test_json_is_valid_whatever_a_kernel_writes_and_whatever_the_locale(write, locale):
    path = write(
        "os.write(1, b'\\xff}{ raw')\nos.system('echo loud; echo louder >&2')\nraise ValueError('→ ü')"
    )
    environment = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "agent_nb", "test", "--json", str(path)]
    done = subprocess.run(command, check=False, capture_output=True, env=environment, timeout=100)
    (report,) = json.loads(done.stdout)
    assert "ValueError: → ü" in report["problems"][0]["message"]
    plain = subprocess.run(
        [c for c in command if c != "--json"],
        check=False,
        capture_output=True,
        env=environment,
        timeout=100,
    )
    assert (plain.returncode, b"ValueError" in plain.stdout) == (1, True)


def test_results_are_shown_even_if_the_file_for_them_cannot_be_written(tmp_path, capsys):
    path = tmp_path / "n.ipynb"
    path.write_text("{")
    missing = tmp_path / "no" / "results.xml"
    assert main(["test", "--json", "--junit", str(missing), str(path)]) == 2
    assert json.loads(capsys.readouterr().out)[0]["ok"] is False
