"""What people sign: that a record may run again in a cell, in addition to whoever made it.

    nb.metadata["agent_nb"]["signatures"] = {"sha256:…": "-----BEGIN SSH SIGNATURE-----…"}

Why beside the record: its own signature is the maker's, made with a secret that never leaves a
machine; a colleague's or CI's machine cannot check it. A person signs after reading, and whoever
has the public key can check that.

Rules
- Signed are a fixed prefix, the hash of the record and the hash of the cell's source, in the
  namespace of `signers`. A record in a cell of another text is not signed.
- Anybody can write into a notebook: what stands here counts by its signature only, and a text of
  another form is dropped.
- The signatures of one record by several people stand in one text; a person's newer one for the
  same source takes the place of the older.
- The record itself is not changed.
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
    """Return what is signed, for the hash of a record and that of a cell's source."""
    return f"{_PREFIX}\n{record}\n{source}\n".encode("utf-8", "surrogatepass")


def merged(*metadata: Any, hashes: Collection[str] | None = None) -> dict[str, str]:
    """Return the signatures in some values of our metadata, each once, of records with these
    `hashes` (None: of all).
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
    """Return the names of the signers who signed a record in a cell of this source. Raises
    MissingExtra where that cannot be checked.
    """
    return [name for name, good, _ in _checked(metadata, record, source, signers) if name and good]


def described(metadata: Any, record: str, source: str, signers: Iterable[Signer]) -> list[str]:
    """Return in words what the signatures of a record are worth. Raises MissingExtra where that
    cannot be checked.
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
    """Yield for each signature of a record whose it is ("": no signer's), whether it is good, and
    the key that it names.
    """
    names = {signer.key: signer.name for signer in signers if not signer.problem}
    said = message(record, source)
    for _, signature in each(merged(metadata, hashes=[record]).get(record)):
        name = names.get(signature.key, "")
        yield name, bool(name) and holds(signature, said, NAMESPACE), signature.key
