"""Signatures of people: a record may run again in a cell, no matter who made it.

    nb.metadata["agent_nb"]["signatures"] = {"sha256:…": "-----BEGIN SSH SIGNATURE-----…"}

Why beside the record: its own signature is made with a secret that never leaves the maker's
machine, so a colleague or CI cannot check it. A person signs after reading, and anyone with the
public key can check that.

Rules
- Signed are a fixed prefix, the hash of the record, the hash of the cell's source and what the
  signer was shown (`RecordedCall.digest_all`), in the namespace of `signers`. A signature does
  not cover a cell with another text.
- Signatures of the first form do not say what was shown. They were made when rows and sub-agents
  were not listed, and count only for records without calls in there.
- Anyone can write into a notebook: only valid signatures count; other text is dropped.
- Several people's signatures of one record stand in one text; a person's newer one for the same
  source replaces the older.
- The record itself does not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from ..errors import UsageError
from .record import Record
from .recorded_calls import RecordedCall
from .signers import NAMESPACE, Signer
from .ssh_signature import (
    PrivateKey,
    Signature,
    armor_signature,
    find_signatures,
    fingerprint_key,
    verify_signature,
)

MOST = 16  # signatures of one record
# of a signature with the verdict `again`
AGAIN = "was made when the calls of rows and sub-agents were not shown: sign again"
_PREFIX = "agent_nb signed record"
Verdict = Literal[
    "good",
    "again",  # of the first form, for a record with calls that were not shown then
    "bad",
]


def signed_message(record: str, source: str, shown: str) -> bytes:
    """Return the message to sign, for the hash of a record, the hash of a cell's source and what
    is `shown` of the record ("": a signature of the first form).
    """
    lines = [f"{_PREFIX} {2 if shown else 1}", record, source, *([shown] if shown else [])]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


class Signatures:
    """The signatures that our metadata of a notebook hold, by the hash of the record."""

    KEY = "signatures"  # in our metadata

    def __init__(self, metadata: Any) -> None:
        self._metadata = metadata

    @classmethod
    def merge(cls, *metadata: Any, hashes: Collection[str] | None = None) -> dict[str, str]:
        """Return the signatures in versions of our metadata, each once.

        `hashes` limits them to these records (None: all).
        """
        texts_of: dict[str, dict[str, None]] = {}
        for value in metadata:
            signatures = value.get(cls.KEY) if isinstance(value, Mapping) else None
            for record, text in signatures.items() if isinstance(signatures, Mapping) else ():
                if hashes is None or record in hashes:
                    texts_of.setdefault(str(record), {}).update(
                        dict.fromkeys(armored for armored, _ in find_signatures(text))
                    )
        return {
            record: "".join(list(texts)[:MOST])
            for record, texts in sorted(texts_of.items())
            if texts
        }

    def add(self, record: Record, source: str, key: PrivateKey) -> None:
        """Write a signature into the metadata; it replaces an older one by the same key.

        `source`: the hash of the cell's text. Raises UsageError for a record that cannot be listed.
        """
        named = _hash(record)
        shown, _ = RecordedCall.digest_all(record)
        known = self.merge(self._metadata)
        messages = [signed_message(named, source, form) for form in (shown, "")]
        others = [
            text
            for text, signature in find_signatures(known.get(named, ""))
            if signature.key != key.public
            or not any(verify_signature(signature, m, NAMESPACE) for m in messages)
        ]
        armored = [armor_signature(key.sign(messages[0], NAMESPACE)), *others][:MOST]
        self._metadata[self.KEY] = dict(sorted({**known, named: "".join(armored)}.items()))

    def signers_of(self, record: Record, source: str, signers: Iterable[Signer]) -> list[str]:
        """Return the names of the signers who signed a record for a cell of this source.

        Raises MissingExtra if that cannot be checked here.
        """
        checked = self._check(record, source, signers)
        return [name for name, verdict, _ in checked if verdict == "good"]

    def describe(self, record: Record, source: str, signers: Iterable[Signer]) -> list[str]:
        """Describe the signatures of a record and whether they count.

        Raises MissingExtra if that cannot be checked here.
        """
        return [
            f"signed with {fingerprint_key(key)}, which is not the key of a signer"
            if not name
            else f"signed by {name}"
            if verdict == "good"
            else f"the signature by {name} {AGAIN}"
            if verdict == "again"
            else f"the signature by {name} is not one of this record for this text of the cell"
            for name, verdict, key in self._check(record, source, signers)
        ]

    def _check(
        self, record: Record, source: str, signers: Iterable[Signer]
    ) -> Iterator[tuple[str, Verdict, bytes]]:
        """Yield (signer's name or "", whether it counts, key) of each signature of a record."""
        names = {signer.key: signer.name for signer in signers if not signer.problem}
        named = _hash(record)
        read = cache(lambda: _forms(record, named, source))  # slow: only if a signer has signed
        texts = self.merge(self._metadata, hashes=[named])
        for _, signature in find_signatures(texts.get(named)):
            name = names.get(signature.key, "")
            yield name, _verdict(signature, *read()) if name else "bad", signature.key


def _forms(record: Record, named: str, source: str) -> tuple[list[bytes], bool]:
    """Return the messages that a good signature signs, and whether the second of them counts.

    The present form comes first (b"": the calls cannot be listed), then the first form.
    """
    first = signed_message(named, source, "")
    try:
        shown, inside = RecordedCall.digest_all(record)
    except UsageError:
        return [b"", first], False
    return [signed_message(named, source, shown), first], not inside


def _verdict(signature: Signature, forms: Sequence[bytes], first_counts: bool) -> Verdict:
    """Return whether a signature signs one of the messages of `_forms`, and whether it counts."""
    present, first = forms
    if present and verify_signature(signature, present, NAMESPACE):
        return "good"
    if not verify_signature(signature, first, NAMESPACE):
        return "bad"
    return "good" if first_counts else "again"


def _hash(record: Record) -> str:
    """Return the hash that a record names."""
    return str(record.get("hash", ""))
