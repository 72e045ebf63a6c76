"""README is one page, its links lead somewhere, and a replay prints what it shows."""

import re

import nbformat
import pytest
from helpers.paths import CHECKOUT

from agent_nb.cli.main import main

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


@pytest.mark.kernel
def test_drift_is_reported_as_the_readme_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells = [nbformat.v4.new_code_cell(text, id=f"c{n}") for n, text in enumerate((SETUP, ASK))]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), "prices.ipynb")
    assert main(["run", "--live", "--inplace", "prices.ipynb"]) == 0
    recorded = (tmp_path / "prices.ipynb").read_text()
    (tmp_path / "prices.ipynb").write_text(recorded.replace("12.0, 7.0]", "12.0, 8.0]"))
    capsys.readouterr()
    assert main(["test", "prices.ipynb"]) == 1
    shown = re.search(r"^\$ jupyter agent-nb test prices.ipynb\n(.*?)^```$", PAGE, re.M | re.S)[1]
    assert capsys.readouterr().out.strip() == shown.strip()
