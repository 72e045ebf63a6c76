"""Which file systems count as local, read from mount tables."""

from pathlib import Path

import pytest

from agent_nb.host.file_systems import is_local

TABLE = """\
proc /proc proc rw 0 0
/dev/sda1 / ext4 rw,relatime 0 0
server:/export /home nfs4 rw,vers=4.2 0 0
//server/share /mnt/share cifs rw 0 0
me@host:/ /mnt/far fuse.sshfs rw 0 0
drive /mnt/cloud fuse.rclone rw 0 0
c: /mnt/c 9p rw 0 0
fs /scratch lustre rw 0 0
mac /mac virtiofs rw 0 0
tmpfs /home/anna/fast tmpfs rw 0 0
server:/x /mnt/with\\040space nfs rw 0 0
/dev/sdb1 /mnt/over ext4 rw 0 0
server:/y /mnt/over smb3 rw 0 0
broken line
"""


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/srv/notebook", True),
        ("/", True),
        ("/homework", True),  # no part of /home
        ("/home/anna/notebook", False),
        ("/home/anna/fast/x", True),
        ("/mnt/share/x", False),
        ("/mnt/far/x", False),
        ("/mnt/cloud/x", False),
        ("/mnt/c/x", False),
        ("/scratch/x", False),
        ("/mac/x", False),
        ("/mnt/with space/x", False),
        ("/mnt/over/x", False),
    ],
)
def test_the_mount_that_holds_a_path_decides(path, local):
    assert is_local(Path(path), TABLE) is local


def test_nothing_is_known_to_be_local_without_a_table(monkeypatch, tmp_path):
    monkeypatch.setattr("agent_nb.host.file_systems.MOUNTS", tmp_path / "missing")
    assert not is_local(Path("/"))


def test_a_link_counts_as_the_place_it_leads_to(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "far")
    table = f"/dev/sda1 / ext4 rw 0 0\nserver:/ {tmp_path}/far nfs rw 0 0\n"
    assert not is_local(link / "x", table)


def test_the_temporary_folder_of_the_tests_is_asked_without_an_error(tmp_path):
    assert is_local(tmp_path) in (True, False)
