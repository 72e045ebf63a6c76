"""Whose a file is: ours, root's, another user's."""

import os
import sys

import pytest

from agent_nb.rows.store import file_owner
from agent_nb.rows.store.file_owner import belongs_to_other

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no owners")

US, THEM, ALL = 1000, 1001, 65534


class Status:
    def __init__(self, owner, mode=0o700):
        self.st_uid, self.st_mode = owner, mode


@pytest.mark.parametrize(
    ("user", "owner", "given", "mode", "others"),
    [
        (US, US, US, 0o1777, False),
        (US, THEM, US, 0o1777, True),
        (US, THEM, US, 0o700, True),
        (US, 0, US, 0o1777, False),
        (US, ALL, ALL, 0o777, False),  # a file system on which all files have one owner
        (US, THEM, -1, 0o500, True),
        (0, THEM, 0, 0o755, False),
        (0, THEM, 0, 0o1777, True),
        (0, 0, 0, 0o1777, False),
    ],
)
def test_a_file_is_another_user_s_if_neither_we_nor_root_own_it(
    tmp_path, monkeypatch, user, owner, given, mode, others
):
    monkeypatch.setattr(os, "lstat", lambda path: Status(owner))
    monkeypatch.setattr(os, "stat", lambda path: Status(user, mode))
    monkeypatch.setattr(file_owner, "_user", lambda: user)
    monkeypatch.setattr(file_owner, "_owner_of_new_file", lambda folder: given)
    assert belongs_to_other(tmp_path / "file") is others


def test_files_that_this_process_makes_are_ours(tmp_path):
    (tmp_path / "file").touch()
    assert not belongs_to_other(tmp_path / "file")
    assert file_owner._owner_of_new_file(tmp_path) == os.lstat(tmp_path / "file").st_uid
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_where_no_file_can_be_made_none_is_given(tmp_path):
    assert file_owner._owner_of_new_file(tmp_path / "missing") == -1
