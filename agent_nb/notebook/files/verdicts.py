"""What `verify` says of a notebook's records: faults, signers, and which calls can run again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...events import encode_event
from ...models import collect_secrets
from ...record import (
    NotebookRuns,
    Record,
    Signer,
    UserKey,
    cell_id,
    check_record,
    events_of,
    load_notebook,
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
    key, secrets, signers = UserKey.read(), collect_secrets(), Signer.load_all()
    nb = with_ids(load_notebook(path))
    cells = {cell_id(cell): cell for cell in nb["cells"] if isinstance(cell, dict)}
    runs, quiet = NotebookRuns(nb), review.find_quiet_tools(nb)
    if runs.newer_format_notice:
        problems.append(f"{path}: {runs.newer_format_notice}")
    for cell, record in runs.list_all():
        where = f"{path}: cell {cell or '?'}, run {record.get('id', '?')}"
        faults = [*check_record(record), *list_leaks(record, secrets)]
        problems += [f"{where}: {fault}" for fault in faults]
        if key.signed(record):
            remarks.append(f"{where}: signed by you")
        else:
            foreign = "signed by someone else, or changed"
            signer = foreign if record.get("signature") else "not signed"
            (problems if signed else remarks).append(f"{where}: {signer}")
        signatures = review.signature_remarks(nb, cells.get(cell, {}), record, signers)
        calls = review.call_lines(record, quiet)
        remarks += [f"{where}: {remark}" for remark in (*signatures, *calls)]
    return [escape_hidden(p, "line") for p in problems], [escape_hidden(r, "line") for r in remarks]


def list_leaks(record: Record, secrets: Mapping[str, str]) -> list[str]:
    """Return the secrets in the events of a record, as `a secret in event 7 (result): name`."""
    leaks = []
    for event in events_of(record):
        text = encode_event(event).decode("utf-8", "replace")
        where = f"a secret in event {event.seq} ({event.type})"
        leaks += [f"{where}: {name}" for name in _redacted_names(text, secrets)]
    return leaks


def _redacted_names(text: str, secrets: Mapping[str, str]) -> list[str]:
    """Return the names, never the values, of the secrets that the filter redacts in a text."""
    clean = redact_text(text, secrets)
    if clean == text:
        return []
    names = {part.partition("]")[0] for part in clean.split("[redacted ")[1:]}
    already_redacted = {part.partition("]")[0] for part in text.split("[redacted ")[1:]}
    return sorted(names - already_redacted) or ["a key"]
