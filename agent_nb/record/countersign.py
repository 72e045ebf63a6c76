"""Signatures of people: that a record may run again in a cell, whoever made it.

    nb.metadata["agent_nb"]["signatures"] = {"sha256:…": "-----BEGIN SSH SIGNATURE-----…"}

Why beside the record: its own signature is made with a secret that never leaves the maker's
machine, so a colleague or CI cannot check it. A person signs after reading, and anyone with the
public key can check that.

Rules
- Signed are a fixed prefix, the hash of the record and the hash of the cell's source, in the
  namespace of `signers`. A signature does not cover a cell with another text.
- Anyone can write into a notebook: only valid signatures count; other text is dropped.
- Several people's signatures of one record stand in one text; a person's newer one for the same
  source replaces the older.
- The record itself does not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from .signers import NAMESPACE, Signer
from .ssh_signature import PrivateKey, armored, each, fingerprint, holds

SIGNATURES = "signatures"
MOST = 16  # signatures of one record
_PREFIX = "agent_nb signed record 1"


def message(record: str, source: str) -> bytes:
    """Return the message to sign, for the hash of a record and the hash of a cell's source."""
    return f"{_PREFIX}\n{record}\n{source}\n".encode("utf-8", "surrogatepass")


def merged(*metadata: Any, hashes: Collection[str] | None = None) -> dict[str, str]:
    """Return the signatures in versions of our metadata, each once.

    `hashes` limits them to these records (None: all).
    """
    found: dict[str, dict[str, None]] = {}
    for value in metadata:
        signatures = value.get(SIGNATURES) if isinstance(value, Mapping) else None
        for record, text in signatures.items() if isinstance(signatures, Mapping) else ():
            if hashes is None or record in hashes:
                found.setdefault(str(record), {}).update(
                    dict.fromkeys(one for one, _ in each(text))
                )
    return {record: "".join(list(texts)[:MOST]) for record, texts in sorted(found.items()) if texts}


def sign(metadata: dict[str, Any], record: str, source: str, key: PrivateKey) -> None:
    """Add a signature to our metadata."""
    said = message(record, source)
    old = merged(metadata).get(record, "")
    others = [
        text
        for text, signature in each(old)
        if signature.key != key.public or not holds(signature, said, NAMESPACE)
    ]
    signed = [armored(key.sign(said, NAMESPACE)), *others][:MOST]
    metadata[SIGNATURES] = dict(sorted({**merged(metadata), record: "".join(signed)}.items()))


def signers_of(metadata: Any, record: str, source: str, signers: Iterable[Signer]) -> list[str]:
    """Return the names of the signers who signed a record for a cell of this source.

    Raises MissingExtra if that cannot be checked here.
    """
    return [name for name, good, _ in _checked(metadata, record, source, signers) if name and good]


def described(metadata: Any, record: str, source: str, signers: Iterable[Signer]) -> list[str]:
    """Describe the signatures of a record and whether they count.

    Raises MissingExtra if that cannot be checked here.
    """
    return [
        f"signed with {fingerprint(key)}, which is not the key of a signer"
        if not name
        else f"signed by {name}"
        if good
        else f"the signature by {name} is not one of this record for this text of the cell"
        for name, good, key in _checked(metadata, record, source, signers)
    ]


def _checked(
    metadata: Any, record: str, source: str, signers: Iterable[Signer]
) -> Iterator[tuple[str, bool, bytes]]:
    """Yield (name of the signer or "", whether it is valid, key) of each signature of a record."""
    names = {signer.key: signer.name for signer in signers if not signer.problem}
    said = message(record, source)
    for _, signature in each(merged(metadata, hashes=[record]).get(record)):
        name = names.get(signature.key, "")
        yield name, bool(name) and holds(signature, said, NAMESPACE), signature.key
