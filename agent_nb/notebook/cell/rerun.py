"""Whether a cell calls the model or plays its record: `--rerun live`, `replay`, `auto`.

Why apart from the session: it is the same decision for a cell that runs, for `%agent status` and
for `jupyter agent-nb test`.

Rules
- `live` never looks at a record. `replay` fails when none matches. `auto` plays a run that ended
  `ok` when the inputs are unchanged, else it goes live; where a replay drifts, it goes on live.
- A kernel that was started to be strict only replays, and so does one with AGENT_NB_RERUN=replay,
  whatever else is asked for. Below that our runner stands above the cell, and the cell above the
  environment.
- Trust can be given from outside the notebook only: `--trust-record` for all records, `test` for
  those that a signer has signed.
- Code of a record that this user has not signed needs somebody to ask, in every mode; so do turns
  of such records before a live run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from ...agent.agent import Agent
from ...agent.replay_check import Wish
from ...agent.tape import NOBODY, TRUST, Tape
from ...errors import NotReplayed, UsageError
from ...events import State
from ...host import launch
from ...models.offline import ELSEWHERE, barred
from ...record.given import Given
from ...record.masks import Rule
from ...record.match import Match, match
from ...record.ranking import started
from ...record.record import NONE, events_of
from ...record.signing import user_key
from ...tools.base import Compare
from ..conversations import named
from ..files.library import countersigned
from ..options import Options
from .identity import RERUN, Cell

RULES = "normalize"  # what our runner sends: the patterns of the notebook's project
MODES = ("auto", "live", "replay")
DEFAULT = "auto"
TRUST_VARIABLE = "AGENT_NB_TRUST_RECORD"
AGAIN = "Record it with: jupyter agent-nb run --live NOTEBOOK, or run the cell with --live."


class Choice(msgspec.Struct, frozen=True):
    """What to do: play `tape` (made of `record`), or, when there is none, call the model. `found`
    says why.
    """

    found: Match
    tape: Tape | None = None
    record: Mapping[str, Any] | None = None

    @property
    def badge(self) -> str:
        """Words for the header of a replay, short enough for one line beside a model's name."""
        if self.record is None:
            return ""
        began = started(self.record)
        when = time.strftime("%d %b %Y %H:%M", time.localtime(began)) if began else "earlier"
        return f"replayed, recorded {when}"


def as_sent(options: Options, cell: Cell) -> Options:
    """Return the options with what our runner sent in their place."""
    model = cell.sent.get("model")
    return (
        msgspec.structs.replace(options, model=model, model_source="from --model")
        if isinstance(model, str) and model
        else options
    )


def mode(option: str, cell: Cell) -> str:
    """Return the mode for a cell whose option says `option` ("": nothing)."""
    if barred():
        return "replay"
    wanted = (cell.sent.get(RERUN), option, os.environ.get(launch.RERUN))
    return next((str(m) for m in wanted if m in MODES), DEFAULT)


def trusted(cell: Cell) -> bool | frozenset[str]:
    """Return which records that this user has not signed the caller said to trust: all, or those
    with these hashes.
    """
    if cell.sent.get("trust") is True or os.environ.get(TRUST_VARIABLE, "") not in ("", "0"):
        return True
    return countersigned(cell.sent)


def choose(
    wanted: str,
    records: Sequence[Mapping[str, Any]],
    agent: Agent,
    given: Given,
    *,
    trust: bool | Collection[str],
    can_ask: bool,
    unplaced: str = "",
) -> Choice:
    """Decide for one cell; `unplaced` says what to do where its notebook's file is not known.

    Raises NotReplayed in the mode `replay` without a match, and UsageError for foreign code with
    nobody to ask.
    """
    if wanted == "live":
        return Choice(Match(status="unrecorded"))
    # the others are of runs that code in the cell began, or that it followed
    own = [r for r in records if r.get("conversation") != NONE]
    found = match(own, given.inputs, statuses=("ok",) if wanted == "auto" else None)
    if found.record is None:
        if wanted == "replay":
            newest = events_of(own[0]) if found.changed else []
            differences = given.differences(newest, found.changed)
            found = msgspec.structs.replace(found, changed=given.named(newest, found.changed))
            words = [
                f"Nothing to replay: this cell is {found}.",
                *filter(None, [unplaced]),
                _again(),
            ]
            raise NotReplayed(" ".join(words), differences)
        return Choice(found)
    tape = Tape.of(found.record, key=user_key(), trust=trust, live=wanted == "auto", checked=True)
    if not can_ask and tape.foreign(agent.tools):
        raise UsageError(TRUST)
    return Choice(found, tape, found.record)


def wish(cell: Cell, compare: Compare = "full") -> Wish | None:
    """Return how strictly the replay of a cell's run is looked at, None where it is not a test; our
    runner sends what the project says.
    """
    if not barred():
        return None
    sent = cell.sent.get(RULES)
    return Wish(
        compare=compare,
        rules=tuple(msgspec.convert(sent, list[Rule])) if isinstance(sent, list) else (),
    )


def vouched(foreign: int, *, trust: bool | Collection[str], can_ask: bool) -> list[str | State]:
    """Return what a live run says of the `foreign` turns before it, for its header. Raises
    UsageError when nobody would see that.
    """
    if not foreign:
        return []
    words = named(foreign)
    if trust is not True and not can_ask:  # a signer's word is for replays
        raise UsageError(f"{words}, {NOBODY}")
    return [State(kind="foreign_turns", payload={"note": words, "turns": foreign})]


def _again() -> str:
    """Say how a cell without a record gets one."""
    return ELSEWHERE.format(setting) if (setting := barred()) else AGAIN
