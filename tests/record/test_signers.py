"""Whose signatures count: the lines of an allowed_signers file, and the user's own list."""

import base64
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.errors import UsageError
from agent_nb.record import signers
from agent_nb.record.signers import NAMESPACE, Signer, read_signers, signers_file
from agent_nb.record.ssh_signature import encode_public_key, fingerprint_key

KEY, OTHER = encode_public_key(b"\1" * 32), encode_public_key(b"\2" * 32)
LINE = f"ssh-ed25519 {base64.b64encode(KEY).decode()}"
RSA = "ssh-rsa " + base64.b64encode(struct.pack(">I", 7) + b"ssh-rsa").decode()


def listed(tmp_path, text):
    (tmp_path / "signers").write_text(text)
    return Signer.load_all(str(tmp_path / "signers"))


@pytest.mark.parametrize(
    "line",
    [
        f"ann {LINE}",
        f"ann {LINE} ann@work",
        f'ann namespaces="git,{NAMESPACE}" {LINE}',
        f'ann namespaces="record@*" {LINE}',
        f'ann valid-after="20200101Z",valid-before="20990101120000Z" {LINE}',
        f"# a team\n\nann {LINE}\n",
        f'"ann" {LINE}',
    ],
)
def test_a_line_of_openssh_names_a_signer(tmp_path, line):
    assert listed(tmp_path, line) == [Signer("ann", KEY)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f'ann namespaces="git" {LINE}', "for other namespaces"),
        (f'ann namespaces="!record@*,*" {LINE}', "for other namespaces"),
        (f'ann valid-before="20200101" {LINE}', "valid until 20200101"),
        (f'ann valid-after="20990101" {LINE}', "not valid before 20990101"),
        (f"ann cert-authority {LINE}", "it is a certificate authority"),
        (f'ann cert-authority,namespaces="*" {LINE}', "it is a certificate authority"),
        (f"!ann {LINE}", "!ann excludes, and names nobody"),
        (f"ann,!ann {LINE}", "excludes, and names nobody"),
        (f"ann@work,!*@work {LINE}", "excludes, and names nobody"),
        (f'"!ann" {LINE}', "excludes, and names nobody"),
        (f"ann {RSA}", "ssh-rsa keys do not count, only ssh-ed25519"),
        ("ann sk-ssh-ed25519@openssh.com AAAA", "sk-ssh-ed25519@openssh.com keys do not count"),
    ],
)
def test_a_line_that_does_not_count_says_why(tmp_path, line, why):
    (found,) = listed(tmp_path, f"{line}\nbob {LINE}")[:-1]
    assert why in found.problem
    with pytest.raises(UsageError, match=why):
        listed(tmp_path, line)  # the list is empty now


@pytest.mark.parametrize(
    "line",
    [
        "ann",
        LINE,
        "ann ssh-ed25519",
        "ann ssh-ed25519 AAAA",
        f'ann namespaces="git {LINE}',
        f"ann verify-required {LINE}",
        f'ann valid-before="soon" {LINE}',
        f"ann what? {LINE}",
        f"ann a b {LINE}",
    ],
)
def test_a_line_that_cannot_be_understood_is_an_error(tmp_path, line):
    with pytest.raises(UsageError):
        listed(tmp_path, f"bob {LINE}\n{line}")


@given(st.text(max_size=200))
def test_any_text_is_signers_or_refused_in_words(tmp_path_factory, text):
    file = tmp_path_factory.getbasetemp() / "any"
    file.write_text(text, encoding="utf-8", errors="replace")
    with suppress(UsageError):
        assert all(signer.name for signer in read_signers(file))


def test_an_excluded_name_is_not_one_of_the_line(tmp_path):
    (found,) = listed(tmp_path, f"ann,bob,!bob {LINE}")
    assert (found.name, found.problem) == ("ann", "")


def test_dates_are_those_of_openssh():
    assert signers._parse_date("20200102Z") == 1577923200
    assert signers._parse_date("202001020304") == time.mktime((2020, 1, 2, 3, 4, 0, 0, 0, -1))


def test_an_added_signer_counts_until_removed(tmp_path):
    assert Signer.load_all() == []
    (tmp_path / "ann.pub").write_text(f"{LINE} ann@work\n")
    assert Signer.add("ann", str(tmp_path / "ann.pub")) == Signer("ann", KEY)
    assert Signer.add("bob", f"whoever ssh-ed25519 {base64.b64encode(OTHER).decode()}") == Signer(
        "bob", OTHER
    )
    Signer.add(
        "bob", f"ssh-ed25519 {base64.b64encode(OTHER).decode()}"
    )  # adding it again changes nothing
    assert Signer.load_all() == [Signer("ann", KEY), Signer("bob", OTHER)]
    assert signers_file().stat().st_mode & 0o077 == 0
    assert Signer.remove("ann") == [Signer("ann", KEY)]
    assert Signer.remove(fingerprint_key(OTHER)) == [Signer("bob", OTHER)]
    assert Signer.load_all() == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such lock")
def test_signers_changed_at_the_same_time_are_all_kept():
    """Threads stand for processes: each opens the lock file for itself."""
    names = [f"user{number}" for number in range(40)]
    Signer.add("ann", LINE)
    with ThreadPoolExecutor(8) as pool:
        added = pool.map(lambda name: Signer.add(name, LINE), names)
        assert Signer.remove("ann") == [Signer("ann", KEY)]
        assert [signer.name for signer in added] == names
    assert sorted(signer.name for signer in Signer.load_all()) == sorted(names)


def test_removing_leaves_the_other_lines(tmp_path):
    Signer.add("ann", LINE)
    signers_file().write_text(f"# the team\nann,anna {LINE}\nold {RSA}\n")
    with pytest.raises(UsageError, match=r"no signer eve\. It has: ann,anna, old"):
        Signer.remove("eve")
    Signer.remove("anna")
    assert signers_file().read_text() == f"# the team\nold {RSA}\n"


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("ann", RSA, "ssh-rsa keys do not count"),
        ("ann", "no such file", "neither a file nor a key"),
        ("a b", LINE, "not a name"),
        ("*", LINE, "not a name"),
        ("ann", f'x namespaces="git" {LINE}', "other namespaces"),
        ("ann", "PRIVATE", "is a private key"),
        ("ann", "TWO", "has 2 lines"),
        ("bob", LINE, "another key of bob"),
    ],
)
def test_what_cannot_be_added_is_refused_in_words(tmp_path, monkeypatch, name, given, why):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "PRIVATE").write_text("-----BEGIN OPENSSH PRIVATE KEY-----")
    (tmp_path / "TWO").write_text(f"{LINE}\n{LINE}")
    Signer.add("bob", f"ssh-ed25519 {base64.b64encode(OTHER).decode()}")
    with pytest.raises(UsageError, match=why):
        Signer.add(name, given)
    assert [signer.name for signer in Signer.load_all()] == ["bob"]


def test_a_configuration_folder_that_moves_with_the_current_one_is_refused(monkeypatch):
    # older versions of platformdirs use XDG_CONFIG_HOME unchanged
    monkeypatch.setattr("platformdirs.user_config_dir", lambda *_, **__: "config/agent_nb")
    with pytest.raises(UsageError, match="relative path"):
        Signer.load_all()


def test_a_file_that_is_named_must_be_there(tmp_path):
    with pytest.raises(UsageError, match="File not found"):
        Signer.load_all(str(tmp_path / "none"))


def test_the_dates_of_an_added_line_count_on():
    line = f'ann valid-before="20990101",valid-after="20200101Z" {LINE}'
    assert Signer.add("ann", line).problem == ""
    text = signers_file().read_text()
    assert 'valid-before="20990101"' in text
    assert 'valid-after="20200101Z"' in text
    assert [s.problem for s in read_signers(signers_file())] == [""]


@pytest.mark.parametrize("mark", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_line_ends_where_openssh_ends_it(tmp_path, mark):
    other = f"eve ssh-ed25519 {base64.b64encode(OTHER).decode()}"
    assert listed(tmp_path, f"ann {LINE} ann@work{mark}{other}") == [Signer("ann", KEY)]


def test_a_removal_leaves_a_comment_with_a_form_feed_alone():
    Signer.add("ann", LINE)
    text = f"# old\x0cteam\nbob {LINE} b\u2028c\n"
    signers_file().write_text(f"{text}ann {LINE}\n", encoding="utf-8")
    Signer.remove("ann")
    assert signers_file().read_text(encoding="utf-8") == text


def test_a_list_that_cannot_be_read_is_refused_in_words():
    Signer.add("ann", LINE)
    signers_file().write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot be read"):
        Signer.remove("ann")


def test_the_folder_of_an_unknown_user_is_no_file_and_no_key(monkeypatch):
    with pytest.raises(UsageError, match="File not found"):
        Signer.load_all("~nobody-here/signers")
    with pytest.raises(UsageError, match="neither a file nor a key"):
        Signer.add("ann", "~nobody-here/ann.pub")


def test_a_date_before_the_calendar_is_an_error_in_every_zone(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        with pytest.raises(UsageError, match="not a date"):
            listed(tmp_path, f'ann valid-before="00010101" {LINE}')
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_known_signer_who_no_longer_counts_is_not_called_added():
    Signer.add("ann", LINE)
    line = f'ann valid-before="20200101" {LINE}'
    signers_file().write_text(f"{line}\n")
    with pytest.raises(UsageError, match="does not count: it was valid until 20200101"):
        Signer.add("ann", LINE)
