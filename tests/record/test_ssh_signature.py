"""Signatures in the format of `ssh-keygen -Y`: they round-trip, and OpenSSH accepts them."""

import base64
import shutil
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.errors import MissingExtra, UsageError
from agent_nb.record.ssh_signature import (
    Signature,
    armor_signature,
    encode_public_key,
    find_signatures,
    fingerprint_key,
    parse_public_key,
    parse_signature,
    verify_signature,
)

SPACE = "record@jupyter-agent-nb"
signatures = st.builds(
    Signature,
    key=st.binary(min_size=32, max_size=32).map(encode_public_key),
    namespace=st.text(st.characters(codec="utf-8"), max_size=40),
    algorithm=st.sampled_from(["sha512", "sha256"]),
    value=st.binary(min_size=64, max_size=64),
)
openssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")


@pytest.fixture(scope="module")
def key():
    pytest.importorskip("cryptography")
    return private(b"\1" * 32)


def private(seed):
    from cryptography.hazmat.primitives.asymmetric import ed25519

    from agent_nb.record.ssh_signature import PrivateKey

    return PrivateKey(ed25519.Ed25519PrivateKey.from_private_bytes(seed))


def pem(kind="ed25519", passphrase=None):
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    makers = {
        "ed25519": lambda: ed25519.Ed25519PrivateKey.from_private_bytes(b"\1" * 32),
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
        "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
    }
    how = s.BestAvailableEncryption(passphrase) if passphrase else s.NoEncryption()
    return makers[kind]().private_bytes(s.Encoding.PEM, s.PrivateFormat.OpenSSH, how)


@given(signatures)
def test_signatures_round_trip(signature):
    assert parse_signature(armor_signature(signature)) == signature
    assert list(find_signatures("noise" + armor_signature(signature) + "noise")) == [
        (armor_signature(signature), signature)
    ]


@given(st.lists(signatures, max_size=4))
def test_several_stand_in_one_text(several):
    assert [
        signature for _, signature in find_signatures("".join(map(armor_signature, several)))
    ] == several


@given(signatures, st.data())
def test_a_signature_that_is_cut_anywhere_is_not_one(signature, data):
    text = base64.b64encode(b"x").decode()
    whole = base64.b64decode("".join(armor_signature(signature).splitlines()[1:-1]))
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]
    for wrong in (part, whole + b"\0", whole[:6] + struct.pack(">I", 2) + whole[10:]):
        lines = armor_signature(signature).splitlines()
        text = "\n".join([lines[0], base64.b64encode(wrong).decode(), lines[-1]])
        with pytest.raises(UsageError):
            parse_signature(text)
        assert list(find_signatures(text)) == []


@given(st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text()), st.binary()))
def test_hostile_signatures_raise_nothing(value):
    list(find_signatures(value))


def test_white_space_without_an_end_is_searched_in_one_pass():
    """Quadratic or cubic search of this text takes minutes: pytest's own time limit fails then."""
    begun = "-----BEGIN SSH SIGNATURE-----" + " " * 30_000
    assert list(find_signatures(begun * 5)) == []


@given(st.binary(max_size=200))
def test_a_signature_of_any_bytes_is_refused_in_words(data):
    text = f"-----BEGIN SSH SIGNATURE-----\n{base64.b64encode(data).decode()}\n-----END SSH SIGNATURE-----"
    with pytest.raises(UsageError):
        parse_signature(text)


def test_a_good_signature_holds_for_its_message_and_namespace_only(key):
    signature = key.sign(b"said", SPACE)
    assert verify_signature(signature, b"said", SPACE)
    assert not verify_signature(signature, b"Said", SPACE)
    assert not verify_signature(signature, b"said", "git")
    assert not verify_signature(key.sign(b"said", "git"), b"said", SPACE)
    assert not verify_signature(
        Signature(private(b"\2" * 32).public, SPACE, "sha512", signature.value), b"said", SPACE
    )
    assert not verify_signature(
        Signature(signature.key, SPACE, "sha256", signature.value), b"said", SPACE
    )


@pytest.mark.parametrize(("kind", "words"), [("rsa", "RSA"), ("ecdsa", "another kind")])
def test_keys_of_another_kind_are_refused_in_words(kind, words):
    pytest.importorskip("cryptography")
    from agent_nb.record.ssh_signature import PrivateKey

    with pytest.raises(UsageError, match=f"{words}.*only Ed25519 keys sign.*ssh-keygen -t ed25519"):
        PrivateKey.of(pem(kind), str)


def test_an_encrypted_key_needs_its_passphrase(key):
    pytest.importorskip("bcrypt")
    from agent_nb.record.ssh_signature import PrivateKey

    assert PrivateKey.of(pem(passphrase=b"open"), lambda: "open").public == key.public
    with pytest.raises(UsageError, match="the passphrase is wrong"):
        PrivateKey.of(pem(passphrase=b"open"), lambda: "shut")


def test_an_invalid_key_is_refused_with_a_reason():
    pytest.importorskip("cryptography")
    from agent_nb.record.ssh_signature import PrivateKey

    for data in (
        b"",
        b"ssh-ed25519 AAAA",
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
    ):
        with pytest.raises(UsageError, match="it is not an OpenSSH private key"):
            PrivateKey.of(data, str)


def test_without_the_extra_the_command_that_installs_it_is_named(monkeypatch):
    import sys

    from agent_nb.notebook.doctor.environment import EXTRAS

    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtra) as missing:
        verify_signature(
            Signature(encode_public_key(b"\1" * 32), SPACE, "sha512", b"\0" * 64), b"", SPACE
        )
    assert missing.value.install == EXTRAS["sign"].install == "pip install 'jupyter-agent-nb[sign]'"


def test_public_keys_of_another_kind_are_refused():
    rsa = base64.b64encode(
        struct.pack(">I", 7) + b"ssh-rsa" + struct.pack(">I", 3) + b"abc"
    ).decode()
    for text in (rsa, "AAAA", "no base64!"):
        with pytest.raises(UsageError):
            parse_public_key(text)


@openssh
def test_openssh_verifies_what_we_sign_and_writes_the_same(key, tmp_path):
    said, space = b"agent_nb signed record 1\nsha256:2:ab\ncd\n", SPACE
    (tmp_path / "key").write_bytes(pem())
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "message").write_bytes(said)
    ours = armor_signature(key.sign(said, space))
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-f", "key", "-n", space, "message"],
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    assert (tmp_path / "message.sig").read_text() == ours
    (tmp_path / "ours").write_text(ours)
    line = f"ann {base64_line(key.public)}\n"
    (tmp_path / "signers").write_text(line)
    command = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-f",
        "signers",
        "-I",
        "ann",
        "-n",
        space,
        "-s",
        "ours",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, input=said, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert fingerprint_key(key.public) in done.stdout.decode()
    assert subprocess.run(
        command, cwd=tmp_path, input=said + b"x", capture_output=True, timeout=60, check=False
    ).returncode


def base64_line(public):
    return f"ssh-ed25519 {base64.b64encode(public).decode()}"
