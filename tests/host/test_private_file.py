"""Files and folders that only the user can use."""

import os
import stat
import sys
from pathlib import Path

import pytest

from agent_nb.host import private_file
from agent_nb.host.paths import shorten_path
from agent_nb.host.private_file import make_private_folder, write_private

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no modes")


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_whatever_the_umask_the_file_and_its_new_folders_are_private(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_private(tmp_path / "a" / "b" / "file", b"x")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / place).stat().st_mode) for place in ("a", "a/b", "a/b/file")]
    assert modes == [0o700, 0o700, 0o600]


def test_a_folder_that_is_there_keeps_its_mode(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o755)
    make_private_folder(tmp_path / "a")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "a")
    with pytest.raises(OSError):
        make_private_folder(tmp_path / "a" / "b")


@pytest.mark.parametrize("keep", [False, True])
def test_nothing_but_the_file_is_left_also_where_the_move_fails(tmp_path, monkeypatch, keep):
    write_private(tmp_path / "file", b"x", keep=keep)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def fails(*_):
        raise PermissionError

    monkeypatch.setattr(Path, "replace", fails)
    monkeypatch.setattr(private_file, "_link_file", fails)
    with pytest.raises(PermissionError):
        write_private(tmp_path / "other", b"y", keep=keep)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_private_file_of_another_process_stays(tmp_path):
    write_private(tmp_path / "file", b"theirs")
    write_private(tmp_path / "file", b"ours", keep=True)
    assert (tmp_path / "file").read_bytes() == b"theirs"
    assert len([*tmp_path.iterdir()]) == 1


def test_a_path_in_the_home_folder_is_written_with_a_tilde():
    home = Path.home()
    assert shorten_path(home) == "~"
    assert shorten_path(home / "a" / "b") == str(Path("~", "a", "b"))
    assert shorten_path(home.parent) == str(home.parent)
