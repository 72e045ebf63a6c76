"""Signatures by people: with one, a record may run again in its cell, no matter who made it.

    nb.metadata["agent_nb"]["signatures"] = {"sha256:…": "-----BEGIN SSH SIGNATURE-----…"}

Why in addition to the record's own signature (`signing`): only the record's maker can check that
one, with a secret that never leaves the machine. Here a person signs after reading the record, and
anyone can check the signature.

Rule: signatures of the older first form do not cover what the signer was shown, because calls of
rows and sub-agents were not listed then. They count only for records without such calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Literal

from ..errors import UsageError
from ..wire import as_dict
from .record import Record
from .recorded_calls import RecordedCall
from .signers import NAMESPACE, Signer
from .signing import stored_hash
from .ssh_signature import (
    PrivateKey,
    armor_signature,
    find_signatures,
    fingerprint_key,
    verify_signature,
)

MOST_SIGNATURES = 16  # kept for one record
_PREFIX = "agent_nb signed record"
Verdict = Literal[
    "good",
    "again",  # of the first form, but the record has calls that were not shown then
    "bad",
    "stranger",  # not by a signer
]
# verdict -> sentence on a signature by {}: a signer's name, or the fingerprint of a stranger's key
_SENTENCES: dict[Verdict, str] = {
    "good": "signed by {}",
    "again": "the signature by {} was made when the calls of rows and sub-agents were not shown: sign again",
    "bad": "the signature by {} is not one of this record for this text of the cell",
    "stranger": "signed with {}, which is not the key of a signer",
}


def signed_message(record: str, source: str, shown: str) -> bytes:
    """Return the message to sign.

    `record`: the hash of the record. `source`: the hash of the cell's source. `shown`: the digest
    of the calls that the signer was shown ("": the message of the first form).
    """
    lines = [f"{_PREFIX} {2 if shown else 1}", record, source, *([shown] if shown else [])]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


class Signatures:
    """The signatures in our metadata of a notebook, by the hash of the record."""

    KEY = "signatures"  # in our metadata

    def __init__(self, metadata: Any) -> None:
        self._metadata = metadata

    @classmethod
    def merge(cls, *metadata: Any, hashes: Collection[str] | None = None) -> dict[str, str]:
        """Merge the signatures of several versions of our metadata; return texts by record hash.

        A text holds each signature once, `MOST_SIGNATURES` at most. `hashes`: the records whose
        signatures are returned (None: all).
        """
        # hash of a record -> its signatures (a dict as an ordered set)
        texts_of: dict[str, dict[str, None]] = {}
        for value in metadata:
            for record, text in as_dict(as_dict(value).get(cls.KEY)).items():
                if hashes is None or record in hashes:
                    armored = dict.fromkeys(armored for armored, _ in find_signatures(text))
                    texts_of.setdefault(str(record), {}).update(armored)
        sorted_texts = ((record, texts) for record, texts in sorted(texts_of.items()) if texts)
        return {record: "".join(list(texts)[:MOST_SIGNATURES]) for record, texts in sorted_texts}

    def add(self, record: Record, source: str, key: PrivateKey) -> None:
        """Write a signature into the metadata; it replaces an older one by the same key.

        `source`: the hash of the cell's text. Raises UsageError if calls cannot be listed.
        """
        record_hash = stored_hash(record)
        shown, _ = RecordedCall.digest_all(record)
        known = self.merge(self._metadata)
        messages = [signed_message(record_hash, source, form) for form in (shown, "")]
        # of the signatures by this key, only one of this record and source is replaced
        other_signatures = [
            text
            for text, signature in find_signatures(known.get(record_hash, ""))
            if signature.key != key.public
            or not any(verify_signature(signature, m, NAMESPACE) for m in messages)
        ]
        armored = [armor_signature(key.sign(messages[0], NAMESPACE)), *other_signatures]
        known[record_hash] = "".join(armored[:MOST_SIGNATURES])
        self._metadata[self.KEY] = dict(sorted(known.items()))

    def signers_of(self, record: Record, source: str, signers: Iterable[Signer]) -> list[str]:
        """Return the names of the signers who signed a record for a cell of this source.

        Raises MissingExtra if that cannot be checked here.
        """
        return [n for n, verdict in self._judge(record, source, signers) if verdict == "good"]

    def describe(self, record: Record, source: str, signers: Iterable[Signer]) -> list[str]:
        """Describe the signatures of a record and whether they count.

        Raises MissingExtra if that cannot be checked here.
        """
        return [_SENTENCES[v].format(name) for name, v in self._judge(record, source, signers)]

    def _judge(
        self, record: Record, source: str, signers: Iterable[Signer]
    ) -> Iterator[tuple[str, Verdict]]:
        """Yield (name of its signer, else fingerprint of its key; verdict) of each signature."""
        names = {signer.key: signer.name for signer in signers if not signer.problem}
        record_hash = stored_hash(record)
        texts = self.merge(self._metadata, hashes=[record_hash])
        messages: list[tuple[bytes, Verdict]] = []
        for _, signature in find_signatures(texts.get(record_hash)):
            name = names.get(signature.key)
            if not name:
                yield fingerprint_key(signature.key), "stranger"
                continue
            # reading the calls is slow, so it waits for the first signature by a signer
            messages = messages or _list_messages(record, source)
            verdicts = (v for m, v in messages if verify_signature(signature, m, NAMESPACE))
            yield name, next(verdicts, "bad")


def _list_messages(record: Record, source: str) -> list[tuple[bytes, Verdict]]:
    """Return the messages that a signature may sign, each with the verdict on that signature.

    One of the first form counts if all calls can be listed, and no row or sub-agent made any.
    """
    record_hash = stored_hash(record)
    first = signed_message(record_hash, source, "")
    try:
        shown, is_inside = RecordedCall.digest_all(record)
    except UsageError:
        return [(first, "again")]
    present = signed_message(record_hash, source, shown)
    return [(present, "good"), (first, "again" if is_inside else "good")]
