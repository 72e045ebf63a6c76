"""An nbclient that announces each cell to its kernel, as JupyterLab does.

Why: plain nbclient sends neither the id of the cell nor the path of the notebook, without which a
kernel cannot find the record of the cell. Each request carries the secret of its kernel
(`Launch.PROOF`), so that a notebook's metadata cannot imitate the runner.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbclient.output_widget import OutputWidget
from traitlets import Float

from ..errors import UsageError
from ..host import Launch
from ..notebook import RunnerOptions, countersigned_records, write_options
from ..record import METADATA_KEY, RECORD_MIME, NotebookRuns, RunNumbers, Signer, cell_id
from ..wire import as_dict, as_list, nearest_json
from .cell_failure import Failure, describe_failed_cell
from .early_kernels import StartedKernel
from .kernels import use_own_launcher

STARTS = 3  # attempts to start a kernel
# not by `%load_ext`: a notebook that loads the extension itself would be shown a notice
_LOAD = "__import__('agent_nb').load_ipython_extension(get_ipython())"
# also guards a notebook that never loads the extension; a kernel without this package has no guard
_GUARD = "__import__('agent_nb')._guard_hosts(get_ipython())"
OnCell = Callable[[int, int, str], None]  # receives index, number of cells, source


class Captured(OutputWidget):  # type: ignore[misc]  # nbclient publishes no types
    """An `ipywidgets.Output` that does not report to the kernel.

    While a cell runs, the kernel loses requests that follow such a message.
    """

    def sync_state(self) -> None:
        """Send nothing."""


class Client(NotebookClient):  # type: ignore[misc]  # nbclient publishes no types for its traits
    """An nbclient whose requests carry the cell's id, its records and the options of the runner.

    - `runner_options` go with each cell; `environment` is added to the kernel's.
    - `on_cell` is called before each code cell.
    - `goes_on` returns whether to run the next cell after the failed cell that it gets.
    - `signers`: each request names the records that they have signed.

    After the execution, `failures`, `reached` (the number of the last cell that began) and `ran`
    (the ids of the cells up to it that no tag skips) are its outcome.
    """

    timeout = Float(None, allow_none=True)  # nbclient takes whole seconds only

    def __init__(
        self,
        nb: Any,
        runner_options: RunnerOptions,
        on_cell: OnCell,
        *,
        environment: Mapping[str, str] = {},
        goes_on: Callable[[Mapping[str, Any]], bool] = lambda _: False,
        signers: Sequence[Signer] = (),
        **options: Any,
    ) -> None:
        super().__init__(nb, on_cell_executed=self._add_numbers, **options)
        self.widget_registry = {"@jupyter-widgets/output": {"OutputModel": Captured}}
        self._signers = signers
        self.failures: list[Failure] = []
        self.reached = 0
        self.ran = set[str]()
        self._goes_on = goes_on
        self._options = runner_options
        self._environment = environment
        self._proof = ""  # the secret of the kernel
        self._start_options: dict[str, Any] = {}  # of the last start, for another attempt
        self._cells_by_request: dict[str, Any] = {}  # executed cells by the id of their request
        self._records = NotebookRuns(nb).by_cell()
        self._on_cell = on_cell
        self._cell: Any = None  # the cell that runs

    def reset_execution_trackers(self) -> None:
        """Reset the state of the last execution; accept the state of any output widget."""
        super().reset_execution_trackers()
        # nbclient's output widgets write into entries that are missing where no state is stored
        self.widget_state: dict[str, Any] = defaultdict(dict)

    def create_kernel_manager(self) -> Any:
        """Return the kernel manager; kernels of this Python start with `kernels.LAUNCH`."""
        manager = super().create_kernel_manager()
        use_own_launcher(manager)
        return manager

    def adopt(self, kernel: StartedKernel) -> None:
        """Run on a kernel that was started ahead."""
        self.km, self._proof = kernel.manager, kernel.proof
        self._start_options = {"stdout": kernel.output, "stderr": kernel.output}

    async def async_start_new_kernel(self, **options: Any) -> None:
        """Start a kernel that recognises our requests by their secret."""
        self._start_options = options
        self._proof = Launch.make_secret()
        environment = {
            **(options.get("env") or os.environ),
            **self._environment,
            Launch.PROOF: self._proof,
        }
        await super().async_start_new_kernel(**{**options, "env": environment})

    async def async_start_new_kernel_client(self) -> Any:
        """Connect to the kernel and extend its execution requests.

        Raises DeadKernelError if the kernel does not start, UsageError if the tape does not.
        """
        client = await self._connect()
        self._extend_requests(client.session)
        self._watch_outputs(client.iopub_channel)
        if self._environment.get(Launch.TAPE):
            await self._load_extension(client)
        elif self._environment.get(Launch.STRICT):
            await self._execute_silently(client, _GUARD)
        return client

    def _extend_requests(self, session: Any) -> None:
        """Let the requests that execute cells say which cell it is, with its records."""
        make_message = session.msg

        def msg(*args: Any, **options: Any) -> Any:
            message = make_message(*args, **options)
            if message["msg_type"] == "execute_request" and self._cell is not None:
                message["metadata"].update(self._describe_cell(self._cell))
                self._cells_by_request[message["header"]["msg_id"]] = self._cell
            return message

        session.msg = msg

    def _describe_cell(self, cell: Any) -> dict[str, Any]:
        """Return the metadata of the request that executes a cell."""
        name = cell_id(cell)
        # JSON for the kernel cannot hold the half characters that a record may contain
        records = nearest_json(self._records.get(name, []))[0] or []
        signed = countersigned_records(self.nb, cell, records, self._signers)
        sent: RunnerOptions = {**self._options, "runs": records, "signed": signed}
        return {"cellId": name, **write_options(sent, self._proof)}

    def _watch_outputs(self, channel: Any) -> None:
        """Take the records that arrive after their cells ended."""
        receive = channel.get_msg

        async def get_msg(*args: Any, **options: Any) -> Any:
            message = await receive(*args, **options)
            self._add_late_record(message)
            return message

        channel.get_msg = get_msg

    async def _load_extension(self, client: Any) -> None:
        """Load the extension in a kernel before its first cell. Raises UsageError."""
        if why := await self._execute_silently(client, _LOAD):
            raise UsageError(f"The tape cannot start in this kernel ({why}).")

    async def _execute_silently(self, client: Any, code: str) -> str:
        """Execute our own code before the first cell; return why that failed, or ""."""
        request = client.execute(code, silent=True, store_history=False)
        content: dict[str, Any] = {"status": "error", "ename": "no answer", "evalue": ""}
        with suppress(TimeoutError):  # the kernel may have died meanwhile
            async with asyncio.timeout(self.startup_timeout):
                while True:
                    reply = await client.get_shell_msg()
                    if reply["parent_header"].get("msg_id") == request:
                        content = reply["content"]
                        break
        if content["status"] != "error":
            return ""
        return f"{content['ename']}: {content['evalue']}".rstrip(": ")

    def _add_late_record(self, message: Mapping[str, Any]) -> None:
        """Add a record that arrives after its cell ended to the outputs, as front ends do.

        nbclient drops such messages.
        """
        cell = self._cells_by_request.get(message["parent_header"].get("msg_id", ""))
        if cell is None or cell is self._cell or message["header"]["msg_type"] != "display_data":
            return
        numbers = as_dict(message["content"].get("metadata", {}).get(METADATA_KEY))
        if RECORD_MIME in message["content"].get("data", {}) or RunNumbers.PART in numbers:
            cell.outputs.append(nbformat.v4.output_from_msg(message))

    def _add_numbers(self, cell: Any, execute_reply: Mapping[str, Any], **_: Any) -> None:
        """Add the numbers of runs that came with a reply to the outputs, as if displayed."""
        for payload in map(as_dict, as_list(execute_reply["content"].get("payload"))):
            if payload.get("source") == METADATA_KEY:
                numbers = as_dict(payload.get("numbers"))
                shown = {"data": {"text/plain": ""}, "metadata": {METADATA_KEY: numbers}}
                cell.outputs.append(nbformat.from_dict({"output_type": "display_data", **shown}))

    def output(
        self, outs: list[Any], msg: dict[str, Any], display_id: str | None, cell_index: int
    ) -> Any:
        """Add an output. An empty one, which carries the numbers of a run, needs no validation."""
        content = msg["content"]
        is_empty = msg["msg_type"] == "display_data" and content.get("data") == {"text/plain": ""}
        # nbclient's own code handles what belongs to a widget, a display or a cleared output
        is_special = self.output_hook_stack[msg["parent_header"].get("msg_id")] or display_id
        if (
            not is_empty
            or is_special
            or self.clear_before_next_output
            or not isinstance(content.get("metadata"), dict)
        ):
            return super().output(outs, msg, display_id, cell_index)
        content_fields = {name: content[name] for name in ("data", "metadata")}
        outs.append(nbformat.from_dict({"output_type": "display_data", **content_fields}))
        return outs[-1]

    def current_cell(self) -> tuple[int, Any]:
        """Return the number and the JSON of the cell that runs, or ran last."""
        return self.reached, self.nb.cells[self.reached - 1] if self.reached else None

    async def _connect(self, attempts: int = STARTS) -> Any:
        """Connect to the kernel; restart it if another process took its ports before it did."""
        try:
            return await super().async_start_new_kernel_client()
        except RuntimeError as fault:
            if attempts == 1:
                atexit.unregister(self._cleanup_kernel)  # nbclient's handler fails without a kernel
                raise DeadKernelError(f"The kernel did not start: {fault}") from None
        self.km = self.create_kernel_manager()
        await self.async_start_new_kernel(**self._start_options)
        return await self._connect(attempts - 1)

    async def async_execute_cell(self, cell: Any, cell_index: int, **options: Any) -> Any:
        """Execute one cell. Raises what nbclient raises, unless `goes_on` accepts the failure."""
        if cell.cell_type == "code":
            self._on_cell(cell_index, len(self.nb.cells), cell.source)
        self._cell, self.reached = cell, cell_index + 1
        if self.skip_cells_with_tag not in as_list(cell.metadata.get("tags")):
            self.ran.add(cell_id(cell))
        try:
            return await super().async_execute_cell(cell, cell_index, **options)
        except CellExecutionError as fault:
            self.failures.append(
                describe_failed_cell(cell_index + 1, cell, fault.ename, fault.evalue)
            )
            if not self._goes_on(cell):
                raise
            return cell
        finally:
            self._cell = None
