"""`%%agent` and `%agent` as IPython magics, and the loading and unloading of the extension.

Why thin: `%load_ext` must not slow a notebook that may never run an agent. In a kernel it starts a
thread that makes the slow imports; a cell that runs earlier, or in a terminal, makes them itself.

Rule: `%%agent` returns a coroutine, which the input transformer makes the cell await. Called by
code outside an event loop, it runs to its end.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from traitlets import Bool, Enum, Float, Integer, List, TraitError, Unicode, observe, validate

from ..agent import Context
from ..host import read_launch
from . import option_table, options, transform
from .cell import capture, executions, kernel_interrupts, publish, ran_cells
from .completion import registration as completion

if TYPE_CHECKING:
    from .cell.run import CellRun
    from .follow.from_source import ForeignRun
    from .session import Session


@magics_class
class AgentMagics(Magics):  # type: ignore[misc]  # IPython is not typed
    """The magics of one shell. Its traits are the defaults of the options: `%config
    AgentMagics.model = "openai/gpt-5-mini"`.
    """

    model = Unicode(
        "", help="The model as provider/name; empty: AGENT_NB_MODEL, then what is there."
    )
    tools = List(Unicode(), help="Tools by name; empty: python and add_cell; ['none']: no tools.")
    dialect = Unicode("", help="How the model writes its turns; empty: as its provider suggests.")
    system = Unicode("", help="Instructions for the model.")
    thought_tags = List(
        Unicode(), help="Names of tags that hold thoughts wherever they stand outside code."
    )
    approve = Unicode("", help="Tools with effects: ask, auto, deny, or a policy file; empty: ask.")
    view = Enum(option_table.VIEWS, "auto", help="How runs are shown.")
    thoughts = Enum(option_table.THOUGHTS, "collapse", help="How thoughts are shown.")
    rerun = Enum(
        ("", *option_table.RERUNS), "", help="Recorded cells: live, replay, or auto; empty: auto."
    )
    context = Enum(
        Context.MODES,
        "auto",
        help="What models are given about the notebook: auto, vars, cells, none.",
    )
    no_record = Bool(False, help="Keep runs out of the notebook file.")
    max_turns = Integer(None, allow_none=True, help="Limit: model turns.")
    max_calls = Integer(None, allow_none=True, help="Limit: tool calls.")
    max_failures = Integer(None, allow_none=True, help="Limit: tool failures in a row.")
    max_tokens = Integer(None, allow_none=True, help="Limit: tokens of a run.")
    cost = Float(None, allow_none=True, help="Limit: US dollars of a run.")
    time = Float(None, allow_none=True, help="Limit: seconds of a run.")
    temperature = Float(None, allow_none=True, help="Sampling temperature.")
    seed = Integer(None, allow_none=True, help="Sampling seed.")
    reasoning = Unicode("", help=f"Reasoning effort: {option_table.EFFORT_HELP}.")
    tape = Bool(False, help="Record the model calls of other libraries, as %agent tape does.")

    def __init__(self, shell: Any) -> None:
        # the configuration is applied by super().__init__: `_known_model` accepts all of it
        self._configured = False
        super().__init__(shell)
        self._configured = True
        self._session: Session | None = None

    @validate("model")  # type: ignore[untyped-decorator]
    def _known_model(self, proposal: dict[str, Any]) -> str:
        """Return the name if it may be the default: provider/name or a variable. Raises TraitError.

        The name in a configuration file is checked by the first cell that uses it: the extension
        must load even if the name is wrong.
        """
        name = str(proposal["value"])
        if name.strip() and self._configured:
            from ..errors import UsageError
            from ..models import check_model_name, split_names

            try:
                for part in split_names(name):
                    if not part.isidentifier():
                        check_model_name(part)
            except UsageError as fault:
                raise TraitError(f"{fault} AgentMagics.model is left as it was.") from None
        return name

    @observe("tape")  # type: ignore[untyped-decorator]
    def _switch_tape(self, change: dict[str, Any]) -> None:
        """Start or end the tape; `load_magics` starts the tape that a configuration file wants."""
        if self._configured and change["new"]:
            self.start_tape()
        elif self._configured:
            self.session.stop_tape()

    def start_tape(self) -> None:
        """Start the tape unless it is on. Raises UsageError."""
        from .cell.taping import start_tape

        start_tape(self.session)
        self.tape = True

    @property
    def session(self) -> Session:
        """The state that this kernel keeps from cell to cell."""
        if self._session is None:
            from .session import Session

            self._session = Session(self.shell, self.defaults, self.read_options)
        return self._session

    def defaults(self) -> dict[str, Any]:
        """Return the configured defaults under the names of the options."""
        return {name: getattr(self, name) for name in _SETTINGS}

    def read_options(self, line: str) -> options.Options:
        """Return the options of a cell with this line. Raises UsageError."""
        return options.parse(AgentMagics.agent_cell.parser, line, self.defaults())

    @no_var_expand  # type: ignore[untyped-decorator]
    @cell_magic("agent")  # type: ignore[untyped-decorator]
    @option_table.add_options
    def agent_cell(self, line: str, cell: str) -> Any:
        """Run an agent: the cell is the prompt, in which {{ expression }} is replaced by a value of
        this notebook.
        """
        running_cell = self.session.cells.current(self.shell, line, cell)
        if not capture.is_capturing():  # code of a tool is not the text of its cell
            self.session.keep_start(running_cell)
        run = _run_class(line)(self.session, running_cell, lambda: self.read_options(line))
        return transform.await_or_run(run.go())

    @no_var_expand  # type: ignore[untyped-decorator]
    @line_magic("agent")  # type: ignore[untyped-decorator]
    def agent_line(self, line: str) -> Any:
        """Run a command about agents: %agent help lists the commands."""
        from .commands import run_command

        try:
            return run_command(self.session, line)
        # a command may have switched the tape, so the trait must follow: `%config` does nothing if
        # the trait has the new value already
        finally:
            self.tape = self.session.tape is not None


_SETTINGS = AgentMagics.class_own_traits()  # name -> trait
for _trait in _SETTINGS.values():
    _trait.tag(config=True)  # so that `%config` lists it


def _run_class(line: str) -> type[CellRun | ForeignRun]:
    """Return the class that runs a cell with this line: of an agent, or of `--from`."""
    from .cell.run import CellRun

    if "--from" not in line:  # most cells do not need the import below
        return CellRun
    from .follow.from_source import ForeignRun, wants_source

    return ForeignRun if wants_source(line) else CellRun


def load_magics(shell: Any) -> None:
    """Register magics, transformer and hooks in an IPython shell; loading twice is harmless."""
    if _find_magics(shell) is None:
        shell.register_magics(AgentMagics)
    transform.install_transformer(shell)
    kernel_interrupts.install_interrupts(shell)
    executions.install_executions(shell)
    ran_cells.install_history(shell)
    publish.guard_displays(shell)
    completion.install_matcher(shell, lambda: _find_magics(shell).session)
    magics = _find_magics(shell)
    if read_launch().strict:
        from .cell.refusing import guard_hosts

        guard_hosts(shell)
    if magics.tape or read_launch().tapes:
        magics.start_tape()
    if hasattr(shell, "kernel"):
        threading.Thread(target=_load_ahead, name="agent_nb imports", daemon=True).start()


def _load_ahead() -> None:
    """Import what an agent cell needs while the user writes the first one.

    These imports take three times as long as `%load_ext` itself. A test (`strict`) draws nothing
    and asks no model, so it needs fewer of them.
    """
    with suppress(Exception):  # the cell that needs a module reports the error
        draws_and_asks = not read_launch().strict
        if draws_and_asks:
            from ..view import LiveView

            LiveView.import_widgets()
        from . import presenter  # noqa: F401
        from .cell import cell_tools, run  # noqa: F401

        tools = cell_tools.load_default_tools()
        if draws_and_asks:  # a request to a model needs clients, dialects, anyio's back end
            import anyio

            from ..host import load_plugin
            from ..models import resolve_all  # noqa: F401

            for dialect in ("native", "xml", "thinking"):
                load_plugin("dialects", dialect)
            asyncio.run(anyio.sleep(0))
            for tool in tools:  # checked once, for pydantic and the model of the arguments
                tool.validate({"code": ""})


def unload_magics(shell: Any) -> None:
    """Remove magics, configuration, transformer and hooks from an IPython shell."""
    transform.uninstall_transformer(shell)
    kernel_interrupts.uninstall_interrupts(shell)
    executions.uninstall_executions(shell)
    ran_cells.uninstall_history(shell)
    publish.unguard_displays(shell)
    completion.uninstall_matcher(shell)
    if (hub := sys.modules.get("agent_nb.tools.mcp.hub")) is not None:
        hub.HUB.close()
    magics = _find_magics(shell)
    if magics is None:
        return
    if magics.session.stop_tape():
        from .commands.output import print_text
        from .commands.tape import OFF

        print_text(OFF)
    manager = shell.magics_manager
    for kind in ("cell", "line"):
        manager.magics[kind].pop("agent", None)
    manager.registry.pop(AgentMagics.__name__, None)
    shell.configurables[:] = [c for c in shell.configurables if c is not magics]


def _find_magics(shell: Any) -> Any:
    """Return the magics of a shell, None if the extension is not loaded."""
    return shell.magics_manager.registry.get(AgentMagics.__name__)
