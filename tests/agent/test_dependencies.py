"""Records of earlier versions count by their own rules, and newer ones by wider ones."""

import sys

import pytest

from agent_nb.agent.dependencies import CodeReader, digest_dependencies, find_changed
from agent_nb.agent.masking.surroundings import describe_place
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.events import RunStart
from agent_nb.tools.decorator import as_tool
from agent_nb.tools.toolset import Toolset

SHOP = """
from settings_of_dependencies import RATE

def charge(n: int) -> int:
    return n * RATE

class Shop:
    def price(self, wood: str) -> int:
        return 61
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / "settings_of_dependencies.py").write_text("RATE = 3\n")
    (tmp_path / "shop_of_dependencies.py").write_text(SHOP)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield __import__("shop_of_dependencies")
    for name in ("shop_of_dependencies", "settings_of_dependencies"):
        sys.modules.pop(name, None)


def test_a_changed_constant_is_a_change_for_newer_records_only(shop, tmp_path):
    tools = Toolset([as_tool(shop.charge)])
    readers = [CodeReader(folder=str(tmp_path), earlier=earlier) for earlier in (True, False)]
    before = [digest_dependencies(tools, reader) for reader in readers]
    (tmp_path / "settings_of_dependencies.py").write_text("RATE = 4\n")
    found = [
        list(find_changed(old, digest_dependencies(tools, reader)))
        for old, reader in zip(before, readers, strict=True)
    ]
    assert found == [[], [("charge", "source", "")]]


def test_a_changed_body_is_a_change_for_both(shop, tmp_path):
    tools = Toolset([as_tool(shop.charge)])
    readers = [CodeReader(folder=str(tmp_path), earlier=earlier) for earlier in (True, False)]
    before = [digest_dependencies(tools, reader) for reader in readers]
    (tmp_path / "shop_of_dependencies.py").write_text(SHOP.replace("n * RATE", "n + RATE"))
    assert [
        [part for _, part, _ in find_changed(old, digest_dependencies(tools, reader))]
        for old, reader in zip(before, readers, strict=True)
    ] == [["code"], ["source"]]


def test_the_parts_of_an_earlier_record_are_not_looked_for_in_a_newer_one(shop, tmp_path):
    tools = Toolset([as_tool(shop.charge)])
    earlier, newer = (
        digest_dependencies(tools, CodeReader(folder=str(tmp_path), earlier=each))
        for each in (True, False)
    )
    assert earlier["tools"]["charge"].keys() == {"schema", "code"}
    assert newer["tools"]["charge"].keys() == {"schema", "source"}


def test_a_method_of_an_object_runs_again_in_newer_records_only(shop, tmp_path):
    here = describe_place(str(tmp_path))
    older = {name: value for name, value in here.items() if name != "python"}
    (tool,) = Toolset([as_tool(shop.Shop().price)])
    lives = [
        RecordedTurns(events=[RunStart(settings=settings)]).must_rerun(tool)
        for settings in ({"place": here}, {"place": older}, {})
    ]
    assert lives == [True, False, False]


def test_a_place_names_no_folder(tmp_path):
    assert str(tmp_path) not in str(describe_place(str(tmp_path)))
    assert sys.prefix not in str(describe_place(str(tmp_path)))
