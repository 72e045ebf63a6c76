"""Executes a notebook without a front end: `jupyter agent-nb run`, built on nbclient.

Why not nbclient alone: it knows neither records nor agent cells, and raises at the first failure.
Here a failure is a value (`Failure`), and the notebook is returned even after one. A notebook
without cell ids gets them, because a record belongs to a cell. Times of execution are not stored:
they would make every execution a change.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from os import SEEK_END
from pathlib import Path
from typing import IO, Any

import msgspec
import nbformat
from nbclient.exceptions import (
    CellControlSignal,
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)

from ..errors import UsageError
from ..notebook import RunnerOptions, make_printable
from ..record import (
    METADATA_KEY,
    Journal,
    NotebookRuns,
    RunNumbers,
    cell_id,
    load_notebook,
    save_notebook,
    with_ids,
)
from ..wire import as_dict
from .cell_client import Client, OnCell
from .cell_failure import Failure, describe_dead_kernel, describe_failed_cell, describe_timeout
from .early_kernels import EarlyKernels
from .execution_options import EXECUTION_DEFAULTS, ExecutionOptions
from .kernels import choose_kernel, warn_other_kernel
from .quiet import restore_unchanged
from .stopping import EXECUTIONS

LONGEST_END = 2000  # characters of what a kernel wrote before it died
IDS_SINCE = 5  # cells have ids since minor version 5 of notebook format 4


class Outcome(msgspec.Struct):
    """The result of executing one notebook: the executed notebook, its runs, what failed."""

    notebook: Any  # of nbformat
    runs: list[tuple[int, RunNumbers]]  # (number of the cell from 1, numbers of the run)
    failures: Sequence[Failure] = ()
    reached: int = 0  # the number of the last cell that began; 0: none

    @property
    def failure(self) -> str:
        """The first failure as text, "" if there is none."""
        return str(self.failures[0]) if self.failures else ""

    def write(self, path: Path, *, over: bool = False) -> None:
        """Write the notebook to `path`. Raises OSError.

        `over`: `path` is the notebook that was executed. Its cells stay as they are where nothing
        is new, and the file is not written if only the place of its records would change.
        """
        if over:
            source = _read(path)
            for run in restore_unchanged(self.notebook, source):
                Journal.remove(run)  # else the journal would offer to restore the dropped run
            NotebookRuns(source).lift()
            if self.notebook == source:
                return
        save_notebook(json.loads(nbformat.writes(self.notebook)), path)


def execute_notebook(
    path: Path,
    options: ExecutionOptions = EXECUTION_DEFAULTS,
    *,
    on_cell: OnCell = lambda *_: None,
    prepare: Callable[[Any], None] = lambda _: None,
    goes_on: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    early_kernels: EarlyKernels | None = None,
) -> Outcome:
    """Execute the notebook at `path` in its folder and return the outcome; write nothing.

    `on_cell` is called with index, number of cells and source before each code cell. `prepare` may
    change the notebook before it runs. `goes_on` returns whether to run the next cell after the
    failed cell that it gets. `early_kernels` may have started the kernel already.

    Raises UsageError if the file is not a notebook, its kernel is not installed or the tape cannot
    start in it, and MissingExtra if a signature cannot be checked here.
    """
    nb, began = _read(path), time.time()
    prepare(nb)
    choice = choose_kernel(path, nb, options)
    warn_other_kernel(path, choice)
    client = Client(
        nb,
        _make_runner_options(path, options),
        on_cell,
        environment=choice.environment,
        goes_on=goes_on,
        signers=options.signers,
        kernel_name=choice.kernel,
        timeout=options.timeout,
        store_widget_state=False,
        coalesce_streams=True,
        record_timing=False,
        shutdown_kernel="immediate",
        resources={"metadata": {"path": choice.folder}},
    )
    started = early_kernels.take(path, choice) if early_kernels is not None else None
    if started is not None:
        client.adopt(started)
    # the output of the kernel process matters only when it dies
    with tempfile.TemporaryFile() if started is None else started.output as output:
        _run(client, output)
    numbers = {cell_id(cell): number for number, cell in enumerate(nb.cells, 1)}
    # the outputs of cells that did not run come from an earlier execution
    runs = [(numbers[cell], run) for cell, run in RunNumbers.list_all(nb) if cell in client.ran]
    # for the file: records move from the outputs into the metadata (a test writes no file)
    if not options.strict:
        NotebookRuns(nb).remove_widgets()
        NotebookRuns(nb).lift()
    # cells that ran, and whose Python code began no run now, lose the runs of earlier executions
    if options.rerun == "live":
        NotebookRuns(nb).remove_stale_runs(client.ran, began)
    return Outcome(nb, runs, client.failures, client.reached)


def _make_runner_options(path: Path, options: ExecutionOptions) -> RunnerOptions:
    """Return the options that the kernel gets with each cell of the notebook at `path`."""
    return RunnerOptions(
        headless=True,
        notebook=str(path.resolve()),
        model=options.model,
        rerun=options.rerun,
        trust=options.trust,
        stream=options.stream,
        normalize=msgspec.to_builtins(options.normalize),
        allowed_hosts=options.allowed_hosts,
        unshown=options.strict,
        replies=options.strict,
    )


def _run(client: Client, output: IO[bytes]) -> None:
    """Execute the notebook of a client; what ends it early becomes one of the client's failures.

    `output`: the file to which the kernel process writes.
    """
    try:
        asyncio.run(_execute(client, output))
    except CellExecutionError:
        pass  # the client has added it to its failures
    except DeadKernelError:
        client.failures.append(describe_dead_kernel(*client.current_cell(), read_end(output)))
    except CellTimeoutError:
        client.failures.append(describe_timeout(*client.current_cell(), client.timeout or 0))
    except UnicodeEncodeError as fault:  # half a character in a cell, which cannot be sent
        error = (type(fault).__name__, str(fault))
        client.failures.append(describe_failed_cell(*client.current_cell(), *error))
    except CellControlSignal as fault:
        client.failures.append(Failure(message=str(fault).strip()))


def read_end(output: IO[bytes]) -> str:
    """Return the last characters of a file, printable; it may be larger than the memory."""
    output.seek(max(output.seek(0, SEEK_END) - 4 * LONGEST_END, 0))  # a character has 4 bytes
    return make_printable(output.read().decode(errors="replace")[-LONGEST_END:])


async def _execute(client: Client, stderr: IO[bytes]) -> None:
    with EXECUTIONS.add_task():
        await client.async_execute(stdout=stderr, stderr=stderr)


def _read(path: Path) -> Any:
    """Return the notebook of a file, with an id for each cell. Raises UsageError."""
    loaded = load_notebook(path)  # raises UsageError with the reason, as nbformat does not
    complete = with_ids(loaded)  # else nbformat would make new random ids at each reading
    read = dict(complete)
    if complete is not loaded:
        read["nbformat_minor"] = IDS_SINCE
    # the records are most of a file, and nbformat takes long to copy them
    metadata = as_dict(loaded.get("metadata"))
    if metadata:
        read["metadata"] = {n: value for n, value in metadata.items() if n != METADATA_KEY}
    try:
        nb = nbformat.reads(json.dumps(read), as_version=4)
    except Exception as fault:  # nbformat has no class for all that it raises
        reason = f"{type(fault).__name__}: {fault}"
        raise UsageError(f"{path} cannot be read as a notebook: {reason}") from fault
    if not all(isinstance(cell.get("source"), str) for cell in nb.cells):
        raise UsageError(f"{path} cannot be read as a notebook: the source of a cell is not text.")
    if METADATA_KEY in metadata:
        # past nbformat's own `__setitem__`, which copies
        dict.__setitem__(nb.metadata, METADATA_KEY, metadata[METADATA_KEY])
    nb.nbformat_minor = max(nb.get("nbformat_minor", 0), IDS_SINCE)
    return nb
