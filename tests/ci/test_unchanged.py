"""Unchanged notebooks pass in every environment, and no provider is asked.

By default each notebook runs in one environment, and each environment has some of them;
AGENT_NB_CI=all runs all combinations. One environment is another Python, which
AGENT_NB_TEST_KERNELS names.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ci.conftest import other_kernels
from ci.recipes import RECIPES

ALL = os.environ.get("AGENT_NB_CI") == "all"
NOWHERE = "http://127.0.0.1:9"
pytestmark = pytest.mark.kernel


@dataclass(frozen=True)
class Environment:
    """Variables (a value with {tmp} names a folder of the test), those that are not set, and
    whether the notebook lies elsewhere.
    """

    set: dict[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    moved: bool = False
    options: tuple[str, ...] = ()


ENVIRONMENTS = {
    "here": Environment(),
    "kolkata": Environment({"TZ": "Asia/Kolkata"}),
    "st_johns": Environment({"TZ": "America/St_Johns"}),
    "home": Environment({"HOME": "{tmp}/somebody", "IPYTHONDIR": "{tmp}/ipython"}),
    "hash_seed_1": Environment({"PYTHONHASHSEED": "1"}),
    "hash_seed_random": Environment({"PYTHONHASHSEED": "random"}),
    "folder": Environment(moved=True),
    "c_locale": Environment({"LC_ALL": "C", "LANG": "C"}),
    "temporary": Environment({"TMPDIR": "{tmp}/t", "TEMP": "{tmp}/t", "TMP": "{tmp}/t"}),
    "offline": Environment(
        {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "ALL_PROXY": NOWHERE},
        (
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "OLLAMA_HOST",
        ),
    ),
    "somebody": Environment(
        {"JUPYTER_DATA_DIR": "{tmp}/jupyter", "HOME": "{tmp}/somebody", "TZ": "Asia/Kolkata"},
        moved=True,
        options=("--trust-record",),
    ),
}


def _chosen():
    """Yield (recipe, environment), all of them or each recipe once."""
    names = list(ENVIRONMENTS)
    for number, name in enumerate(RECIPES):
        for environment in names if ALL else [names[number % len(names)]]:
            yield pytest.param(name, environment, id=f"{name}-{environment}")


@pytest.fixture
def enter(monkeypatch, tmp_path):
    """Enter an environment."""

    def enter(environment):
        for name, value in environment.set.items():
            if "{tmp}" in value:
                Path(value.format(tmp=tmp_path)).mkdir(parents=True, exist_ok=True)
            monkeypatch.setenv(name, value.format(tmp=tmp_path))
        for name in environment.unset:
            monkeypatch.delenv(name, raising=False)

    return enter


def expect(recipe, code, lines):
    """Assert that all runs of an unchanged notebook were replayed; a marked cell may drift."""
    drifted = [int(found[1]) for line in lines if (found := re.match(r"cell (\d+) \(", line))]
    if drifted and set(drifted) <= set(recipe.varies):
        return
    runs = f"{recipe.runs} run{'' if recipe.runs == 1 else 's'} replayed"
    assert (code, lines) == (0, [f"ok, {runs}"])


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "environment"), list(_chosen()))
def test_an_unchanged_notebook_passes(recorded, copied, check, enter, name, environment):
    place = ENVIRONMENTS[environment]
    path = (copied if place.moved else recorded)(name)
    before = path.read_bytes()
    enter(place)
    expect(RECIPES[name], *check(path, *place.options))
    assert path.read_bytes() == before


def test_a_marked_cell_drifts_and_no_other(copied, check, monkeypatch):
    path = copied("environment")
    monkeypatch.setenv("CORPUS_PLACE", "somewhere")
    code, lines = check(path)
    assert code == 1
    assert lines[1].startswith(
        'cell 3 (cell3) "Run it.": python gave another result when it ran again'
    )


@pytest.mark.parametrize("kernel", other_kernels())
@pytest.mark.parametrize("name", [n for number, n in enumerate(RECIPES) if ALL or number % 8 == 4])
def test_it_passes_in_another_python(recorded, check, other_kernel, kernel, name):
    recipe = RECIPES[name]
    options = other_kernel(kernel, recipe.needs)
    expect(recipe, *check(recorded(name), *options))


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", ["", *other_kernels()])
@pytest.mark.parametrize("name", ["alike", "changing", "clock", "folders"])
def test_it_passes_217_days_later(copied, check, move_on, other_kernel, kernel, name):
    options = other_kernel(kernel, RECIPES[name].needs)
    path = copied(name)
    move_on()
    expect(RECIPES[name], *check(path, *options))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["routed", "awaited"])
def test_without_any_route_the_result_is_the_same(recorded, check, monkeypatch, enter, name):
    path = recorded(name)
    here = check(path)
    enter(ENVIRONMENTS["offline"])
    assert check(path) == here
    assert here[0] == 0
