"""Execute notebooks without a front end: `jupyter agent-nb run`, on nbclient.

Why a client of our own: plain nbclient tells the kernel neither which cell runs nor which notebook,
so that a record could not be found again. This one sends what JupyterLab sends, and lifts the
records when it is done.

Rules
- Each kernel gets a secret of its own, in its own environment only, and every request carries it
  (`launch`): what a notebook's metadata asks for is nobody's word.
- The executed notebook is returned, and written by the caller, also when a cell has failed. What
  has failed is a value (`Failure`).
- No widget state is stored: the static views need none. nbclient keeps that of `ipywidgets.Output`
  even so, and finds a place for it here.
- A notebook without cell ids gets them, because a record belongs to a cell.
- No times are written into cells: they would make every execution a change.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import (
    CellControlSignal,
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from nbclient.output_widget import OutputWidget

from ...host import launch
from ...record.ipynb import load, save
from ...record.masks import Rule
from ...record.notebook_file import drop_unbegun, lift, records
from ...record.outputs import summaries
from ...record.record import MIME
from ...record.signers import Signer
from ..cell.identity import HEADLESS, OURS, PROOF, RERUN, UNSHOWN
from ..cell.rerun import RULES
from ..files.library import SENT, SIGNED
from ..notices import printable
from .cell_failure import Failure, of_cell, of_kernel, of_time
from .event_relay import STREAM
from .kernels import Ahead, Started, launched_by_us, say, wanted
from .quiet import keep
from .review import countersigned

STARTS = 3  # attempts to start a kernel
IDS = 5  # the minor version of notebook format 4 that has cell ids

OnCell = Callable[[int, int, str], None]


class Outcome(msgspec.Struct):
    """The result of one notebook: as it was executed, its runs as (cell number, numbers of the
    run), what failed, how many cells began.
    """

    notebook: Any
    runs: list[tuple[int, dict[str, Any]]]
    failures: Sequence[Failure] = ()
    reached: int = 0

    @property
    def failure(self) -> str:
        """The first failure in words, "" if there is none."""
        return str(self.failures[0]) if self.failures else ""


class Captured(OutputWidget):  # type: ignore[misc]  # nbclient publishes no types
    """What an `ipywidgets.Output` captures. The kernel is not told: while a cell runs it loses
    requests that follow such a message.
    """

    def sync_state(self) -> None:
        """Send nothing."""


class Client(NotebookClient):  # type: ignore[misc]  # nbclient publishes no types for its traits
    """An nbclient that tells the kernel which cell it runs; `sent` goes along with every cell, and
    the cell's own records, with which of them `signers` have signed.

    `environment` is added to the kernel's. `failures` are those so far; after one in a cell for
    which `goes_on` the next cell runs.
    """

    def __init__(
        self,
        nb: Any,
        sent: dict[str, Any],
        on_cell: OnCell,
        *,
        environment: Mapping[str, str] = {},
        goes_on: Callable[[Mapping[str, Any]], bool] = lambda _: False,
        signers: Sequence[Signer] = (),
        **options: Any,
    ) -> None:
        super().__init__(nb, **options)
        self.widget_registry = {"@jupyter-widgets/output": {"OutputModel": Captured}}
        self._signers = signers
        self.failures: list[Failure] = []
        self.reached = 0
        self._goes_on = goes_on
        self._sent = sent
        self._environment = environment
        self._proof = ""
        self._starting: dict[str, Any] = {}
        self._asked: dict[str, Any] = {}  # the cells that were executed, by the id of the request
        self._records = records(nb)
        self._on_cell = on_cell
        self._cell: Any = None

    def reset_execution_trackers(self) -> None:
        """Forget what the last execution left."""
        super().reset_execution_trackers()
        self.widget_state: dict[str, Any] = defaultdict(dict)

    def create_kernel_manager(self) -> Any:
        """Return the kernel manager; a kernel of this Python starts with `LAUNCH`."""
        manager = super().create_kernel_manager()
        launched_by_us(manager)
        return manager

    def adopt(self, kernel: Started) -> None:
        """Run on a kernel that is there already."""
        self.km, self._proof = kernel.manager, kernel.proof
        self._starting = {"stdout": kernel.said, "stderr": kernel.said}

    async def async_start_new_kernel(self, **options: Any) -> None:
        """Start a kernel that knows our requests."""
        self._starting = options
        self._proof = launch.secret()
        environment = {
            **(options.get("env") or os.environ),
            **self._environment,
            launch.PROOF: self._proof,
        }
        await super().async_start_new_kernel(**{**options, "env": environment})

    async def async_start_new_kernel_client(self) -> Any:
        """Connect to the kernel; from then on every execution request carries the cell's id. Raises
        DeadKernelError.
        """
        client = await self._connected()
        plain = client.session.msg

        def msg(
            msg_type: str,
            content: Any = None,
            parent: Any = None,
            header: Any = None,
            metadata: Any = None,
        ) -> Any:
            if msg_type == "execute_request" and self._cell is not None:
                cell_id = self._cell.get("id")
                listed = self._records.get(cell_id, [])
                sent = {
                    **self._sent,
                    SENT: listed,
                    SIGNED: countersigned(self.nb, self._cell, listed, self._signers),
                    PROOF: self._proof,
                }
                metadata = {**(metadata or {}), "cellId": cell_id, OURS: sent}
            made = plain(msg_type, content, parent, header, metadata)
            if msg_type == "execute_request" and self._cell is not None:
                self._asked[made["header"]["msg_id"]] = self._cell
            return made

        client.session.msg = msg
        heard = client.iopub_channel.get_msg

        async def get_msg(*args: Any, **options: Any) -> Any:
            found = await heard(*args, **options)
            self._late(found)
            return found

        client.iopub_channel.get_msg = get_msg
        return client

    def _late(self, message: Mapping[str, Any]) -> None:
        """Put a record that comes after the end of its cell into that cell's outputs, as front ends
        do; nbclient drops it.
        """
        cell = self._asked.get(message["parent_header"].get("msg_id", ""))
        if cell is None or cell is self._cell or message["header"]["msg_type"] != "display_data":
            return
        if MIME in message["content"].get("data", {}):
            cell.outputs.append(nbformat.v4.output_from_msg(message))

    def place(self) -> tuple[int, Any]:
        """Return the number and the cell where the execution stands."""
        return self.reached, self.nb.cells[self.reached - 1] if self.reached else None

    async def _connected(self, attempts: int = STARTS) -> Any:
        """Connect to the kernel; start it anew if it fails, as it does when another process takes
        its ports before it binds them.
        """
        try:
            return await super().async_start_new_kernel_client()
        except RuntimeError as fault:
            if attempts == 1:
                atexit.unregister(self._cleanup_kernel)  # nbclient's handler fails without a kernel
                raise DeadKernelError(f"The kernel did not start: {fault}") from None
        self.km = self.create_kernel_manager()
        await self.async_start_new_kernel(**self._starting)
        return await self._connected(attempts - 1)

    async def async_execute_cell(self, cell: Any, cell_index: int, **options: Any) -> Any:
        """Execute one cell, announced. Raises what nbclient raises, unless the next
        cell is to run.
        """
        if cell.cell_type == "code":
            self._on_cell(cell_index, len(self.nb.cells), cell.source)
        self._cell, self.reached = cell, cell_index + 1
        try:
            return await super().async_execute_cell(cell, cell_index, **options)
        except CellExecutionError as fault:
            self.failures.append(of_cell(cell_index + 1, cell, fault.ename, fault.evalue))
            if not self._goes_on(cell):
                raise
            return cell
        finally:
            self._cell = None


def execute(
    path: Path,
    *,
    model: str = "",
    rerun: str = "",
    trust: bool = False,
    trust_folder: bool = False,
    timeout: float | None = None,
    kernel: str = "",
    on_cell: OnCell = lambda *_: None,
    prepare: Callable[[Any], None] = lambda _: None,
    stream: str = "",
    strict: bool = False,
    goes_on: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    normalize: Sequence[Rule] = (),
    zone: str = "",
    signers: Sequence[Signer] = (),
    ahead: Ahead | None = None,
) -> Outcome:
    """Execute the notebook at `path` in its folder and return what came of it; the file is not
    written.

    `model` overrides the model of every cell; `rerun` is live, replay or auto ("": as the cells
    say); `trust` lets code of records run again that this user has not signed, `trust_folder` lets
    the folder give keys and be obeyed in its policies; `timeout` is in seconds per cell (None:
    none); `on_cell` gets index, number of cells and source before each code cell; `prepare` may
    change the notebook before it runs; `stream` is a file to which the runs append their events;
    `strict` lets nothing run live, whatever the cells say, and draws no cards; `goes_on` says after
    which failed cells the next one runs; `normalize` are patterns that a strict replay does not
    compare; `zone` is the time zone of the kernel ("": that of this machine); calls of records that
    `signers` have signed may run again; `ahead` may have started the kernel. Raises UsageError when
    the file is no notebook or its kernel is not installed, MissingExtra when a signature cannot be
    checked here.
    """
    nb, began = _read(path), time.time()
    prepare(nb)
    where = path.resolve()
    need = wanted(
        path, nb, kernel, trust_folder=trust_folder, strict=strict, zone=zone, rerun=rerun
    )
    say(path, nb, kernel)
    client = Client(
        nb,
        {
            HEADLESS: True,
            "notebook": str(where),
            "model": model,
            RERUN: rerun,
            "trust": trust,
            STREAM: stream,
            **({RULES: msgspec.to_builtins(normalize)} if normalize else {}),
            **({UNSHOWN: True} if strict else {}),
        },
        on_cell,
        environment=need.environment,
        goes_on=goes_on,
        signers=signers,
        kernel_name=need.kernel,
        timeout=timeout,
        store_widget_state=False,
        coalesce_streams=True,
        record_timing=False,
        shutdown_kernel="immediate",
        resources={"metadata": {"path": need.folder}},
    )
    started = ahead.take(path, need) if ahead is not None else None
    if started is not None:
        client.adopt(started)
    # what the kernel process says is news only when it dies
    with tempfile.TemporaryFile() if started is None else started.said as said:
        try:
            asyncio.run(client.async_execute(stdout=said, stderr=said))
        except CellExecutionError:
            pass  # it is among the failures
        except DeadKernelError:
            client.failures.append(of_kernel(*client.place(), _tail(said)))
        except CellTimeoutError:
            client.failures.append(of_time(*client.place(), timeout or 0))
        except CellControlSignal as fault:
            client.failures.append(Failure(message=str(fault).strip()))
    numbers = {cell.get("id"): number for number, cell in enumerate(nb.cells, 1)}
    runs = [(numbers[cell], run) for cell, run in summaries(nb)]
    if not strict:
        lift(nb)
    if rerun == "live":
        drop_unbegun(nb, {str(cell.get("id")) for cell in nb.cells[: client.reached]}, began)
    return Outcome(nb, runs, client.failures, client.reached)


def _tail(file: IO[bytes], longest: int = 2000) -> str:
    file.seek(0)
    return printable(file.read().decode(errors="replace")[-longest:])


def write(nb: Any, path: Path, *, over: bool = False) -> None:
    """Write an executed notebook; `over` the one that was executed: what was only replayed stays
    there as it is. Raises OSError.
    """
    if over:
        before = _read(path)
        keep(nb, before)
        if nb != before:
            save(json.loads(nbformat.writes(nb)), path.resolve())
        return
    nbformat.write(nb, str(path))


def _read(path: Path) -> Any:
    load(path)  # refuses what is no notebook, in words
    nb = nbformat.read(str(path), as_version=4)
    nb.nbformat_minor = max(nb.get("nbformat_minor", 0), IDS)
    for number, cell in enumerate(nb.cells, 1):
        cell.setdefault("id", f"cell-{number}")
    return nb
