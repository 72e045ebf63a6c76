"""Whether this user made a record: its signature, with the user's Jupyter notebook secret.

Why: a replay runs code of a record again only if this user made the record, or allows that code to
run. Why this secret: every user has one, it never leaves the machine, and Jupyter itself uses it to
decide whose outputs it trusts. Reading it makes it if it is missing, as Jupyter does.

Rule: only `UserKey.owns`, or its two parts together (`is_intact` and `signed_hash`), decides
whether a record is the user's.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import encodebytes
from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..host import shorten_path, write_private
from .packing import REFERENCE, Payloads
from .record import Record, hash_and_text, record_hash

SCHEME = "hmac-sha256:"  # the prefix of every signature
_PREFIX = b"agent_nb record 1\n"  # no signature of ours can pass for one of Jupyter's
# environment variables that decide where Jupyter's data folder is
_VARIABLES = ("JUPYTER_DATA_DIR", "JUPYTER_PLATFORM_DIRS", "XDG_DATA_HOME", "HOME", "APPDATA")


class UserKey(bytes):
    """The key with which this user's records are signed: Jupyter's notebook secret, or b""."""

    def __repr__(self) -> str:
        """Return a text that does not show the secret."""
        return f"{type(self).__name__}({'hidden' if self else ''})"

    @classmethod
    def read(cls, folder: str | os.PathLike[str] | None = None) -> UserKey:
        """Return the key in Jupyter's data folder, or in `folder`; b"" if there is none."""
        with suppress(OSError):
            return cls(_read_secret(_find_secret_file(folder)))
        return cls()

    @staticmethod
    def find_problem(folder: str | os.PathLike[str] | None = None) -> str:
        """Return why `read` returns b"" and what to do about it, "" if there is a key."""
        path = _find_secret_file(folder)
        name = shorten_path(path)
        try:
            empty = not _read_secret(path)
        except OSError as fault:
            action, todo = "made", f"make {shorten_path(path.parent)} writable"
            if os.path.exists(path):
                action, todo = "read", f"make {name} readable"
            return f"{name} cannot be {action} ({fault.strerror or fault}); {todo}, or set JUPYTER_DATA_DIR"
        return f"{name} is empty; remove it, and the next run makes a new one" if empty else ""

    def sign(self, record: Record) -> dict[str, Any]:
        """Return the record with its hash and, if there is a key, its signature."""
        unsigned = {k: v for k, v in record.items() if k != "signature"}
        content = record_hash(unsigned)
        signed = {**unsigned, "hash": content}
        return {**signed, "signature": self._sign_hash(content)} if self and content else signed

    def signed(self, record: Record) -> bool:
        """Return whether this key signed this content; its payloads are not checked."""
        return self._verify(record, record_hash(record))

    def signed_hash(self, record: Record) -> bool:
        """Return whether this key signed the hash in a record, right or wrong.

        Only together with `is_intact` does this prove that the record is the user's (`owns`).
        """
        return self._verify(record, stored_hash(record))

    def owns(self, record: Record) -> bool:
        """Return whether this key signed a whole record, and nothing was changed since."""
        return self.signed_hash(record) and is_intact(record)

    def _verify(self, record: Record, content: str) -> bool:
        """Return whether a record's signature is the one that the key makes for a hash."""
        signature = record.get("signature")
        if not (self and content and isinstance(signature, str)):
            return False
        return hmac.compare_digest(
            signature.encode("utf-8", "replace"), self._sign_hash(content).encode()
        )

    def _sign_hash(self, content: str) -> str:
        """Return the signature of a content hash."""
        return SCHEME + hmac.new(self, _PREFIX + content.encode(), hashlib.sha256).hexdigest()


def is_intact(record: Record) -> bool:
    """Return whether the hash in a whole record is right and its payloads are unchanged."""
    content, text = hash_and_text(record)
    if not content or record.get("hash") != content:
        return False
    # quick for the many records without payloads
    return REFERENCE not in text or not Payloads.list_faults(record)


def covers_record(trust: bool | Collection[str], record: Record) -> bool:
    """Return whether `trust` covers a record: a bool for all records, else the trusted hashes.

    The answer is meaningful only for an intact record (`is_intact`).
    """
    return trust if isinstance(trust, bool) else stored_hash(record) in trust


def stored_hash(record: Record) -> str:
    """Return the hash in a record, "" if it cannot be a hash: other text might not be encodable."""
    stored = record.get("hash")
    return stored if isinstance(stored, str) and stored.isascii() else ""


def _find_secret_file(folder: str | os.PathLike[str] | None) -> Path:
    own = _data_folder(*map(os.environ.get, _VARIABLES)) if folder is None else folder
    return Path(own) / "notebook_secret"


@lru_cache(8)  # read for each cell; finding the folder takes longer than reading the secret
def _data_folder(*variables: str | None) -> str:
    """Return Jupyter's data folder; the values of `_VARIABLES` only key the cache."""
    from jupyter_core.paths import jupyter_data_dir

    return jupyter_data_dir()


def _read_secret(path: Path) -> bytes:
    """Return the secret in a file; make it if it is missing. Raises OSError."""
    with suppress(FileNotFoundError):
        return path.read_bytes()
    write_private(path, encodebytes(os.urandom(1024)), keep=True)
    return path.read_bytes()  # another process may have made the file first
