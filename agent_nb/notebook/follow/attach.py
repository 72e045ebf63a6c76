"""`%agent attach URL`: a run of another process in a cell, followed live, recorded like any other.

Rules
- `--rerun replay` (and so `jupyter agent-nb test`) shows the record and asks nobody; else the
  server is asked, and when it does not answer the record is shown where there is one.
- Stopping detaches: the remote run goes on, but the cell has not got what it waited for and ends
  with AgentStopped, as any that is stopped.
- No token belongs in a cell: that of a server of yours on this machine is found, for another
  `--token NAME` names the variable, of the notebook or the environment, that holds it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

import msgspec

from ...agent.run import Run
from ...errors import AgentError, AgentStopped, Cancelled, UsageError
from ...events.log import EventLog
from ...external import tokens
from ...external.attach import Attached, attach
from ...record.record import NONE, log_of
from ..cell.awaited import actions, leave
from ..cell.driver import Driver
from ..cell.failure import AgentCellError
from ..cell.frontend import can_click
from ..cell.identity import Cell
from ..cell.interrupts import Interrupts
from ..cell.kernel_interrupts import cell_interrupts
from ..cell.rerun import mode
from ..cell.screen import Screen
from ..options import THOUGHTS, VIEWS, Options
from ..session import Session

NEVER_ASKED = "Nothing to replay: there is no record of this run. Record it by running the cell."


class Asked(msgspec.Struct, frozen=True):
    """What one `%agent attach` asks for."""

    url: str
    token: str
    options: Options


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(
            f"{message[:1].upper()}{message[1:]}. Write %agent attach [URL] [-o VAR] [--token NAME] [--no-record]."
        )


def _parser() -> _Parser:
    parser = _Parser(prog="%agent attach", add_help=False, allow_abbrev=False)
    parser.add_argument("url", nargs="?", default="")
    parser.add_argument("-o", "--output", default="_agent")
    parser.add_argument("--token", default="")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--view", choices=VIEWS, default="auto")
    parser.add_argument("--thoughts", choices=THOUGHTS, default="collapse")
    return parser


def read(arguments: list[str], namespace: Mapping[str, Any]) -> Asked:
    """Return what the words after `%agent attach` ask for. Raises UsageError."""
    said = _parser().parse_args(arguments)
    if not said.output.isidentifier():
        raise UsageError(f"-o takes the name of a variable, not {said.output!r}.")
    options = Options(
        output=said.output,
        record=not said.no_record,
        view=said.view,
        thoughts=said.thoughts,
        live=said.live,
    )
    return Asked(_url(said.url, namespace), _token(said.token, namespace), options)


def _url(said: str, namespace: Mapping[str, Any]) -> str:
    """Return the address: as it was said, that of a variable (a text, or the handle of a server),
    or of the one server of this user.
    """
    if said:
        held = namespace.get(said, said)
        return str(getattr(held, "url", held))
    found = [note.url for note in tokens.living()]
    if len(found) != 1:
        known = (
            f"Several of yours run here: {', '.join(found)}."
            if found
            else "No server of yours runs on this machine."
        )
        raise UsageError(f"{known} Write %agent attach URL.")
    return found[0]


def _token(name: str, namespace: Mapping[str, Any]) -> str:
    if not name:
        return ""
    value = namespace.get(name, os.environ.get(name))
    if not isinstance(value, str) or not value:
        raise UsageError(
            "--token takes the name of a variable, of this notebook or of the environment, that holds the token."
        )
    return value


class Work:
    """An attached run as the driver runs it."""

    def __init__(self, attached: Attached) -> None:
        self._attached = attached

    async def run(self) -> None:
        """Follow it to its end, or until it is detached."""
        await self._attached.follow()

    def cancel(self) -> None:
        """Detach."""
        self._attached.stop()


class AttachRun:
    """One `%agent attach` line."""

    def __init__(self, session: Session, cell: Cell, asked: Asked) -> None:
        self.session, self.cell, self.asked, self.options = session, cell, asked, asked.options

    async def go(self) -> Run | None:
        """Follow the run, show and record it; return it, None when nothing came. Raises AgentError,
        AgentStopped when it was detached.
        """
        found: list[Run] = []
        with cell_interrupts(self.session.shell) as interrupts:
            with suppress(Cancelled):  # before anything came
                found = await self._found(interrupts)
            for run in found:
                self.session.keep(self.cell, run, self.options.output)
        last = found[-1] if found else None
        if interrupts.stopped:
            raise AgentStopped(interrupts.by, last)
        return last

    async def _found(self, interrupts: Interrupts) -> list[Run]:
        wanted = mode("live" if self.options.live else "", self.cell)
        known = [r for r in self.session.library.of(self.cell) if r.get("conversation") == NONE]
        record = next((r for r in known if r.get("status") != "interrupted"), None)
        if wanted == "replay" and record is None:
            raise UsageError(NEVER_ASKED)
        if wanted == "replay" and record is not None:
            return self._leave(self._screen(None, known), log_of(record))
        attached = attach(self.asked.url, self.asked.token, show=False)
        screen = self._screen(attached, known)
        driver = Driver(self.session.shell, interrupts)
        await driver.drive(lambda: self._prepare(attached, screen, driver))
        if isinstance(driver.fault, AgentError) and not attached.logs:
            if wanted == "live" or record is None:
                raise driver.fault
            return self._leave(self._screen(None, known), log_of(record))
        if attached.detached:
            screen.detached = leave(attached)
        return self._leave(screen)

    def _prepare(self, attached: Attached, screen: Screen, driver: Driver) -> Work:
        screen.actions = actions(attached, driver.stop)
        attached.on_run = screen.opened
        return Work(attached)

    def _screen(self, attached: Attached | None, known: list[Mapping[str, Any]]) -> Screen:
        clicks = can_click(self.session.shell, self.cell)
        title = (
            (lambda: attached.title)
            if attached is not None
            else (lambda: "attached, from the record")
        )
        screen = Screen(self.cell, self.options, actions={}, clicks=clicks, title=title)
        screen.known = known
        return screen

    def _leave(self, screen: Screen, log: EventLog | None = None) -> list[Run]:
        if log is not None:
            screen.opened(log)
        runs = screen.close()
        for record in screen.made:
            self.session.library.keep(self.cell.key, record)
        return runs


async def follow(session: Session, arguments: list[str]) -> Run | None:
    """Do `%agent attach …` with these words after `attach`; return the run. Raises AgentCellError
    with one line when it cannot.
    """
    cell = session.cells.current(session.shell, " ".join(["attach", *arguments]), "")
    try:
        return await AttachRun(session, cell, read(arguments, session.shell.user_ns)).go()
    except AgentError as fault:
        raise AgentCellError(str(fault)) from None
