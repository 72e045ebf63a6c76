"""What goes to PyPI: links of the page, extras, and the version."""

import importlib.util
import re
import tomllib

import pytest
from helpers.paths import CHECKOUT

from agent_nb import __version__

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
PAGE = "![A card](examples/a.png) [the rooms](agent_nb/README.md) [below](#safety) [web](https://x.example/y)"


@pytest.fixture(scope="module")
def metadata():
    path = CHECKOUT / ".ci" / "release_metadata.py"
    spec = importlib.util.spec_from_file_location("release_metadata", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_with_an_address_links_of_the_page_lead_into_the_repository(metadata):
    assert metadata.make_links_absolute(PAGE, "https://h.example/o/n") == (
        "![A card](https://h.example/o/n/raw/main/examples/a.png) "
        "[the rooms](https://h.example/o/n/blob/main/agent_nb/README.md) "
        "[below](#safety) [web](https://x.example/y)"
    )


def test_without_an_address_pictures_and_urls_are_left_out(metadata):
    assert metadata.make_links_absolute(PAGE, "") == (
        " the rooms [below](#safety) [web](https://x.example/y)"
    )
    assert metadata.make_urls("") == {}


def test_urls_of_the_project_follow_from_the_address(metadata):
    urls = metadata.make_urls("https://h.example/o/n")
    assert all(url.startswith("https://h.example/o/n") for url in urls.values())


def test_the_extra_all_holds_every_extra_of_users():
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    held = set(re.search(r"\[(.*)\]", everything)[1].split(","))
    assert held == set(extras) - {"all", "bench", "book", "interop", "libraries", "test"}


def test_the_version_stands_in_the_changelog():
    assert PROJECT["version"] == __version__
    assert f"## [{__version__}]" in (CHECKOUT / "CHANGELOG.md").read_text()


def test_the_benchmark_page_names_every_benchmark():
    source = (CHECKOUT / "tests" / "bench" / "all.py").read_text()
    scripts = {p.stem for p in (CHECKOUT / "tests" / "bench").glob("*.py")} - {"all", "common"}
    assert set(re.findall(r'^    "(\w+)": \(', source, re.MULTILINE)) == scripts
