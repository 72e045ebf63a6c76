"""`jupyter agent-nb test`: replays a notebook as its own test, without model or key.

Why strict: a test that called a model, or skipped a cell without a record, would prove nothing. The
kernel is strict from its start (`Launch.STRICT`): nothing in the notebook can make it call a model.

Rules
- After a failed agent cell the test goes on; after one of Python code only with `keep_going`.
- The user chooses the signers whose records count as the user's own, never the repository.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..agent import Rule, is_zone
from ..errors import MissingExtra, UsageError
from ..events import RunStart
from ..host import Launch, find_library
from ..record import (
    Notebook,
    NotebookRuns,
    Record,
    RunNumbers,
    Signer,
    UserKey,
    agent_cell,
    cell_id,
    events_of,
    load_notebook,
    read_start_time,
    source_of,
    with_ids,
)
from ..wire import as_list
from . import project
from .cell_failure import Failure
from .cell_problems import CheckedRecords, check_records, find_problems, find_unseen_displays
from .early_kernels import EarlyKernels
from .execution_options import ExecutionOptions
from .kernels import KernelChoice, choose_kernel
from .report import Problem, Report

if TYPE_CHECKING:
    from .cell_client import OnCell

_NO_MODULE = re.compile(r"No module named '(\w+)")


class CheckOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a notebook is tested."""

    trust: bool = False  # code of records that this user has not signed may run again
    trust_folder: bool = False  # the policies of the folder may allow calls
    timeout: float | None = None  # seconds per cell; None is unlimited
    kernel: str = ""  # a kernel other than the notebook's
    keep_going: bool = False  # go on after a failed cell of Python code
    strict_tools: bool = False  # fail if a tool changed whose result came from the record
    # calls of records that they have signed may run again; None: the user's signers
    signers: Sequence[Signer] | None = None

    def choose_kernel(self, path: Path) -> KernelChoice:
        """Return the kernel that a notebook under test needs. Raises UsageError."""
        nb = load_notebook(path)
        return choose_kernel(path, nb, _execution_options(self, NotebookRuns(nb).by_cell()))


DEFAULTS = CheckOptions()


def check_notebook(
    path: Path,
    options: CheckOptions = DEFAULTS,
    on_cell: OnCell = lambda *_: None,
    early_kernels: EarlyKernels | None = None,
) -> Report:
    """Replay the notebook at `path` strictly and report.

    `early_kernels` may have started its kernel. Raises UsageError if the file is not a notebook, a
    newer version recorded it, its kernel is not installed, or its project's settings are faulty.
    """
    from .client import execute_notebook  # slow to import; meanwhile the kernel starts

    nb, began = with_ids(load_notebook(path)), time.monotonic()
    runs = NotebookRuns(nb)
    if notice := runs.newer_format_notice:
        raise UsageError(notice)
    recorded = runs.by_cell()
    signers = Signer.load_all() if options.signers is None else options.signers
    with ThreadPoolExecutor(1) as checker:  # while the kernel starts and works
        checked = checker.submit(_check_all_records, nb, recorded, signers)
        outcome = execute_notebook(
            path,
            msgspec.structs.replace(
                _execution_options(options, recorded),
                normalize=project.read_rules(path),
                allowed_hosts=project.read_hosts(path),
                signers=signers,
            ),
            on_cell=on_cell,
            goes_on=lambda cell: options.keep_going or agent_cell(source_of(cell)) is not None,
            early_kernels=early_kernels,
        )
    missing_extra = _find_missing_extra(outcome.failures)
    checks = checked.result()
    problems = list(
        find_problems(nb, checks, outcome.runs, outcome, signers, missing_extra=missing_extra)
    )
    failing = [p for p in problems if not p.warning or options.strict_tools]
    if failing or not missing_extra:
        # `find_problems` reports failures of cells only, and none if an extra is missing
        others = [f for f in outcome.failures if missing_extra or not f.cell]
        failing += [Problem(text=str(f), cell=f.cell, kind=f.kind, stale=False) for f in others]
    masked, patterns = _list_masked(outcome.runs)
    unseen = [str(name) for _, run in outcome.runs for name in as_list(run.get("unseen"))]
    unseen += find_unseen_displays(nb, outcome)
    return Report(
        notebook=str(path),
        problems=tuple(failing),
        warnings=tuple(p for p in problems if p not in failing),
        runs=sum(bool(run.get("replayed")) for _, run in outcome.runs),
        scripted=sum(bool(run.get("scripted")) for _, run in outcome.runs),
        skipped="" if failing else missing_extra,
        masked=masked,
        patterns=patterns,
        unseen=tuple(dict.fromkeys(unseen)),
        seconds=time.monotonic() - began,
    )


def _check_all_records(
    nb: Notebook, recorded: Mapping[str, Sequence[Record]], signers: Sequence[Signer]
) -> list[CheckedRecords]:
    """Return the checked records of each cell. `recorded`: id of a cell -> its records."""
    key = UserKey.read()
    return [
        check_records(nb, cell, recorded.get(cell_id(cell), []), signers, key)
        for cell in nb["cells"]
    ]


def _execution_options(
    options: CheckOptions, recorded: Mapping[str, Sequence[Record]]
) -> ExecutionOptions:
    """Return the options with which a test executes a notebook with these records."""
    return ExecutionOptions(
        rerun=Launch.REPLAY,
        strict=True,
        trust=options.trust,
        trust_folder=options.trust_folder,
        timeout=options.timeout,
        kernel=options.kernel,
        zone=_find_time_zone(recorded),
    )


def _list_masked(
    shown: Sequence[tuple[int, RunNumbers]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the masked differences: those of known kinds, and those of the project's patterns."""
    of_kinds: list[str] = []
    of_patterns: list[str] = []
    for number, run in shown:
        for difference in as_list(run.get("masked")):
            match difference:
                case [str(rule), old, new]:
                    lines = of_patterns if rule.startswith(Rule.NAME_PREFIX) else of_kinds
                    lines.append(f"cell {number}, {rule}: {old!r} = {new!r}")
    return tuple(of_kinds), tuple(of_patterns)


def _find_time_zone(recorded: Mapping[str, Sequence[Record]]) -> str:
    """Return the time zone of a notebook's newest record, "" if it is unknown here."""
    records = [record for listed in recorded.values() for record in listed]
    newest = max(records, key=read_start_time, default={})
    # only the first event is decoded, because a record may hold many
    first_event = list(newest.get("events") or [])[:1]
    start = next(iter(events_of({**newest, "events": first_event})), None)
    origin = start.settings.get("place") if isinstance(start, RunStart) else None
    zone = origin.get("zone") if isinstance(origin, Mapping) else None
    return zone if isinstance(zone, str) and is_zone(zone) else ""


def _find_missing_extra(failures: Sequence[Failure]) -> str:
    """Return which missing extra ended the notebook, "" if none did or it is installed here."""
    from ..notebook import EXTRAS

    last = failures[-1] if failures else Failure()
    command = last.message.rpartition("Install it with: ")[2].strip()
    module = _NO_MODULE.search(last.message) if last.error == ModuleNotFoundError.__name__ else None
    for name, extra in EXTRAS.items():
        named_by_error = (
            last.error == MissingExtra.__name__ and command and command in extra.install
        )
        imported = module is not None and module[1] in extra.modules
        if (named_by_error or imported) and None in map(find_library, extra.modules):
            return f"needs the extra {name} ({command if named_by_error else extra.install})"
    return ""
