"""Ed25519 signatures in the format of `ssh-keygen -Y sign`, and the keys that make and check them.

Why this format: people have SSH keys and know how to keep, share and revoke them, and OpenSSH can
check a signature without our code.
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from binascii import Error as NotBase64
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from ..errors import MissingExtra, UsageError

ED25519 = "ssh-ed25519"
INSTALL = "pip install 'jupyter-agent-nb[sign]'"
# hash algorithms that a signature may name; our signatures use the first
HASHES: dict[str, Callable[[bytes], Any]] = {"sha512": hashlib.sha512, "sha256": hashlib.sha256}
LONGEST = 4096  # characters of an armored signature
# the format is specified in PROTOCOL.sshsig of OpenSSH
_MAGIC = b"SSHSIG"
_VERSION = 1
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
# bounded, and with one way to match any text: a hostile text must not make it slow
_ARMOR = re.compile(rf"{_BEGIN}\s([A-Za-z0-9+/=\s]{{0,{LONGEST}}}?){_END}")
_COLUMNS = 70  # characters of a line of base64, as OpenSSH writes it
_KEY_SIZE, _SIGNATURE_SIZE = 32, 64  # bytes of a public key and of a signature


class Signature(msgspec.Struct, frozen=True):
    """A signature: public key (as OpenSSH encodes it), namespace, hash algorithm and 64 bytes."""

    key: bytes
    namespace: str
    algorithm: str
    value: bytes


def armor_signature(signature: Signature) -> str:
    """Return a signature as text between a BEGIN and an END line."""
    value = _encode_string(ED25519.encode()) + _encode_string(signature.value)
    # b"" is a reserved field
    fields = (signature.key, signature.namespace.encode(), b"", signature.algorithm.encode(), value)
    head = _MAGIC + struct.pack(">I", _VERSION)
    text = base64.b64encode(head + b"".join(map(_encode_string, fields))).decode()
    lines = [text[n : n + _COLUMNS] for n in range(0, len(text), _COLUMNS)]
    return "\n".join([_BEGIN, *lines, _END]) + "\n"


def parse_signature(text: str) -> Signature:
    """Parse one armored signature. Raises UsageError."""
    armor = _ARMOR.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if armor is None:
        raise UsageError(
            "This is not an SSH signature: its first or last line is missing, or it is too long."
        )
    data = _decode_base64("".join(armor[1].split()))
    if not data.startswith(_MAGIC + struct.pack(">I", _VERSION)):
        raise UsageError("This is not an SSH signature of version 1.")
    key, namespace, reserved, algorithm, value = _split_strings(data[len(_MAGIC) + 4 :], 5)
    kind, signature = _split_strings(value, 2)
    if kind != ED25519.encode() or len(signature) != _SIGNATURE_SIZE or reserved:
        raise UsageError(f"The signature is not one of {ED25519}.")
    decode_public_key(key)
    name = algorithm.decode("utf-8", "replace")
    if name not in HASHES:
        raise UsageError(f"The signature is made of an unknown hash ({name[:20]!r}).")
    return Signature(key, namespace.decode("utf-8", "replace"), name, signature)


def find_signatures(text: Any) -> Iterator[tuple[str, Signature]]:
    """Yield (armored text, signature) of every well-formed signature in an untrusted value.

    The armored text is written anew (`armor_signature`), so equal signatures have equal texts.
    Whether a signature is valid is not checked (`verify_signature`).
    """
    if not isinstance(text, str):
        return
    for armor in _ARMOR.finditer(text):
        with suppress(UsageError):
            signature = parse_signature(armor[0])
            yield armor_signature(signature), signature


def verify_signature(signature: Signature, message: bytes, namespace: str) -> bool:
    """Return whether a signature is valid for `message` in `namespace`. Raises MissingExtra.

    The namespace says what a signature is for: one for another purpose does not count.
    """
    if signature.namespace != namespace:
        return False
    exceptions, ed25519, _ = _import_cryptography()
    try:
        public = ed25519.Ed25519PublicKey.from_public_bytes(decode_public_key(signature.key))
        public.verify(signature.value, _signed_bytes(message, namespace, signature.algorithm))
    except (exceptions.InvalidSignature, ValueError, UsageError):
        return False
    return True


class PrivateKey:
    """An Ed25519 key that signs; `public` is its public key as OpenSSH encodes it."""

    def __init__(self, private: Any) -> None:
        self._private = private
        self.public = encode_public_key(private.public_key().public_bytes_raw())

    @classmethod
    def of(cls, data: bytes, passphrase: Callable[[], str]) -> PrivateKey:
        """Return the key in `data`, the content of an OpenSSH private key file.

        `passphrase` is called if the key is encrypted. Raises UsageError if the key is not Ed25519
        or the passphrase is wrong, and MissingExtra.
        """
        exceptions, ed25519, serialization = _import_cryptography()
        if b" PRIVATE KEY-----" not in data:
            raise UsageError(
                "it is not an OpenSSH private key. Make one with: ssh-keygen -t ed25519"
            )
        try:
            try:
                private = serialization.load_ssh_private_key(data, None)
            except TypeError:  # raised for an encrypted key without a passphrase
                private = serialization.load_ssh_private_key(data, passphrase().encode())
        except (ValueError, exceptions.UnsupportedAlgorithm) as fault:
            raise UsageError(
                f"it cannot be read ({fault}): it is not an OpenSSH private key, or the passphrase is wrong"
            ) from None
        if not isinstance(private, ed25519.Ed25519PrivateKey):
            kind = type(private).__name__.lstrip("_").removesuffix("PrivateKey")
            raise UsageError(
                f"it is a key of another kind ({kind}); only Ed25519 keys sign. Make one with: ssh-keygen -t ed25519"
            )
        return cls(private)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its public key, as `ssh-keygen -l` writes it."""
        return fingerprint_key(self.public)

    def sign(self, message: bytes, namespace: str) -> Signature:
        """Return the signature of a message."""
        algorithm = next(iter(HASHES))
        value = self._private.sign(_signed_bytes(message, namespace, algorithm))
        return Signature(self.public, namespace, algorithm, value)


def parse_public_key(text: str) -> bytes:
    """Decode a public key in base64, as it stands in `.pub` files.

    Raises UsageError if it is not an Ed25519 key.
    """
    key = _decode_base64(text)
    decode_public_key(key)
    return key


def encode_public_key(raw: bytes) -> bytes:
    """Return the 32 bytes of an Ed25519 public key as OpenSSH encodes them."""
    return _encode_string(ED25519.encode()) + _encode_string(raw)


def decode_public_key(key: bytes) -> bytes:
    """Return the 32 bytes of an encoded Ed25519 public key. Raises UsageError."""
    kind, raw = _split_strings(key, 2)
    if kind != ED25519.encode() or len(raw) != _KEY_SIZE:
        raise UsageError(f"It is not a key of the kind {ED25519}; other keys do not count.")
    return raw


def fingerprint_key(key: bytes) -> str:
    """Return the fingerprint of a public key as `ssh-keygen -l` writes it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def _signed_bytes(message: bytes, namespace: str, algorithm: str) -> bytes:
    """Return the bytes that are signed for a message; b"" is a reserved field."""
    digest = HASHES[algorithm](message).digest()
    fields = (namespace.encode(), b"", algorithm.encode(), digest)
    return _MAGIC + b"".join(map(_encode_string, fields))


def _encode_string(value: bytes) -> bytes:
    """Return bytes as the format writes them: their length in four bytes, then the bytes."""
    return struct.pack(">I", len(value)) + value


def _split_strings(data: bytes, count: int) -> list[bytes]:
    """Return exactly `count` strings that fill `data`. Raises UsageError."""
    fields = []
    for _ in range(count):
        size = struct.unpack(">I", data[:4])[0] if len(data) >= 4 else -1
        if size < 0 or len(data) < 4 + size:
            raise UsageError("It is cut off.")
        fields.append(data[4 : 4 + size])
        data = data[4 + size :]
    if data or len(fields) != count:
        raise UsageError("Something follows where it should end.")
    return fields


def _decode_base64(text: str) -> bytes:
    """Return the bytes of a base64 text. Raises UsageError."""
    try:
        return base64.b64decode(text, validate=True)
    except (NotBase64, ValueError):
        raise UsageError("It is not base64.") from None


def _import_cryptography() -> tuple[Any, Any, Any]:
    """Import the parts of cryptography that are used here. Raises MissingExtra."""
    try:
        from cryptography import exceptions
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtra("What signs and checks signatures (cryptography)", INSTALL) from None
    return exceptions, ed25519, serialization
