"""What a folder may do: remembered by folder and content, in a file that only the user can read,
listed and revoked.
"""

import os
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_nb.host import dotenv, trust
from agent_nb.host.trust import Offer
from agent_nb.tools import policy_file


@pytest.fixture(autouse=True)
def nothing_of_this_process(monkeypatch):
    monkeypatch.setattr(trust, "_allowed_here", set())
    monkeypatch.setattr(trust, "_named_files", set())


def new_process():
    """Forget what is not written down."""
    trust._allowed_here.clear()


def policy(path, content=b"a"):
    return Offer.of("policy", path, "allows shell", content)


def keys(folder):
    return Offer.of("keys", folder / ".env", "has OPENAI_API_KEY")


def test_nothing_is_allowed_at_first(tmp_path):
    assert not policy(tmp_path / "p.yaml").is_allowed()
    assert not keys(tmp_path).is_allowed()
    assert list(trust.Offer.list_allowed()) == []


def test_a_yes_outlives_the_process(tmp_path):
    assert trust.Offer.allow_all([policy(tmp_path / "p.yaml"), keys(tmp_path)])
    new_process()
    assert policy(tmp_path / "p.yaml").is_allowed()
    assert keys(tmp_path).is_allowed()


def test_a_yes_holds_for_one_file_of_one_folder_with_one_content(tmp_path):
    trust.Offer.allow_all([policy(tmp_path / "p.yaml")])
    new_process()
    for other in (
        policy(tmp_path / "p.yaml", b"b"),
        policy(tmp_path / "q.yaml"),
        policy(tmp_path / "sub" / "p.yaml"),
        keys(tmp_path),
    ):
        assert not other.is_allowed()


def test_allowing_keys_allows_no_files(tmp_path):
    trust.Offer.allow_all([keys(tmp_path)])
    assert not policy(tmp_path / ".env").is_allowed()
    assert not policy(tmp_path / "p.yaml").is_allowed()


def test_it_is_written_for_the_user_alone(tmp_path):
    trust.Offer.allow_all([keys(tmp_path)])
    if sys.platform != "win32":
        assert stat.S_IMODE(trust.locate_permissions().stat().st_mode) == 0o600
    names = sorted(p.name for p in trust.locate_permissions().parent.iterdir())
    assert names == ([".folders.json.lock"] if sys.platform != "win32" else []) + ["folders.json"]


def test_permissions_are_listed_and_revoked(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    trust.Offer.allow_all(
        [keys(tmp_path / "a"), policy(tmp_path / "a" / "p.yaml"), policy(tmp_path / "b" / "q.yml")]
    )
    if sys.platform != "win32":
        assert list(trust.Offer.list_allowed()) == [
            ("~/a", "give keys (.env), be obeyed in p.yaml"),
            ("~/b", "be obeyed in q.yml"),
        ]
    assert trust.Offer.revoke_folder(str(tmp_path / "a"))
    assert not trust.Offer.revoke_folder(str(tmp_path / "a"))
    assert not keys(tmp_path / "a").is_allowed()
    assert not policy(tmp_path / "a" / "p.yaml").is_allowed()
    assert policy(tmp_path / "b" / "q.yml").is_allowed()


def test_a_permission_that_another_process_revokes_ends_here_too(tmp_path):
    assert trust.Offer.allow_all([keys(tmp_path)])
    assert keys(tmp_path).is_allowed()
    trust.locate_permissions().unlink()
    assert not keys(tmp_path).is_allowed()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such lock")
def test_changes_at_the_same_time_are_all_kept(tmp_path):
    """Threads stand for processes: each opens the lock file for itself."""
    folders = [tmp_path / str(number) for number in range(40)]
    trust.Offer.allow_all([keys(tmp_path / "revoked")])
    with ThreadPoolExecutor(8) as pool:
        allowed = pool.map(lambda folder: trust.Offer.allow_all([keys(folder)]), folders)
        revoked = trust.Offer.revoke_folder(str(tmp_path / "revoked"))
        assert all(allowed)
    assert revoked
    assert all(keys(folder).is_allowed() for folder in folders)
    assert not keys(tmp_path / "revoked").is_allowed()


def test_a_folder_that_cannot_be_written_keeps_a_yes_for_this_process(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setattr(trust, "locate_permissions", lambda: tmp_path / "file" / "folders.json")
    assert not trust.Offer.allow_all([keys(tmp_path)])
    assert keys(tmp_path).is_allowed()
    new_process()
    assert not keys(tmp_path).is_allowed()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"folders": 3}', b"\xff"])
def test_a_file_that_says_nothing_allows_nothing(tmp_path, content):
    trust.locate_permissions().parent.mkdir(parents=True, exist_ok=True)
    trust.locate_permissions().write_bytes(content)
    assert not keys(tmp_path).is_allowed()
    assert trust.Offer.allow_all([keys(tmp_path)])
    new_process()
    assert keys(tmp_path).is_allowed()


def test_a_file_that_the_user_named_counts_in_this_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trust.Offer.trust_file("p.yaml")
    assert policy(tmp_path / "p.yaml").is_allowed()
    assert not policy(tmp_path / "q.yaml").is_allowed()
    assert not trust.locate_permissions().exists()


@pytest.mark.parametrize(
    ("given", "theirs"),
    [
        ("p.yaml", True),
        ("./p.yaml", True),
        ("../p.yaml", True),
        ("{folder}/p.yaml", True),
        ("{folder}/sub/p.yaml", True),
        ("{folder}/../p.yaml", False),
        ("~/p.yaml", False),
        ("{folder}-2/p.yaml", False),
    ],
)
def test_whose_word_a_file_is(tmp_path, given, theirs):
    folder = tmp_path / "n"
    given = given.format(folder=folder)
    assert (
        policy_file.is_of_folder(Path(folder, os.path.expanduser(given)), folder, written=given)
        is theirs
    )


def test_a_link_from_elsewhere_into_the_folder_is_the_folders_word(tmp_path):
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "p.yaml").write_text("")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "n" / "p.yaml")
    assert policy_file.is_of_folder(
        tmp_path / "link.yaml", tmp_path / "n", written=str(tmp_path / "link.yaml")
    )


def test_a_refusal_names_file_and_folder_and_is_not_endless(tmp_path):
    said = Offer.of("policy", tmp_path / "p.yaml", "allows " + "x" * 9999, b"").refusal
    assert said.startswith(f"p.yaml in {tmp_path} allows xxx")
    assert len(said) < 600 + len(str(tmp_path))


def test_a_server_that_is_withdrawn_is_not_allowed_by_an_earlier_entry(tmp_path):
    first, second, other = (
        Offer("server", str(tmp_path / ".mcp.json"), "starts x", digest, name)
        for digest, name in (("1", "x"), ("2", "x"), ("1", "y"))
    )
    Offer.allow_all([first, second, other])
    assert second.withdraw()
    assert not first.is_allowed()
    assert not second.is_allowed()
    assert other.is_allowed()


def test_an_entry_is_allowed_under_its_own_name_alone(tmp_path):
    allowed, renamed = (
        Offer("server", str(tmp_path / ".mcp.json"), "starts x", "1", name) for name in "xy"
    )
    Offer.allow_all([allowed])
    assert allowed.is_allowed()
    assert not renamed.is_allowed()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="without named pipes")
def test_a_pipe_in_place_of_a_dotenv_is_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo(".env")
    pipe = os.open(".env", os.O_RDWR)  # so that opening the pipe for reading does not block
    os.write(pipe, b"NAME=1\n")
    closing = threading.Timer(0.5, os.close, [pipe])
    closing.start()
    assert "1" not in dotenv.list_values("NAME")
    closing.join()
