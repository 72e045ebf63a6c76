"""What the command line reads out of recorded runs: tables, exports, differences, verdicts. Nothing
here runs anything.

Rules
- Files come in as paths and go out as text or data; the command line prints and writes.
- Of each cell the run counts that a replay would look at first (`ranking`), unless all are asked
  for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...agent.run import Run
from ...agent.runs import Runs
from ...codecs.base import Losses
from ...codecs.convert import decode, encode
from ...errors import UsageError
from ...events.log import EventLog
from ...host import plugins
from ...models.keys import secrets
from ...record.diff import Diff, diff
from ...record.find import records
from ...record.ipynb import ENDING, load
from ...record.ranking import ranked
from ...record.record import log_of
from ...record.signers import known
from ...record.signing import signed_by, user_key
from ...record.verify import check, secrets_in
from ...view.bundle import bundle
from ...view.draw.visible import output
from ...wire.redact import redact_text
from ..execute import review
from .page import page

if TYPE_CHECKING:
    from ...events.frame import EventFrame

PAGES = {"markdown": "text/markdown", "html": "text/html", "text": "text/plain"}
WIDEST = 60  # characters of a column in a table of text
SHORT = {
    "md": "markdown",
    "htm": "html",
    "txt": "text",
    "jsonl": "canonical",
    "ndjson": "canonical",
}


def read_runs(paths: Sequence[Path], *, every: bool = False) -> Runs:
    """Return the runs of notebooks and of files that a codec reads, the one that counts of each
    cell or `every` one.

    Raises UsageError for a file that is neither.
    """
    return Runs([run for path in paths for run in _of(path, every)])


def _of(path: Path, every: bool) -> Iterator[Run]:
    if path.suffix != ENDING:
        yield Run(EventLog.of_events(decode(path)), notebook=str(path))
        return
    for cell, items in groupby(records(load(path)), key=lambda item: item.cell):
        listed = [item.record for item in items]
        for record in listed if every else ranked(listed, user_key())[:1]:
            yield Run(log_of(record), cell=cell, notebook=str(path))


def frame(runs: Runs, columns: str = "") -> EventFrame:
    """Return the runs as a frame; `columns` is the name of a preset or names with commas. Raises
    UsageError for unknown ones.
    """
    from ...events.columns import PRESETS

    wanted = [c.strip() for c in columns.split(",") if c.strip()]
    return runs.to_frame(
        None if not wanted else wanted[0] if len(wanted) == 1 and wanted[0] in PRESETS else wanted
    )


def text_table(table: EventFrame) -> str:
    """Return a frame as text, a line per row: times in seconds, nothing where nothing is, no column
    that is empty.
    """
    from ..notices import table as aligned

    told = table.portable().dropna(axis="columns", how="all").astype(object)
    rows = told.where(told.notna(), None).itertuples(index=False, name=None)
    return aligned([told.columns, *([_short(value) for value in row] for row in rows)]) + "\n"


def _short(value: Any) -> str:
    if isinstance(value, datetime):
        return "" if value != value else value.isoformat(" ", "seconds")  # noqa: PLR0124  (NaT)
    seconds = value.total_seconds() if hasattr(value, "total_seconds") else value
    if isinstance(seconds, float):
        return f"{seconds:.3f}"
    words = "" if value is None else " ".join(output(str(value)).split())
    return words if len(words) <= WIDEST else words[: WIDEST - 1] + "…"


def write_frame(table: EventFrame, form: str, path: Path | None) -> str:
    """Return a frame as `csv`, `json` or `table` text, or write it as `parquet`.

    Raises UsageError when Parquet has no file or no pyarrow.
    """
    if form == "parquet":
        if path is None:
            raise UsageError("Parquet goes into a file: -o FILE.parquet")
        try:
            table.to_parquet(path)
        except ImportError:
            raise UsageError(
                "Parquet needs pyarrow. Install it with: pip install pyarrow"
            ) from None
        return ""
    if form == "csv":
        return str(table.to_csv(index=False))
    if form == "json":
        return (
            str(table.portable().to_json(orient="records", date_format="iso", force_ascii=False))
            + "\n"
        )
    return text_table(table)


def export(runs: Sequence[Run], form: str, losses: Losses | None = None) -> str:
    """Return runs as markdown, html (a whole page), text or in a codec's format; what a codec
    cannot carry is told to `losses`.

    Raises UsageError for an unknown form, with the known ones.
    """
    name = SHORT.get(form, form)
    if name == "html":
        return page(runs)
    if name in PAGES:
        return "\n".join(bundle(run.log)[PAGES[name]] + "\n" for run in runs)
    if name.partition(":")[0] not in plugins.names("codecs"):
        raise UsageError(
            f"There is no form {form!r}. Known: {', '.join([*PAGES, *plugins.names('codecs')])}."
        )
    return "".join(
        text if text.endswith("\n") else f"{text}\n"
        for run in runs
        for text in encode(run.log, name, losses=losses)
    )


def compare(a: Sequence[Run], b: Sequence[Run]) -> list[Diff]:
    """Return the differences of runs paired by cell, else in order. Raises UsageError when there is
    nothing to pair.
    """
    if not a or not b:
        raise UsageError("There is no recorded run to compare.")
    by_cell = {run.cell: run for run in b if run.cell}
    paired = [(run, by_cell[run.cell]) for run in a if run.cell in by_cell] or list(
        zip(a, b, strict=False)
    )
    return [_diff(one, other) for one, other in paired]


def versions(runs: Sequence[Run]) -> list[Diff]:
    """Return what has changed from each cell's second newest run to its newest; `runs` come oldest
    first.

    Raises UsageError when no cell has two.
    """
    pairs = [
        (a, b)
        for n, (a, b) in enumerate(pairwise(runs), 2)
        if a.cell == b.cell and (n == len(runs) or runs[n].cell != b.cell)
    ]
    if not pairs:
        raise UsageError("No cell has two recorded runs to compare. Name a second notebook.")
    return [_diff(a, b) for a, b in pairs]


def _diff(a: Run, b: Run) -> Diff:
    return diff(a.log, b.log, cells=(a.cell, b.cell))


def verify(path: Path, *, signed: bool = False) -> tuple[list[str], list[str]]:
    """Return (problems, remarks) of a notebook's records: shape, hashes, payloads, secrets, and who
    signed them.

    With `signed`, a record that this user has not signed is a problem. Raises UsageError when the
    file is no notebook.
    """
    problems: list[str] = []
    remarks: list[str] = []
    key, hidden, signers = user_key(), secrets(), known()
    nb = load(path)
    cells = {str(cell.get("id", "")): cell for cell in nb["cells"] if isinstance(cell, dict)}
    for item in records(nb):
        where = f"{path}: cell {item.cell or '?'}, run {item.record.get('id', '?')}"
        found = [
            *check(item.record),
            *(
                f"a secret in {s}"
                for s in secrets_in(item.record, None, lambda text: _secrets(text, hidden))
            ),
        ]
        problems += [f"{where}: {problem}" for problem in found]
        who = _signer(item.record, key)
        (problems if signed and who != "signed by you" else remarks).append(f"{where}: {who}")
        remarks += [
            f"{where}: {said}"
            for said in review.remarks(nb, cells.get(item.cell, {}), item.record, signers)
        ]
    return problems, remarks


def _signer(record: Mapping[str, Any], key: bytes) -> str:
    if signed_by(record, key):
        return "signed by you"
    return "signed by somebody else, or changed" if record.get("signature") else "not signed"


def _secrets(text: str, hidden: Mapping[str, str]) -> list[str]:
    """Return what the secret filter would take out of a text, by name and never by value."""
    clean = redact_text(text, hidden)
    if clean == text:
        return []
    names = {part.partition("]")[0] for part in clean.split("[redacted ")[1:]}
    known = {part.partition("]")[0] for part in text.split("[redacted ")[1:]}
    return sorted(names - known) or ["a key"]


def parameters(texts: Sequence[str]) -> dict[str, Any]:
    """Return parameters written as NAME=VALUE (values as YAML). Raises UsageError for
    what is none.
    """
    import yaml

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise UsageError(f"A parameter is NAME=VALUE, not {text!r}.")
        try:
            found[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            found[name.strip()] = value
    return found


def inject(nb: Any, values: Mapping[str, Any]) -> None:
    """Put a cell that sets parameters behind the cell tagged `parameters`, else at the beginning,
    in place of a former one.
    """
    if not values:
        return
    cells = [
        c
        for c in nb["cells"]
        if "injected-parameters" not in (c.get("metadata") or {}).get("tags", [])
    ]
    after = next(
        (
            n + 1
            for n, c in enumerate(cells)
            if "parameters" in (c.get("metadata") or {}).get("tags", [])
        ),
        0,
    )
    source = "\n".join(f"{name} = {value!r}" for name, value in values.items())
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "parameters",
        "source": source,
        "execution_count": None,
        "outputs": [],
        "metadata": {"tags": ["injected-parameters"]},
    }
    made = type(nb)(json.loads(json.dumps(cell))) if type(nb) is not dict else cell
    nb["cells"] = [*cells[:after], made, *cells[after:]]
