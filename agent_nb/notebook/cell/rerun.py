"""Decide whether a cell calls the model or plays its record: `--rerun live`, `replay`, `auto`.

Why one file: agent cells, runs of Python code and followed runs share the rules.

Rules
- `live` ignores records; `replay` fails if no record matches.
- `auto` plays a run that ended `ok` with unchanged inputs; a replay that drifts goes on live.
- Where nothing runs live (`Launch.why_not_live`) the mode is `replay`; else the first of these that
  names a mode decides: our runner, the cell, AGENT_NB_RERUN.
- Trust comes from outside the notebook: `--trust-record`, AGENT_NB_TRUST_RECORD, signers of `test`.
- Code of a record that this user has not signed runs again only if it is trusted or the user can
  be asked, in every mode. Turns of such records before a live run need the same, but there a
  signer's signature is not enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from ...agent import Changes, RecordedTurns, ReplayStrictness, Rule
from ...errors import NotReplayed, UsageError
from ...events import State
from ...host import Launch, read_launch
from ...record import Match, Provenance, RunInputs, events_of, read_start_time, user_key
from ...rows import Agent
from ...tools import Compare
from ..conversations import describe_foreign
from ..files.library import countersigned_hashes
from ..identity import Cell
from ..notices import format_date
from ..option_table import RERUNS
from ..options import Options

DEFAULT = "auto"
TRUST_VARIABLE = "AGENT_NB_TRUST_RECORD"
RECORD_IT = "Record it with: jupyter agent-nb run --live NOTEBOOK, or run the cell with --live."


class ReplayChoice(msgspec.Struct, frozen=True):
    """The decision: play `turns`, made from `record`, or call the model if `turns` is None.

    match: how the cell's records match its inputs. remark: added to the header of a replay.
    changes: how the user's variables differ from when the record was made; a run that used them is
    not played.
    """

    match: Match
    turns: RecordedTurns | None = None
    record: Mapping[str, Any] | None = None
    changes: Changes = Changes()
    remark: str = ""

    @property
    def badge(self) -> str:
        """A short remark for the header of a replay, "" for a live run."""
        if self.record is None:
            return ""
        began = read_start_time(self.record)
        when = format_date(began) if began else "earlier"
        since = f"since then {others}" if (others := self.changes.list_others()) else ""
        return " · ".join(filter(None, (f"replayed, recorded {when}", self.remark, since)))

    @property
    def why_live(self) -> tuple[str, ...]:
        """The only changes that prevent a replay, in words: conversation or variables; or ()."""
        if self.match.changed == ("conversation",):
            return ("the conversation changed",)
        return self.changes.used


def apply_runner_options(options: Options, cell: Cell) -> Options:
    """Return the options of a cell, with the model that our runner sent with it, if any."""
    model = cell.runner_options.get("model")
    if isinstance(model, str) and model:
        return msgspec.structs.replace(options, model=model, model_source="from --model")
    return options


def rerun_mode(option: str, cell: Cell) -> str:
    """Return the mode of a cell; `option` is its `--rerun` ("": not given)."""
    if read_launch().why_not_live:
        return "replay"
    by_rank = (cell.runner_options.get("rerun"), option, os.environ.get(Launch.RERUN))
    return next((str(mode) for mode in by_rank if mode in RERUNS), DEFAULT)


def trusted_records(cell: Cell) -> bool | frozenset[str]:
    """Return which records of others are trusted: all (True), or those with the returned hashes."""
    by_environment = os.environ.get(TRUST_VARIABLE, "") not in ("", "0")
    if by_environment or cell.runner_options.get("trust") is True:
        return True
    return countersigned_hashes(cell.runner_options)


def decide_replay(
    mode: str,
    records: Sequence[Mapping[str, Any]],
    agent: Agent,
    inputs: RunInputs,
    *,
    trust: bool | Collection[str],
    can_ask: bool,
    path_advice: str = "",
    namespace: dict[str, Any] | None = None,
    compare: Callable[..., Sequence[str]] | None = None,
) -> ReplayChoice:
    """Decide for one cell, from its `records` and present `inputs`, in a `mode` of `--rerun`.

    `trust`: see `trusted_records`. `can_ask`: the user can be asked about untrusted code.
    `path_advice`: for the error, what to do if the notebook's file is unknown. `namespace`: the
    user's variables (None: not compared); those that the recorded run used must look the same.
    `compare`: see `Changes.since`.

    Raises NotReplayed in the mode `replay` without a match, and UsageError for code of others if
    the user cannot be asked.
    """
    if mode == "live":
        return ReplayChoice(Match(status="unrecorded"))
    # runs that code in the cell began or followed have no conversation
    prompt_records = [r for r in records if r.get("conversation") != Provenance.NO_CONVERSATION]
    matched = _match_inputs(prompt_records, inputs, ("ok",) if mode == "auto" else None)
    if mode == "replay" and matched.record is None and not agent.tools.by_prompt:
        # a record made without tools stays valid where the default tools apply (`cell_tools`)
        unchosen = msgspec.structs.replace(inputs, tools=())
        equal = _match_inputs(prompt_records, unchosen, None)
        matched = equal if equal.record is not None else matched
    if matched.record is None:
        if mode == "replay":
            raise _unmatched_error(matched, prompt_records, inputs, path_advice)
        return ReplayChoice(matched)
    turns = RecordedTurns.of(
        matched.record, key=user_key(), trust=trust, live=mode == "auto", checked=True
    )
    tools = turns.choose_tools(agent.tools)
    changes = Changes()
    if namespace is not None:
        changes = Changes.since(turns, tools, namespace, compare, agent.secrets)
    if changes.used and mode == "replay":
        raise changed_variables_error(changes)
    if changes.used:
        return ReplayChoice(Match(status="stale", changed=("variables",)), changes=changes)
    if not can_ask and turns.foreign_calls(tools):
        raise UsageError(RecordedTurns.NOT_TRUSTED)
    return ReplayChoice(matched, turns, matched.record, changes)


def _unmatched_error(
    match: Match, records: Sequence[Mapping[str, Any]], inputs: RunInputs, path_advice: str
) -> NotReplayed:
    """Return the error of the mode `replay` for a cell without a matching record."""
    newest = events_of(records[0]) if match.changed else []
    differences = inputs.describe_differences(newest, match.changed)
    named = msgspec.structs.replace(match, changed=inputs.name_inputs(newest, match.changed))
    sentences = (f"Nothing to replay: this cell is {named}.", path_advice, recording_advice())
    return NotReplayed(" ".join(filter(None, sentences)), differences)


def _match_inputs(
    records: Sequence[Mapping[str, Any]], inputs: RunInputs, statuses: Sequence[str] | None
) -> Match:
    """Return the match of a record with these inputs, or with the same pictures in other files."""
    matched = Match.find(records, inputs.digests, statuses=statuses)
    for record in records if matched.record is None and inputs.attachments else ():
        same_figures = inputs.match_figures(events_of(record))
        if same_figures is None:
            continue
        equal = Match.find([record], same_figures.digests, statuses=statuses)
        if equal.record is not None:
            return equal
    return matched


def changed_variables_error(changes: Changes) -> NotReplayed:
    """Return the error for a record whose run used variables that look different now."""
    reason = f"Nothing to replay: what the run used has changed: {changes.list_used()}."
    return NotReplayed(f"{reason} {recording_advice()}", changes.used)


def replay_strictness(cell: Cell, compare: Compare = "full") -> ReplayStrictness | None:
    """Return how strictly the replay of a cell's run is compared with its record in a test.

    `compare`: which parts of results count (`--compare`). None outside a test, where drift is not
    an error.
    """
    if not read_launch().why_not_live:
        return None
    masks = cell.runner_options.get("normalize")  # the masks of the notebook's project
    return ReplayStrictness(
        compare=compare,
        rules=tuple(msgspec.convert(masks, list[Rule])) if isinstance(masks, list) else (),
    )


def require_trust(
    foreign: int, *, trust: bool | Collection[str], can_ask: bool
) -> list[str | State]:
    """Return the remark on a number of `foreign` turns before a live run, for its header.

    Raises UsageError if there are any, `trust` is not True and the user cannot be asked.
    """
    if not foreign:
        return []
    note = describe_foreign(foreign)
    if trust is not True and not can_ask:  # a signature (hashes in `trust`) counts for replays only
        raise UsageError(f"{note}, {RecordedTurns.NOBODY_TO_ASK}")
    return [State(kind="foreign_turns", payload={"note": note, "turns": foreign})]


def recording_advice() -> str:
    """Return a sentence for the user: how to record a cell, or where a live run is possible."""
    return read_launch().why_not_live or RECORD_IT
