"""The table of profiles is complete.

Every cell names a test that pytest collects, or says why there is none.
"""

import os
import re
import subprocess
import sys

import pytest
from helpers.paths import CHECKOUT
from profiles.table import BEHAVIOURS, PROFILES, cells, markdown

CELLS = cells()


def test_every_profile_has_every_behaviour():
    assert set(CELLS) == {(profile, behaviour) for profile in PROFILES for behaviour in BEHAVIOURS}
    assert (len(PROFILES), len(BEHAVIOURS)) == (8, 14)


def test_a_cell_without_a_test_says_why():
    bare = [cell.outcome for cell in CELLS.values() if not cell.test]
    assert all(re.fullmatch(r"– \(.{8,}\)", outcome) for outcome in bare)
    assert len(bare) < len(CELLS) / 5


@pytest.mark.long
@pytest.mark.timeout(320)
@pytest.mark.slow
def test_every_test_that_a_cell_names_is_collected():
    named = {cell.test for cell in CELLS.values() if cell.test}
    files = sorted({name.partition("::")[0] for name in named})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "kernel or browser",
        *files,
    ]
    # it may ask for another listing
    plain = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    said = subprocess.run(
        command, cwd=CHECKOUT, env=plain, capture_output=True, text=True, check=False, timeout=300
    )
    assert named - set(said.stdout.splitlines()) == set(), said.stderr


def test_it_is_written_as_markdown():
    lines = markdown().splitlines()
    assert len(lines) == 2 + len(BEHAVIOURS)
    assert {line.count("|") for line in lines} == {len(PROFILES) + 2}
