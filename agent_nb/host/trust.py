"""What the notebook's folder may do, remembered for this user.

A key in a `.env`, the allow rules of a policy and the endpoints of a configuration decide where
prompts go and which tools run. Their author may be a stranger, so they count only once the user
has allowed them.

Rules
- Keys are allowed for the folder, other files for exactly their content: after a change the user is
  asked again.
- An MCP server runs a command, so each entry needs its own permission; a permission for the folder
  does not cover it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Literal

import msgspec

from ..errors import UsageError
from . import dotenv
from .paths import shorten_path
from .private_file import hold_lock, write_private

Kind = Literal["keys", "policy", "configuration", "server"]
_VERSION = 1  # of the format of the permission file
_LONGEST_EFFECT = 200  # characters of `does` in a message


class Offer(msgspec.Struct, frozen=True):
    """What a file would do if the user allowed it.

    `file`: its absolute path. `does`: the effect in words, never with the value of a key. `digest`:
    SHA-256 of the content, "" if any content is allowed. `name`: the server whose entry is offered,
    "" for the whole file.
    """

    #: environment variables for every folder: the first allows all but servers, the second servers
    TRUST_FOLDER: ClassVar = "AGENT_NB_TRUST_FOLDER"
    TRUST_SERVERS: ClassVar = "AGENT_NB_TRUST_MCP"
    OPTION: ClassVar = "--trust-folder"
    HOW: ClassVar = "allow it with %agent trust-folder, or jupyter agent-nb trust-folder in a terminal; for one run: --trust-folder or AGENT_NB_TRUST_FOLDER=1"

    what: Kind
    file: str
    does: str
    digest: str = ""
    name: str = ""

    @classmethod
    def of(cls, what: Kind, path: Path, does: str, content: bytes | None = None) -> Offer:
        """Return the offer of a file, for exactly this `content` (None: for any content)."""
        digest = hashlib.sha256(content).hexdigest() if content is not None else ""
        return cls(what, os.path.abspath(path), does, digest)

    @property
    def folder(self) -> str:
        """The folder of the file."""
        return os.path.dirname(self.file)

    def __str__(self) -> str:
        is_long = len(self.does) > _LONGEST_EFFECT
        does = f"{self.does[:_LONGEST_EFFECT]}…" if is_long else self.does
        return f"{os.path.basename(self.file)} in {shorten_path(Path(self.folder))} {does}"

    @property
    def refusal(self) -> str:
        """The message that the offer has no effect yet, and how to allow it."""
        return f"{self}. It counts only when you allow it: {self.HOW}"

    def is_allowed(self) -> bool:
        """Return whether the user has allowed this offer."""
        if _without_description(self) in _allowed_here:
            return True
        folder = _load().of_folder(self.folder)
        if self.what == "server":
            has_permission = folder.servers.get(self.name) == self.digest
            return has_permission or self.is_trusted_everywhere(self.TRUST_SERVERS)
        if self.is_trusted_everywhere() or self.file in _named_files:
            return True
        if self.what == "keys":
            return folder.keys
        return bool(self.digest) and folder.files.get(os.path.basename(self.file)) == self.digest

    @staticmethod
    def allow_all(offers: Iterable[Offer]) -> bool:
        """Allow the offers; return False if the permissions, unsaved, end with this process."""
        listed = list(offers)
        with hold_lock(locate_permissions()):
            permissions = _load()
            for offer in listed:
                allowed = permissions.of_folder(offer.folder).with_offer(offer)
                permissions.folders[os.path.realpath(offer.folder)] = allowed
            saved = _save(permissions)
        if not saved:  # else another process could not revoke them in this one
            _allowed_here.update(map(_without_description, listed))
        return saved

    def withdraw(self) -> bool:
        """Withdraw a server's permission, even one for an older entry; return whether it had one.

        Raises UsageError if the change cannot be saved.
        """
        had_permission = _withdraw_here(lambda o: (o.file, o.name) == (self.file, self.name))
        with hold_lock(locate_permissions()):
            permissions = _load()
            before = permissions.of_folder(self.folder)
            if self.name not in before.servers:
                return had_permission
            servers = {name: digest for name, digest in before.servers.items() if name != self.name}
            after = msgspec.structs.replace(before, servers=servers)
            permissions.folders[os.path.realpath(self.folder)] = after
            if not _save(permissions):
                raise UsageError(
                    f"{shorten_path(locate_permissions())} cannot be written; the server stays allowed."
                )
        return True

    @staticmethod
    def is_trusted_everywhere(variable: str = TRUST_FOLDER) -> bool:
        """Return whether an environment variable allows all but servers, in every folder.

        Other variables allow something else, as `Offer.TRUST_SERVERS` all servers. A value that
        equals one in a `.env` of this folder or above is ignored: some front ends export such a
        file, not always the nearest.
        """
        value = os.environ.get(variable, "")
        return value not in ("", "0") and value not in dotenv.list_values(variable)

    @staticmethod
    def revoke_folder(folder: str) -> bool:
        """Withdraw all permissions of a folder; return whether it had any.

        Raises UsageError if the change cannot be saved.
        """
        real = os.path.realpath(folder)
        had_permission = _withdraw_here(lambda o: os.path.realpath(o.folder) == real)
        with hold_lock(locate_permissions()):
            permissions = _load()
            if permissions.folders.pop(real, None) is None:
                return had_permission
            if not _save(permissions):
                raise UsageError(
                    f"{shorten_path(locate_permissions())} cannot be written; the folder stays allowed. Delete the file."
                )
        return True

    @staticmethod
    def list_allowed() -> Iterator[tuple[str, str]]:
        """Yield (folder, what it may do) for every allowed folder."""
        for real_path, folder in sorted(_load().folders.items()):
            may = [
                *(["give keys (.env)"] if folder.keys else []),
                *(f"be obeyed in {name}" for name in sorted(folder.files)),
                *(f"start the MCP server {name}" for name in sorted(folder.servers)),
            ]
            if may:
                yield shorten_path(Path(real_path)), ", ".join(may)

    @staticmethod
    def trust_file(file: str | os.PathLike[str]) -> None:
        """Allow a file in this process, because the user named it on a command line."""
        _named_files.add(os.path.abspath(file))


class _FolderPermissions(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a folder may do: give keys, have `files` obeyed, start `servers`.

    `files` and `servers`: name of a file or server -> SHA-256 of the allowed content or entry.
    """

    keys: bool = False
    files: dict[str, str] = {}
    servers: dict[str, str] = {}

    def with_offer(self, offer: Offer) -> _FolderPermissions:
        """Return these permissions with one more offer of the folder allowed."""
        if offer.what == "keys":
            return msgspec.structs.replace(self, keys=True)
        if offer.what == "server":
            servers = {**self.servers, offer.name: offer.digest}
            return msgspec.structs.replace(self, servers=servers)
        files = {**self.files, os.path.basename(offer.file): offer.digest}
        return msgspec.structs.replace(self, files=files)


class _Permissions(msgspec.Struct):
    """What the file of permissions holds: each allowed folder by its real path."""

    version: int = _VERSION
    folders: dict[str, _FolderPermissions] = {}

    def of_folder(self, folder: str) -> _FolderPermissions:
        """Return the permissions of a folder, none if it is not allowed anything."""
        return self.folders.get(os.path.realpath(folder), _FolderPermissions())


# what is allowed in this process alone, as it was not saved (keys: `_without_description`)
_allowed_here: set[Offer] = set()
_named_files: set[str] = set()  # absolute paths that the user named on a command line


def _without_description(offer: Offer) -> Offer:
    """Return the offer as the key of a permission: its description may change meanwhile."""
    return msgspec.structs.replace(offer, does="")


def _withdraw_here(matches: Callable[[Offer], bool]) -> bool:
    """Forget the matching offers allowed in this process; return whether there were any."""
    withdrawn = set(filter(matches, _allowed_here))
    _allowed_here.difference_update(withdrawn)
    return bool(withdrawn)


def locate_permissions() -> Path:
    """Return the file in which permissions are kept (it may not exist)."""
    from platformdirs import user_state_dir

    return Path(user_state_dir("agent_nb", appauthor=False)) / "folders.json"


def _load() -> _Permissions:
    try:
        return msgspec.json.decode(locate_permissions().read_bytes(), type=_Permissions)
    except (OSError, ValueError):  # no file or a damaged one: nothing is allowed
        return _Permissions(folders={})


def _save(permissions: _Permissions) -> bool:
    """Write the permissions; return whether that was possible."""
    text = msgspec.json.format(msgspec.json.encode(permissions), indent=1)
    try:
        write_private(locate_permissions(), text + b"\n")
    except OSError:
        return False
    return True
