"""`%agent attach URL`: follow a run of another process live in a cell, and record it.

Why: a notebook can watch, and store, a run that a server or another notebook began. Stopping the
cell detaches it, and the remote run goes on.

Rule: in the mode `replay` the record is shown and the server is not asked. In `auto` a record is
shown, with the reason, only if the server sends no event; in `live` never.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

from ...agent import Run
from ...errors import AgentError, Cancelled, UsageError
from ...events import EventLog
from ...external import attach, list_servers
from ..cell.driver import Driver, Work
from ..cell.failure import AgentCellError
from ..cell.frontend import can_click_now
from ..cell.interrupts import Interrupts
from ..cell.rerun import rerun_mode
from ..identity import Cell
from ..option_table import THOUGHTS, VIEWS
from ..options import Options
from ..session import Session
from .awaited_source import print_stop_advice, source_actions
from .base import FollowRun, find_replayable
from .cards import Cards

NO_RECORD = "Nothing to replay: this run has no record. Record it by running the cell."


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are UsageErrors: argparse itself would exit the kernel."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(
            f"{message[:1].upper()}{message[1:]}. Write %agent attach [URL] [-o VAR] [--token NAME] [--no-record] [--live] [--view KIND] [--thoughts KIND]."
        )


def parse_arguments(arguments: list[str], namespace: Mapping[str, Any]) -> tuple[str, str, Options]:
    """Return URL, token and options from the words after `%agent attach`. Raises UsageError."""
    parser = _Parser(prog="%agent attach", add_help=False, allow_abbrev=False)
    parser.add_argument("url", nargs="?", default="")
    parser.add_argument("-o", "--output", default="_agent")
    parser.add_argument("--token", default="")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--view", choices=VIEWS, default="auto")
    parser.add_argument("--thoughts", choices=THOUGHTS, default="collapse")
    parsed = parser.parse_args(arguments)
    if not parsed.output.isidentifier():
        raise UsageError(f"-o takes the name of a variable, not {parsed.output!r}.")
    options = Options(
        output=parsed.output,
        record=not parsed.no_record,
        view=parsed.view,
        thoughts=parsed.thoughts,
        live=parsed.live,
    )
    return _find_url(parsed.url, namespace), _read_token(parsed.token, namespace), options


def _find_url(address: str, namespace: Mapping[str, Any]) -> str:
    """Return the URL of the server or run to attach to.

    `address` is a URL, or names a variable that holds a text or an object with a `url`. Without an
    `address` the only server of the user on this machine is taken. Raises UsageError if not exactly
    one such server runs.
    """
    if address:
        value = namespace.get(address, address)
        return str(getattr(value, "url", value))
    urls = [server.url for server in list_servers()]
    if len(urls) != 1:
        several = f"Several of yours run here: {', '.join(urls)}."
        reason = several if urls else "No server of yours runs on this machine."
        raise UsageError(f"{reason} Write %agent attach URL.")
    return urls[0]


def _read_token(name: str, namespace: Mapping[str, Any]) -> str:
    """Return the token in a variable of the notebook or the environment, "" without a name.

    Raises UsageError if the variable holds no text.
    """
    if not name:
        return ""
    value = namespace.get(name, os.environ.get(name))
    if not isinstance(value, str) or not value:
        raise UsageError(
            "--token takes the name of a variable, of this notebook or of the environment, that holds the token."
        )
    return value


class AttachRun(FollowRun):
    """One `%agent attach` line."""

    def __init__(
        self, session: Session, cell: Cell, url: str, token: str, options: Options
    ) -> None:
        super().__init__(session, cell)
        self.url, self.token, self.options = url, token, options

    async def _follow(self, interrupts: Interrupts) -> Run | None:
        mode = rerun_mode("live" if self.options.live else "", self.cell)
        records = self._list_records()
        recorded = find_replayable(records)
        can_click = can_click_now(self.session.shell, self.cell)
        make_cards = partial(Cards, self.cell, self.options, can_click=can_click, earlier=records)
        if mode == "replay":
            if recorded is None:
                raise UsageError(NO_RECORD)
            return self._show_record(recorded, make_cards)
        attached = attach(self.url, self.token, show=False)
        try:
            return await self._show_live(attached, interrupts, make_cards)
        except Cancelled:  # before the first event
            return None
        except AgentError as fault:  # the server does not answer, or refuses
            if mode == "live" or recorded is None:
                raise
            return self._show_record(recorded, make_cards, f": {str(fault).rstrip('.')}")

    async def _show_live(
        self, attached: Any, interrupts: Interrupts, make_cards: Callable[..., Cards]
    ) -> Run | None:
        """Follow a run of `attach` to its end, or until the user detaches; return it.

        Raises the fault that came before any event.
        """
        driver = Driver(self.session.shell, interrupts)
        actions = source_actions(attached, driver.stop)
        cards = make_cards(actions=actions, title=lambda: attached.title)
        attached.set_run_callback(cards.open)
        await driver.drive(lambda: Work(attached.follow, attached.stop))
        if isinstance(driver.fault, Exception) and not attached.logs:
            raise driver.fault
        detached = print_stop_advice(attached) if attached.detached else ""
        runs = self._close_cards(cards, self.options, detached)
        return runs[-1] if runs else None

    def _show_record(
        self, log: EventLog, make_cards: Callable[..., Cards], reason: str = ""
    ) -> Run:
        """Show the recorded run instead of the server's; `reason` ends the title."""
        cards = make_cards(actions={}, title=lambda: f"attached, from the record{reason}")
        cards.open(log)
        return self._close_cards(cards, self.options)[-1]


async def follow_run(session: Session, arguments: list[str]) -> Run | None:
    """Run `%agent attach` with these arguments; return the run, None if no event came.

    Raises AgentCellError, whose message is one line, and AgentStopped when the user stopped the
    cell.
    """
    cell = session.cells.current(session.shell, " ".join(["attach", *arguments]), "")
    try:
        request = parse_arguments(arguments, session.shell.user_ns)
        return await AttachRun(session, cell, *request).follow()
    except AgentError as fault:
        raise AgentCellError(str(fault)) from None
