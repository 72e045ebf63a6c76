"""Decide whether a cell calls the model or plays its record: `--rerun live`, `replay`, `auto`.

Why apart from the session: a running cell, `%agent status` and `jupyter agent-nb test` share the
decision.

Rules
- `live` ignores records. `replay` fails if no record matches. `auto` plays a run that ended `ok` if
  its inputs are unchanged, else it runs live; a replay that drifts goes on live.
- A strict kernel only replays, and so does one with AGENT_NB_RERUN=replay, whatever the options
  say. Otherwise our runner overrides the cell, and the cell overrides the environment.
- Trust comes from outside the notebook only: `--trust-record` for all records, `test` for those
  that a signer has signed.
- Running the code of a record that this user has not signed requires that the user can be asked, in
  every mode; so do turns of such records before a live run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from ...agent import (
    Changes,
    ReplayStrictness,
    Rule,
    Tape,
)
from ...errors import NotReplayed, UsageError
from ...events import State
from ...host import Launch, read_launch
from ...record import Match, Provenance, RunInputs, events_of, read_start_time, user_key
from ...rows import Agent
from ...tools import Compare
from ..conversations import describe_foreign
from ..files.library import countersigned_hashes
from ..identity import Cell
from ..options import Options

MODES = ("auto", "live", "replay")
DEFAULT = "auto"
TRUST_VARIABLE = "AGENT_NB_TRUST_RECORD"
AGAIN = "Record it with: jupyter agent-nb run --live NOTEBOOK, or run the cell with --live."


class Choice(msgspec.Struct, frozen=True):
    """The decision: play `tape` (made from `record`), or without one call the model.

    `match` says why. `changes`: the variables that differ; if the run used them, none is played.
    `remark`: what else is to be said of a replay.
    """

    match: Match
    tape: Tape | None = None
    record: Mapping[str, Any] | None = None
    changes: Changes = Changes()
    remark: str = ""

    @property
    def badge(self) -> str:
        """A short remark for the header of a replay, "" for a live run."""
        if self.record is None:
            return ""
        began = read_start_time(self.record)
        when = time.strftime("%d %b %Y %H:%M", time.localtime(began)) if began else "earlier"
        since = f"since then {others}" if (others := self.changes.list_others()) else ""
        return " · ".join(filter(None, (f"replayed, recorded {when}", self.remark, since)))

    @property
    def why_anew(self) -> tuple[str, ...]:
        """What alone kept a record from being played, in words, if the cell does not show it."""
        if self.match.changed == ("conversation",):
            return ("the conversation changed",)
        return self.changes.used


def as_sent(options: Options, cell: Cell) -> Options:
    """Return the options with the values that our runner sent instead."""
    model = cell.sent.get("model")
    return (
        msgspec.structs.replace(options, model=model, model_source="from --model")
        if isinstance(model, str) and model
        else options
    )


def rerun_mode(option: str, cell: Cell) -> str:
    """Return the mode of a cell; `option` is its `--rerun` ("": not given)."""
    if read_launch().why_not_live:
        return "replay"
    wanted = (cell.sent.get("rerun"), option, os.environ.get(Launch.RERUN))
    return next((str(m) for m in wanted if m in MODES), DEFAULT)


def trusted_records(cell: Cell) -> bool | frozenset[str]:
    """Return the unsigned records that the caller trusts: all (True), or by hash."""
    if cell.sent.get("trust") is True or os.environ.get(TRUST_VARIABLE, "") not in ("", "0"):
        return True
    return countersigned_hashes(cell.sent)


def decide_replay(
    wanted: str,
    records: Sequence[Mapping[str, Any]],
    agent: Agent,
    inputs: RunInputs,
    *,
    trust: bool | Collection[str],
    can_ask: bool,
    unplaced: str = "",
    namespace: dict[str, Any] | None = None,
) -> Choice:
    """Decide for one cell; `unplaced` is the advice if its notebook's file is not known.

    `namespace`: the user's variables; those that the recorded run used must look the same.

    Raises NotReplayed in the mode `replay` without a match, and UsageError for code of others if
    the user cannot be asked.
    """
    if wanted == "live":
        return Choice(Match(status="unrecorded"))
    # NONE marks runs that code in the cell began or followed
    own = [r for r in records if r.get("conversation") != Provenance.NO_CONVERSATION]
    matched = _matching(own, inputs, ("ok",) if wanted == "auto" else None)
    if matched.record is None:
        if wanted == "replay":
            newest = events_of(own[0]) if matched.changed else []
            differences = inputs.describe_differences(newest, matched.changed)
            matched = msgspec.structs.replace(
                matched, changed=inputs.name_inputs(newest, matched.changed)
            )
            sentences = [
                f"Nothing to replay: this cell is {matched}.",
                *filter(None, [unplaced]),
                recording_advice(),
            ]
            raise NotReplayed(" ".join(sentences), differences)
        return Choice(matched)
    tape = Tape.of(matched.record, key=user_key(), trust=trust, live=wanted == "auto", checked=True)
    changes = Changes.since(tape, agent.tools, namespace) if namespace is not None else Changes()
    if changes.used and wanted == "replay":
        raise changed_variables_error(changes)
    if changes.used:
        return Choice(Match(status="stale", changed=("variables",)), changes=changes)
    if not can_ask and tape.foreign(agent.tools):
        raise UsageError(Tape.NOT_TRUSTED)
    return Choice(matched, tape, matched.record, changes)


def _matching(
    own: Sequence[Mapping[str, Any]], inputs: RunInputs, statuses: Sequence[str] | None
) -> Match:
    """Return the record with these inputs, or with other files of the same pictures."""
    matched = Match.find(own, inputs.digests, statuses=statuses)
    for record in own if matched.record is None and inputs.attachments else ():
        same = inputs.match_figures(events_of(record))
        like = Match.find([record], same.digests, statuses=statuses) if same is not None else None
        if like is not None and like.record is not None:
            return like
    return matched


def changed_variables_error(changes: Changes) -> NotReplayed:
    """Return the error for a record whose run used variables that look different now."""
    reason = f"Nothing to replay: variables that the run used have changed: {changes.list_used()}."
    return NotReplayed(f"{reason} {recording_advice()}", changes.used)


def replay_strictness(cell: Cell, compare: Compare = "full") -> ReplayStrictness | None:
    """Return how strictly the replay of a cell's run is checked, None outside a test.

    Our runner sends the masks of the project.
    """
    if not read_launch().why_not_live:
        return None
    sent = cell.sent.get("normalize")
    return ReplayStrictness(
        compare=compare,
        rules=tuple(msgspec.convert(sent, list[Rule])) if isinstance(sent, list) else (),
    )


def require_trust(
    foreign: int, *, trust: bool | Collection[str], can_ask: bool
) -> list[str | State]:
    """Return the remark on the `foreign` turns before a live run, for its header.

    Raises UsageError if the user cannot be asked and has not trusted them.
    """
    if not foreign:
        return []
    note = describe_foreign(foreign)
    if trust is not True and not can_ask:  # a signer's word is for replays
        raise UsageError(f"{note}, {Tape.NOBODY_TO_ASK}")
    return [State(kind="foreign_turns", payload={"note": note, "turns": foreign})]


def recording_advice() -> str:
    """Return how to record a cell."""
    return read_launch().why_not_live or AGAIN
