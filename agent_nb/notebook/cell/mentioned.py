"""The variables, files and cells that a prompt mentions by `@name`, described for a model.

Why: a prompt such as "@reviews has which columns?" should need neither a tool nor an approval. The
record names what each `@name` meant, so that a replay compares exactly this variable, file or cell,
not a later one of the same name.

Rules
- A variable comes before a file of that name; any other `@` is plain text. No code runs.
- Numbers of cells change with each session, so a record names a cell by its id, or without one by
  the digest of its source. While the prompt stays as it is, `@cell:N` means the recorded cell.
"""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from ...agent import Mention
from ...errors import ToolError
from ...events import User
from ...models import collect_secrets
from ...record import events_of, source_hash
from ...tools import open_confined, user_variables
from ...wire import redact_text
from ..file_text import decode_text, describe_text, format_name
from ..files.library import Library
from ..files.notebook_file import NotebookFile
from ..identity import Cell
from ..mentions import AtName, find_at_names
from .context_cells import describe_cell, readable_cells
from .ran_cells import RanCell

LARGEST_FILE = 64_000_000  # bytes of a file that is read
LONGEST_SENT = 16_000  # characters of a file that the model reads
DIGEST_LENGTH = 16  # characters of a digest of a file's bytes
UNKNOWN_DIGEST = "?"  # the digest of a file too large to be read; two such files count as unchanged


class References(msgspec.Struct, frozen=True):
    """The `@name`s of a prompt and the files of `--attach`.

    `mentions` goes into the record, `texts` to the model. The texts describe files and cells; the
    mentioned variables are described with the others (`context`).
    """

    mentions: tuple[Mention, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def variables(self) -> list[str]:
        """The names of the variables, in order."""
        return [m.name for m in self.mentions if m.kind == "variable"]

    def names_cell(self, cell: RanCell) -> bool:
        """Return whether a cell is among the mentions."""
        return any(m.kind == "cell" and _is_recorded(cell, m) for m in self.mentions)

    def joined(self, other: References) -> References:
        """Return the mentions and the texts of both."""
        return References((*self.mentions, *other.mentions), (*self.texts, *other.texts))


NO_REFERENCES = References()


class _Target(msgspec.Struct, frozen=True):
    """What one `@name` means; `text` describes it for a model, "" for a variable."""

    mention: Mention
    text: str = ""


class MentionTargets:
    """The cells and files of a notebook, as an `@name` in one of its cells can mean them.

    `resolve` serves the prompt of a run, `describe_changes` the decision to replay a record.
    """

    def __init__(self, shell: Any, cell: Cell, library: Library) -> None:
        self._shell, self._cell, self._library = shell, cell, library
        self._file: NotebookFile | None = None

    @property
    def file(self) -> NotebookFile:
        """The saved notebook, read when it is first needed."""
        if self._file is None:
            self._file = self._library.read_file(self._cell.runner_options)
        return self._file

    def resolve(self, written: str, prompt: str) -> References:
        """Return what the `@name`s in a cell's text mean; `prompt`: the text as it is sent."""
        names = find_at_names(written)
        if not names:
            return References()
        clean = partial(redact_text, secrets=collect_secrets())
        variables = user_variables(self._shell.user_ns, self._shell.user_ns_hidden, imports=False)
        targets: dict[tuple[str, str], _Target] = {}
        for name in names:
            if (target := self._find_target(name, variables, prompt, clean)) is not None:
                mention = target.mention
                targets.setdefault((mention.kind, mention.name or mention.digest), target)
        mentions = tuple(target.mention for target in targets.values())
        texts = tuple(target.text for target in targets.values() if target.text)
        return References(mentions, texts)

    def _find_target(
        self, name: AtName, variables: Collection[str], prompt: str, clean: Callable[[str], str]
    ) -> _Target | None:
        """Return what an `@name` means; None: it is plain text."""
        if name.cell is not None:
            return self._find_cell(name, prompt, clean)
        variable = unicodedata.normalize("NFKC", name.variable)  # as Python reads names
        as_variable = _Target(Mention(f"@{name.variable}", "variable", variable))
        if name.exact and variable in variables:
            return as_variable
        for path in name.paths:
            if (target := _read_file(path, name.text, clean)) is not None:
                return target
        return as_variable if variable in variables else None

    def _find_cell(self, name: AtName, prompt: str, clean: Callable[[str], str]) -> _Target | None:
        """Return the cell that the record means (as it ran here, else as saved), else cell N."""
        readable = readable_cells(self._shell, self._cell, self.file)
        recorded = self._find_recorded(name.text, prompt)
        cell = None
        if recorded is not None:
            cell = next((c for c in readable if _is_recorded(c, recorded)), None)
            cell = cell or self._find_saved(recorded)
        cell = cell or next((c for c in readable if c.count == name.cell), None)
        if cell is None:
            return None
        has_id = cell.id and not self.file.made_up_ids
        mention = Mention(name.text, "cell", cell.id if has_id else "", cell.text_hash)
        return _Target(mention, f"The cell {name.text}:\n{describe_cell(cell, clean)}")

    def _find_recorded(self, text: str, prompt: str) -> Mention | None:
        """Return what `@cell:N` meant in the newest record of the running cell with its prompt."""
        for record in self._library.rank_records(self._cell):
            events = events_of(record)
            user = next((e for e in events if isinstance(e, User) and not e.span), None)
            if user is not None and user.content.strip() == prompt.strip():
                cells = (m for m in Mention.read_all(events) if m.kind == "cell")
                return next((m for m in cells if m.text == text), None)
        return None

    def _find_saved(self, recorded: Mention) -> RanCell | None:
        """Return a recorded cell that has not run here, as the saved notebook holds it."""
        for name, source in self.file.sources.items():
            cell = RanCell(count=0, id=name, code=source, text_hash=source_hash(source))
            if name not in self.file.excluded_ids and _is_recorded(cell, recorded):
                return cell
        return None

    def describe_changes(
        self, recorded: Sequence[Mention], written: Collection[str], attached: Sequence[Mention]
    ) -> list[str]:
        """Describe how files and cells differ from those that a recorded run used.

        `written`: files that the run wrote itself. `attached`: the files of `--attach` now.
        """
        return [
            *self._list_changes(recorded, written),
            *_describe_attached_changes(recorded, written, attached),
        ]

    def _list_changes(self, recorded: Sequence[Mention], written: Collection[str]) -> Iterator[str]:
        for mention in recorded:
            if mention.kind == "cell":
                change = self._describe_cell_change(mention)
            elif mention.kind == "file" and mention.text and not _is_among(mention.name, written):
                change = _describe_file_change(mention)
            else:
                continue
            if change:
                yield f"`{mention.text}` {change}"

    def _describe_cell_change(self, mention: Mention) -> str:
        """Return how a mentioned cell has changed since the record, "" if it has not."""
        readable = readable_cells(self._shell, self._cell, self.file)
        same_id = [c.text_hash for c in readable if mention.name and c.id == mention.name]
        saved = self.file.sources.get(mention.name) if mention.name else None
        if not same_id and saved is not None:
            same_id = [source_hash(saved)]
        if same_id:
            return "" if mention.digest in same_id else "was edited"
        sources = self.file.sources.values()
        copies = {*(c.text_hash for c in readable), *map(source_hash, sources)}
        return "" if mention.digest in copies else "is gone"


def _is_recorded(cell: RanCell, recorded: Mention) -> bool:
    """Return whether a recorded mention means this cell."""
    return cell.id == recorded.name if recorded.name else cell.text_hash == recorded.digest


def _read_file(path: str, text: str, clean: Callable[[str], str]) -> _Target | None:
    """Return a file below the notebook's folder, described; None if `path` may not be read."""
    try:
        with open_confined(os.curdir, path) as raw:
            data = raw.read(LARGEST_FILE + 1)
            size = os.fstat(raw.fileno()).st_size
    except (ToolError, OSError):
        return None
    if len(data) > LARGEST_FILE:
        mention, content = Mention(text, "file", path, UNKNOWN_DIGEST), None
    else:
        mention, content = Mention(text, "file", path, digest_data(data)), decode_text(data)
    if content is None:
        return _Target(mention, f"File {format_name(path, clean)}, {size:,} bytes, not shown.")
    return _Target(mention, describe_text(path, content, clean, LONGEST_SENT))


def digest_data(data: bytes) -> str:
    """Return the digest of a file as mentions name it."""
    return hashlib.sha256(data).hexdigest()[:DIGEST_LENGTH]


def _describe_file_change(mention: Mention) -> str:
    now = _read_file(mention.name, mention.text, str)  # `str` redacts nothing: no text is shown
    if now is None:
        return "is gone"
    return "" if now.mention.digest == mention.digest else "changed"


def _is_among(path: str, written: Collection[str]) -> bool:
    return os.path.normpath(path) in written


def _describe_attached_changes(
    recorded: Sequence[Mention], written: Collection[str], attached: Sequence[Mention]
) -> Iterator[str]:
    # a file of `--attach` has no `@name`, so the `text` of its mention is empty
    recorded_digests = {m.name: m.digest for m in recorded if m.kind == "file" and not m.text}
    current_digests = {m.name: m.digest for m in attached if m.kind == "file"}
    for name in dict.fromkeys((*recorded_digests, *current_digests)):
        if name not in recorded_digests:
            yield f"`{name}` is attached now"
        elif name not in current_digests:
            yield f"`{name}` is not attached now"
        elif recorded_digests[name] != current_digests[name] and not _is_among(name, written):
            yield f"`{name}` changed"
