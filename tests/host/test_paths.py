"""Paths for people, and files that are looked for upwards."""

import os

import pytest

from agent_nb.host import find_nearest, shorten_path

pwd = pytest.importorskip("pwd", reason="only Unix has it")


@pytest.fixture
def homeless(monkeypatch):
    """Let the user have no home folder, as a container started with any user id."""

    def find_user(number):
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", find_user)


def test_the_home_folder_is_written_as_a_tilde(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert shorten_path(tmp_path / "a") == os.path.join("~", "a")
    assert shorten_path(tmp_path.parent) == str(tmp_path.parent)


def test_without_a_home_a_path_stays_as_it_is(homeless, tmp_path):
    assert shorten_path(tmp_path) == str(tmp_path)


def test_without_a_home_a_file_is_found_upwards(homeless, tmp_path):
    (tmp_path / ".env").write_text("")
    (tmp_path / "below").mkdir()
    assert find_nearest(".env", tmp_path / "below") == tmp_path / ".env"
