"""Notebooks that earlier versions recorded, kept as data: `test` replays each of them.

Three versions (`VERSIONS`): records of the oldest name neither an execution nor an ordinal, those
of the next do; those of the newest also hold scores of evaluations and the data of figures. Another
user signed them on another machine, so all are foreign here. What runs code of the kernel again
(`TRUSTED`) replays only for those who trust the records, as with `test --trust-record`; all else
replays for everybody.
"""

import shutil
from pathlib import Path

import nbformat
import pytest

from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.runner.notebook_check import CheckOptions, check_notebook

BEFORE = Path(__file__).with_name("before")
RUNS = {
    "answers": 2,  # an output variable, a system text, sampling
    "awaited": 3,  # `await agent(…)` in plain cells, two in one of them
    "conversation": 4,  # two conversations, their cells mixed
    "dialects": 3,  # native, xml and section
    "failures": 2,  # a tool that raises, a call that is denied, a request that is sent again
    "kernel": 1,  # the tool `python`, which prints
    "limits": 2,  # runs that ended at a limit of calls and of turns
    "picture": 2,  # an attachment, and the turn after it
    "pure_tools": 1,  # a decorated and a plain function without effects
    "sub_agents": 1,  # an agent as a tool of another
    "templates": 2,  # {{ }} of values and of a DataFrame
    "variables": 1,  # a function that uses and changes variables of the notebook
}
SCORED = {
    "figure": 1,  # the tool `python`, which draws
    "rows": 1,  # a map
    "scores": 2,  # two evaluations and their comparison
}
TRUSTED = ("kernel", "variables", "figure")
VERSIONS = {"unnumbered": RUNS, "numbered": RUNS, "scored": RUNS | SCORED}
# twelve of them, with and without `-t`; `dialects` and `failures` have cells of both kinds
WITHOUT_TOOLS = ("answers", "conversation", "dialects", "failures", "picture", "templates")
WITH_TOOLS = (
    "dialects", "failures", "figure", "kernel", "limits", "pure_tools", "sub_agents", "variables",
)  # fmt: skip
OTHER_DEFAULT = 'c.AgentMagics.tools = ["list", "shell"]\n'
NOTEBOOKS = [(version, name) for version, runs in VERSIONS.items() for name in runs]


@pytest.fixture
def copied(tmp_path):
    return lambda version, name: Path(shutil.copy(BEFORE / version / f"{name}.ipynb", tmp_path))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_notebook_is_in_the_table(version):
    assert sorted(path.stem for path in (BEFORE / version).glob("*.ipynb")) == sorted(
        VERSIONS[version]
    )


@pytest.mark.kernel
@pytest.mark.forked_kernel
@pytest.mark.few("unnumbered-kernel", "numbered-conversation", "scored-scores")
@pytest.mark.parametrize(("version", "name"), NOTEBOOKS)
def test_a_notebook_of_an_earlier_version_replays(copied, version, name):
    path = copied(version, name)
    before = path.read_bytes()
    report = check_notebook(path, CheckOptions(trust=name in TRUSTED, timeout=60))
    assert report.problems == ()
    assert (report.runs, report.scripted, report.skipped) == (VERSIONS[version][name], 0, "")
    assert path.read_bytes() == before


def lines_of(version, name):
    """Return the first lines of the agent cells of a notebook."""
    cells = nbformat.read(BEFORE / version / f"{name}.ipynb", 4).cells
    return [c.source.partition("\n")[0] for c in cells if c.source.startswith("%%agent")]


def test_twelve_have_cells_with_and_without_tools():
    assert len({*WITHOUT_TOOLS, *WITH_TOOLS}) >= 12
    for names, chosen in ((WITHOUT_TOOLS, False), (WITH_TOOLS, True)):
        for name in names:
            assert any((" -t " in line) is chosen for line in lines_of("scored", name)), name


@pytest.mark.kernel
@pytest.mark.forked_kernel
@pytest.mark.few("failures")
@pytest.mark.parametrize("name", sorted({*WITHOUT_TOOLS, *WITH_TOOLS}))
def test_a_notebook_replays_beside_another_default_of_tools(copied, tmp_path, monkeypatch, name):
    """A user whose configuration names tools for every cell replays what others recorded."""
    profile = tmp_path / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    (profile / "ipython_config.py").write_text(f"c = get_config()\n{OTHER_DEFAULT}")
    monkeypatch.setenv("IPYTHONDIR", str(profile.parent))
    path = copied("scored", name)
    before = path.read_bytes()
    report = check_notebook(path, CheckOptions(trust=name in TRUSTED, timeout=60))
    assert report.problems == ()
    assert (report.runs, report.scripted) == (VERSIONS["scored"][name], 0)
    assert path.read_bytes() == before


@pytest.mark.kernel
@pytest.mark.forked_kernel
@pytest.mark.few("numbered-variables")
@pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version, name in NOTEBOOKS if name in TRUSTED]
)
def test_its_code_does_not_run_without_trust(copied, version, name):
    report = check_notebook(copied(version, name), CheckOptions(timeout=60))
    assert RecordedTurns.FOREIGN in report.problems[0].text
