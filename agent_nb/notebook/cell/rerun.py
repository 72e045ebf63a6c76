"""Decide whether a cell calls the model or plays its record: `--rerun live`, `replay`, `auto`.

`live` ignores records; `replay` fails if no record matches; `auto` plays a run that ended `ok` with
unchanged inputs, and goes on live if the replay drifts. Agent cells, runs of Python code and
followed runs share these rules.

Rules
- Trust comes from outside the notebook: `--trust-record`, AGENT_NB_TRUST_RECORD, signers of `test`.
- In every mode, code of a record that this user has not signed runs again only if the record is
  trusted or the user can be asked. A live run sends turns of such records on the same condition,
  but a signer's signature does not count there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence

import msgspec

from ...agent import Changes, RecordedTurns, ReplayStrictness
from ...errors import NotReplayed, UsageError
from ...events import State
from ...host import Launch, Offer, read_launch
from ...record import Match, Provenance, Record, RunInputs, UserKey, events_of, read_start_time
from ...rows import Agent
from ...tools import Compare, Toolset
from ..files.library import countersigned_hashes
from ..identity import Cell
from ..notices import format_date
from ..option_table import RERUNS
from ..options import Options

TRUST_VARIABLE = "AGENT_NB_TRUST_RECORD"
RECORD_IT = "Record it with: jupyter agent-nb run --live NOTEBOOK, or run the cell with --live."


class ReplayChoice(msgspec.Struct, frozen=True):
    """The decision: play `turns`, made from `record`, or call the model if `turns` is None.

    match: how the cell's records match its inputs. changes: how the user's variables have changed
    since the record was made. reason: `CellPrompt.why_replayed`.
    """

    match: Match
    turns: RecordedTurns | None = None
    record: Record | None = None
    changes: Changes = Changes()
    reason: str = ""

    @property
    def badge(self) -> str:
        """What the header of a replay says about it, "" for a live run."""
        if self.record is None:
            return ""
        began = read_start_time(self.record)
        when = format_date(began) if began else "earlier"
        others = self.changes.list_others()
        since = f"since then {others}" if others else ""
        return " · ".join(filter(None, (f"replayed, recorded {when}", self.reason, since)))

    @property
    def why_live(self) -> tuple[str, ...]:
        """The only changes that prevent a replay: the conversation's or variables'; else ()."""
        if self.match.changed == ("conversation",):
            return ("the conversation changed",)
        return self.changes.used


class ReplayRules(msgspec.Struct, frozen=True):
    """What a cell and its user allow: a `mode` of `--rerun`, and which records are trusted.

    `trust`: see `trusted_records`. `can_ask`: the user can be asked about untrusted code.
    `path_advice`: what an error advises if the notebook's file is unknown, else "".
    """

    mode: str
    trust: bool | frozenset[str]
    can_ask: bool
    path_advice: str = ""


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
    return next((str(mode) for mode in by_rank if mode in RERUNS), "auto")


def trusted_records(cell: Cell) -> bool | frozenset[str]:
    """Return which records of others are trusted: all (True), or those with the returned hashes."""
    if Offer.is_trusted_everywhere(TRUST_VARIABLE) or cell.runner_options.get("trust") is True:
        return True
    return countersigned_hashes(cell.runner_options)


def decide_replay(
    rules: ReplayRules,
    records: Sequence[Record],
    agent: Agent,
    inputs: RunInputs,
    find_changes: Callable[[RecordedTurns, Toolset], Changes],
) -> ReplayChoice:
    """Decide for one cell, from its `records` and present `inputs`.

    `find_changes` returns what has changed of all that a recorded run used, by the tools of its
    replay.

    Raises NotReplayed in the mode `replay` if no record matches, and UsageError for a record with
    code of other people if the user cannot be asked.
    """
    if rules.mode == "live":
        return ReplayChoice(Match(status="unrecorded"))
    must_replay = rules.mode == "replay"
    prompt_records = select_prompted(records)
    matched = _match_prompt(rules.mode, prompt_records, agent, inputs)
    if matched.record is None:
        if must_replay:
            raise _unmatched_error(matched, prompt_records, inputs, rules.path_advice)
        return ReplayChoice(matched)
    turns = RecordedTurns.of(
        matched.record, key=UserKey.read(), trust=rules.trust, live=not must_replay, checked=True
    )
    tools = turns.choose_tools(agent.tools)
    changes = find_changes(turns, tools)
    if changes.used:
        if must_replay:
            raise changed_variables_error(changes)
        return ReplayChoice(Match(status="stale", changed=("variables",)), changes=changes)
    if not rules.can_ask and turns.foreign_calls(tools):
        raise UsageError(RecordedTurns.NOT_TRUSTED)
    return ReplayChoice(matched, turns, matched.record, changes)


def select_prompted(records: Sequence[Record]) -> list[Record]:
    """Return the records of the cell's prompt, without runs that its code began or followed."""
    return [r for r in records if r.get("conversation") != Provenance.NO_CONVERSATION]


def _match_prompt(mode: str, records: Sequence[Record], agent: Agent, inputs: RunInputs) -> Match:
    """Return the match of a record that the mode lets a cell play."""
    if mode == "auto":
        return _match_inputs(records, inputs, ("ok",))
    matched = _match_inputs(records, inputs, None)
    if matched.record is not None or agent.tools.by_prompt:
        return matched
    # a record made without tools stays valid where the default tools apply (`cell_tools`)
    without_tools = _match_inputs(records, msgspec.structs.replace(inputs, tools=()), None)
    return without_tools if without_tools.record is not None else matched


def _match_inputs(
    records: Sequence[Record], inputs: RunInputs, statuses: Sequence[str] | None
) -> Match:
    """Return the match of a record with these inputs, or with the same pictures in other files."""
    matched = Match.find(records, inputs.digests, statuses=statuses)
    if matched.record is not None or not inputs.attachments:
        return matched
    for record in records:
        same_figures = inputs.match_figures(events_of(record))
        if same_figures is None:
            continue
        equal = Match.find([record], same_figures.digests, statuses=statuses)
        if equal.record is not None:
            return equal
    return matched


def _unmatched_error(
    match: Match, records: Sequence[Record], inputs: RunInputs, path_advice: str
) -> NotReplayed:
    """Return the error of the mode `replay` for a cell without a matching record."""
    newest = events_of(records[0]) if match.changed else []
    differences = inputs.describe_differences(newest, match.changed)
    named = msgspec.structs.replace(match, changed=inputs.name_inputs(newest, match.changed))
    sentences = (f"Nothing to replay: this cell is {named}.", path_advice, recording_advice())
    return NotReplayed(" ".join(filter(None, sentences)), differences)


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
    from ...agent import Rule  # only here: other runs do not compile the masks' patterns

    masks = cell.runner_options.get("normalize")  # the masks of the notebook's project
    return ReplayStrictness(
        compare=compare,
        rules=tuple(msgspec.convert(masks, list[Rule])) if isinstance(masks, list) else (),
    )


def require_trust(
    foreign: int, *, trust: bool | Collection[str], can_ask: bool
) -> list[str | State]:
    """Return the remark on foreign turns for the header of the live run that sends them.

    `foreign`: their number. Raises UsageError if there are any, `trust` is not True and the user
    cannot be asked.
    """
    if not foreign:
        return []
    turns = "turn comes from a record" if foreign == 1 else "turns come from records"
    note = f"{foreign} earlier {turns} you did not sign"
    if trust is not True and not can_ask:  # a signature (hashes in `trust`) counts for replays only
        raise UsageError(f"{note}, {RecordedTurns.NOBODY_TO_ASK}")
    return [State(kind="foreign_turns", payload={"note": note, "turns": foreign})]


def recording_advice() -> str:
    """Return a sentence for the user: how to record a cell, or where a live run is possible."""
    return read_launch().why_not_live or RECORD_IT
