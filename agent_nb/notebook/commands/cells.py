"""The command `%agent cell`: the cells that a run offered, which can be inserted after it, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import UsageError
from ...view import clip_text, count_noun
from ..cell.offered_cells import Offer, insert_offer, list_offers
from ..identity import current_request
from .output import show_parts
from .runs import find_run

if TYPE_CHECKING:
    from ..session import Session


def insert_cell(session: Session, arguments: list[str]) -> None:
    """[N [RUN]]: the cells that the latest run offered; with a number, insert that one"""
    run = find_run(session, arguments[1:])
    offers = list_offers(run.log)
    if not arguments:
        none = f"The run {run.id} offered no cell."
        show_parts(session, _offer_table(offers) if offers else none)
        return
    # few digits: `int` raises ValueError for thousands of them
    number = int(arguments[0]) if arguments[0].isdecimal() and len(arguments[0]) < 6 else 0
    if not 0 < number <= len(offers):
        # `%agent cell` lists those of the latest run only
        where = ", numbered from 1" if arguments[1:] else ": %agent cell lists them"
        offered = f"{count_noun(len(offers), 'cell')}{where}" if offers else "none"
        raise UsageError(
            f"The run {run.id} offered no cell {arguments[0]!r}. It offered {offered}."
        )
    code = current_request(session.shell)[1].strip()
    is_alone = code.startswith("%agent") and "\n" not in code  # then the offer replaces the cell
    insert_offer(session.shell, offers[number - 1], replace=is_alone)


def _offer_table(offers: list[Offer]) -> list[tuple[str, ...]]:
    rows = [
        (
            str(n),
            clip_text(o.why, 100),
            clip_text(o.code.strip().partition("\n")[0], 80),
            count_noun(len(o.code.strip().splitlines()), "line"),
        )
        for n, o in enumerate(offers, 1)
    ]
    return [("cell", "why", "code", ""), *rows]
