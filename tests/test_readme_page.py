"""README is one page, its links lead somewhere, and a replay prints what it shows.

With `AGENT_NB_WHEEL` the replay is that of an installed wheel (`helpers.installed`).
"""

import re
import tomllib

import nbformat
import pytest
from helpers.installed import run_command
from helpers.paths import CHECKOUT

PAGE = (CHECKOUT / "README.md").read_text(encoding="utf-8")
CALL = '<execute>[{"name": "python", "args": {"code": "sales.price.mean()"}}]</execute>'
SETUP = f"""%load_ext agent_nb
import pandas as pd
from agent_nb import Scripted
sales = pd.DataFrame({{'price': [9.5, 12.0, 7.0]}})
model = Scripted([{CALL!r}, 'The mean price is 9.5.'])"""
ASK = "%%agent -m model -t python --approve auto\nWhat is the mean price in `sales`?"


def test_the_readme_is_one_page():
    assert len(PAGE.encode()) <= 8_000


def test_links_of_the_readme_lead_to_files_of_the_repository():
    links = re.findall(r"\]\((?!https?:|#)([^)\s]+)\)", PAGE)
    assert len(links) > 10
    assert [link for link in links if not (CHECKOUT / link).exists()] == []


def test_the_extras_that_the_readme_installs_exist():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"(?:jupyter-agent-nb|\.)\[([a-z,]+)\]", PAGE)
    assert len(named) > 3
    assert {e for group in named for e in group.split(",")} <= {*project["optional-dependencies"]}


@pytest.mark.kernel
def test_drift_is_reported_as_the_readme_shows(tmp_path):
    cells = [nbformat.v4.new_code_cell(text, id=f"c{n}") for n, text in enumerate((SETUP, ASK))]
    notebook = tmp_path / "prices.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)
    done = run_command("run", "--live", "--inplace", "prices.ipynb", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    notebook.write_text(notebook.read_text().replace("12.0, 7.0]", "12.0, 8.0]"))
    done = run_command("test", "prices.ipynb", folder=tmp_path)
    assert done.returncode == 1
    shown = re.search(r"^\$ jupyter agent-nb test prices.ipynb\n(.*?)^```$", PAGE, re.M | re.S)[1]
    assert done.stdout.strip() == shown.strip()
