"""The verdict of the command `verify` on a notebook's records.

It says what is wrong with them, who signed them, and which calls can run again.

Why: reviewers and CI need this before a notebook runs. No value of a secret is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ...events import encode_event
from ...models import collect_secrets
from ...record import (
    NotebookRuns,
    Record,
    Signer,
    cell_id,
    check_record,
    events_of,
    load_notebook,
    signed_by,
    user_key,
    with_ids,
)
from ...wire import escape_hidden, redact_text
from . import review


def verify(path: Path, *, signed: bool = False) -> tuple[list[str], list[str]]:
    """Return the problems and the remarks on the records of a notebook, a line each.

    Problems concern version, shape, hashes, payloads and secrets; remarks concern signers and
    calls. `signed`: a record that this user has not signed is a problem. Raises UsageError if the
    notebook or the list of signers cannot be read, MissingExtra if signatures cannot be checked.
    """
    problems: list[str] = []
    remarks: list[str] = []
    key, secrets, signers = user_key(), collect_secrets(), Signer.load_all()
    nb = with_ids(load_notebook(path))
    cells = {cell_id(cell): cell for cell in nb["cells"] if isinstance(cell, dict)}
    runs, quiet = NotebookRuns(nb), review.quiet_tools_of(nb)
    problems += [f"{path}: {notice}"] if (notice := runs.newer_format_notice) else []
    for item in runs.list_all():
        where = f"{path}: cell {item.cell or '?'}, run {item.record.get('id', '?')}"
        leaks = find_secrets(item.record, lambda text: _redacted_names(text, secrets))
        faults = [*check_record(item.record), *(f"a secret in {leak}" for leak in leaks)]
        problems += [f"{where}: {problem}" for problem in faults]
        who = _describe_signer(item.record, key)
        (problems if signed and who != "signed by you" else remarks).append(f"{where}: {who}")
        cell = cells.get(item.cell, {})
        signatures = review.signature_remarks(nb, cell, item.record, signers)
        calls = review.call_lines(item.record, quiet)
        remarks += [f"{where}: {remark}" for remark in (*signatures, *calls)]
    return [escape_hidden(p, "line") for p in problems], [escape_hidden(r, "line") for r in remarks]


def find_secrets(record: Record, find: Callable[[str], list[str]]) -> list[str]:
    """Return the secrets in the events of a record, as `event 7 (result): name`.

    `find` returns the names of the secrets in a text; their values are never shown.
    """
    leaks = []
    for event in events_of(record):
        text = encode_event(event).decode("utf-8", "replace")
        leaks += [f"event {event.seq} ({event.type}): {name}" for name in find(text)]
    return leaks


def _describe_signer(record: Record, key: bytes) -> str:
    if signed_by(record, key):
        return "signed by you"
    return "signed by someone else, or changed" if record.get("signature") else "not signed"


def _redacted_names(text: str, secrets: Mapping[str, str]) -> list[str]:
    """Return the names, never the values, of the secrets that the filter redacts in a text."""
    clean = redact_text(text, secrets)
    if clean == text:
        return []
    names = {part.partition("]")[0] for part in clean.split("[redacted ")[1:]}
    already_redacted = {part.partition("]")[0] for part in text.split("[redacted ")[1:]}
    return sorted(names - already_redacted) or ["a key"]
