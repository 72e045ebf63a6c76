"""What the notebook's folder may do, remembered for this user.

Why: a key in a `.env`, the allow rules of a policy and the endpoints of a configuration decide
where prompts go and which tools run without asking. In a folder they are the word of its author;
they count once the user has allowed them.

Rules
- What a folder offers is an `Offer`. Keys are allowed for the folder, other files for exactly their
  content: a changed file asks again.
- Permissions are kept in one file of the user's state folder that only the user can read;
  `AGENT_NB_TRUST_FOLDER` allows everything for one process.
- A file that the user names on a command line counts (`named`).
- An offer says what it would do, by names; it never holds a value.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from ..errors import UsageError
from . import dotenv
from .paths import tilde
from .private_file import write_private

VARIABLE = "AGENT_NB_TRUST_FOLDER"
OPTION = "--trust-folder"
HOW = f"allow it with %agent trust-folder, or jupyter agent-nb trust-folder in a terminal; for one run: {OPTION} or {VARIABLE}=1"
What = Literal["keys", "policy", "configuration"]
_VERSION = 1
_SHOWN = 200  # characters of `does` in a message


class Offer(msgspec.Struct, frozen=True):
    """What a file would do if it were allowed.

    `file` is absolute, `does` is in words, `digest` is empty if the content does not matter.
    """

    what: What
    file: str
    does: str
    digest: str = ""

    @classmethod
    def of(cls, what: What, path: Path, does: str, content: bytes | None = None) -> Offer:
        """Return the offer of a file, for exactly its `content`, or (None) for any content."""
        return cls(
            what,
            os.path.abspath(path),
            does,
            hashlib.sha256(content).hexdigest() if content is not None else "",
        )

    @property
    def folder(self) -> str:
        """The folder of the file."""
        return os.path.dirname(self.file)

    def __str__(self) -> str:
        does = self.does if len(self.does) <= _SHOWN else f"{self.does[:_SHOWN]}…"
        return f"{os.path.basename(self.file)} in {tilde(Path(self.folder))} {does}"

    @property
    def refusal(self) -> str:
        """Why the offer does not count yet, and what to do."""
        return f"{self}. It counts only when you allow it: {HOW}"


class Folder(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a folder may do: provide keys, and be obeyed in `files` (name: SHA-256)."""

    keys: bool = False
    files: dict[str, str] = {}


class _Kept(msgspec.Struct):
    version: int = _VERSION
    folders: dict[str, Folder] = {}


_here: set[tuple[str, str]] = set()  # (file, digest) that were allowed in this process
_named: set[str] = set()


def path() -> Path:
    """Return the file in which permissions are kept (it may not exist)."""
    from platformdirs import user_state_dir

    return Path(user_state_dir("agent_nb", appauthor=False)) / "folders.json"


def everywhere() -> bool:
    """Return whether every folder is allowed everything in this process.

    A value from the folder's own `.env` does not count: some front ends set its variables.
    """
    said = os.environ.get(VARIABLE, "")
    return said not in ("", "0", dotenv.values().get(VARIABLE))


def allowed(offer: Offer) -> bool:
    """Return whether the user has allowed an offer."""
    if everywhere() or (offer.file, offer.digest) in _here or offer.file in _named:
        return True
    kept = _load().folders.get(os.path.realpath(offer.folder), Folder())
    return (
        kept.keys
        if offer.what == "keys"
        else bool(offer.digest) and kept.files.get(os.path.basename(offer.file)) == offer.digest
    )


def allow(offers: Iterable[Offer]) -> bool:
    """Allow each offer; return False if that could not be saved and holds in this process only."""
    kept = _load()
    for offer in offers:
        _here.add((offer.file, offer.digest))
        place = os.path.realpath(offer.folder)
        before = kept.folders.get(place, Folder())
        files = (
            before.files
            if offer.what == "keys"
            else {**before.files, os.path.basename(offer.file): offer.digest}
        )
        kept.folders[place] = Folder(keys=before.keys or offer.what == "keys", files=files)
    return _save(kept)


def revoke(folder: str) -> bool:
    """Withdraw all permissions of a folder; return whether it had any.

    Raises UsageError if that cannot be saved.
    """
    place = os.path.realpath(folder)
    here = {
        (file, digest) for file, digest in _here if os.path.realpath(os.path.dirname(file)) == place
    }
    _here.difference_update(here)
    kept = _load()
    if kept.folders.pop(place, None) is None:
        return bool(here)
    if not _save(kept):
        raise UsageError(
            f"{tilde(path())} cannot be written; the folder stays allowed. Delete the file."
        )
    return True


def listed() -> Iterator[tuple[str, str]]:
    """Yield (folder, what it may do) for every allowed folder."""
    for place, kept in sorted(_load().folders.items()):
        may = [
            *(["give keys (.env)"] if kept.keys else []),
            *(f"be obeyed in {name}" for name in sorted(kept.files)),
        ]
        yield tilde(Path(place)), ", ".join(may)


def named(file: str | os.PathLike[str]) -> None:
    """Let a file count in this process: the user named it on a command line."""
    _named.add(os.path.abspath(file))


def found_in(file: Path, folder: str | os.PathLike[str], *, given: str) -> bool:
    """Return whether `file` belongs to `folder`: inside it, or `given` as a relative path."""
    if not os.path.isabs(os.path.expanduser(given)):
        return True
    inside = Path(os.path.realpath(folder))
    return any(inside in Path(p).parents for p in (os.path.abspath(file), os.path.realpath(file)))


def _load() -> _Kept:
    try:
        return msgspec.json.decode(path().read_bytes(), type=_Kept)
    except (OSError, msgspec.DecodeError):  # no file or a damaged one: nothing is allowed
        return _Kept(folders={})


def _save(kept: _Kept) -> bool:
    try:
        write_private(path(), msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
    except OSError:
        return False
    return True
