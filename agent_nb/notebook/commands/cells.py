"""The cells that a run offered: `%agent cell`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import UsageError
from ...view.format import clip, plural
from ..cell.offered_cells import Offer, offers, place
from ..identity import request
from .output import show
from .runs import the_run

if TYPE_CHECKING:
    from ..session import Session


def cell(session: Session, arguments: list[str]) -> None:
    """[N [RUN]]: the cells that the latest run offered; with a number, insert that one"""
    run = the_run(session, arguments[1:])
    found = offers(run.log)
    if not arguments:
        show(session, *([_rows(found)] if found else [f"The run {run.id} offered no cell."]))
        return
    number = int(arguments[0]) if arguments[0].isdecimal() and len(arguments[0]) < 6 else 0
    if not 0 < number <= len(found):
        known = f"It offered {plural(len(found), 'cell')}: %agent cell lists them."
        raise UsageError(f"The run {run.id} offered no cell {arguments[0]!r}. {known}")
    place(session.shell, found[number - 1], replace=_alone(session))


def _rows(found: list[Offer]) -> list[tuple[str, ...]]:
    rows = [
        (str(n), clip(o.why, 100), clip(o.code.strip().partition("\n")[0], 80), _lines(o.code))
        for n, o in enumerate(found, 1)
    ]
    return [("cell", "why", "code", ""), *rows]


def _lines(code: str) -> str:
    return plural(len(code.strip().splitlines()), "line")


def _alone(session: Session) -> bool:
    """Return whether the running cell is this command alone, which may be replaced."""
    code = request(session.shell)[1].strip()
    return code.startswith("%agent") and "\n" not in code
