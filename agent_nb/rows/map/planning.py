"""Plans a map before its first request: rows with prompts and keys, inputs, checks.

A wrong column, a tool that needs approval or an unknown model must fail before any row is paid for.
Planning needs no model, so that a recorded map plays without one; `check` looks the model up.

Rule: the default token limit holds for each row. Only a token limit that the user set holds over
all rows, as the limit in dollars does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from ... import events
from ...agent import Basis, Configuration
from ...errors import UsageError
from ...events import new_run_id
from ...host import read_launch
from ...record import RunInputs
from ...wire import Redaction, replace_surrogates
from .asking import LocalRows, RowAsker
from .budget import Budget
from .cluster.dask_rows import distribute_rows
from .driver import Job, ShowStatus
from .estimate import estimate_map
from .keys import map_digest
from .known_rows.forgetting import MAP_SETTING, describe_store
from .known_rows.map_player import prepare_row_player
from .known_rows.stored import Store, is_named, map_id, missing_store_name, open_store, read_store
from .options import MapOptions
from .refusals import check_map_tools
from .row import Row
from .table.filling import Filling
from .table.rows import Rows, rows_of
from .table.template import Template

NAMED_ROWS = 10  # the most rows that an error names
LOGGED_COLUMNS = 100  # the most columns whose names are logged
UNPLAYABLE = "This map is too large for its record to hold the rows (1,000 rows, 1 MB): jupyter agent-nb test cannot replay it. Keep its rows in a file beside the notebook, which goes with it: --store FILE (store=)."


class MapPlan(msgspec.Struct, frozen=True):
    """The plan of a map: the data, the work (`job`), the inputs, and the redaction of secrets.

    `check` raises UsageError if the map must not run live. `absent`: the path of the user's store
    if that file does not exist, else "".
    """

    data: Rows
    job: Job
    inputs: RunInputs
    redaction: Redaction
    check: Callable[[], None]
    absent: str = ""


def plan_map(
    agent: Configuration,
    data: Any,
    prompt: str,
    options: MapOptions,
    *,
    attachments: Any = None,
    store: Store = None,
    client: Any = None,
) -> MapPlan:
    """Return the plan of a map. Raises UsageError for unusable options, data or prompt.

    `client`: the Dask client through which the rows are asked (`cluster`); None: here.
    """
    if not isinstance(prompt, str):  # such as data and prompt in the wrong order
        raise UsageError(f"The prompt is of type {type(prompt).__name__}. Give a text.")
    options, prompt, store = options.checked(), replace_surrogates(prompt), read_store(store)
    rows = rows_of(data, options.limit)
    template = Template(prompt, agent.namespace, attachments)
    template.check(rows)
    redaction = agent.redaction()
    shared_inputs = agent.make_redacted_inputs(redaction, "", (), ())
    filling = Filling(rows, template, redaction)
    filled_rows = filling.fill_all(shared_inputs, options.repeats)
    redacted_prompt = redaction.value(prompt)
    id_ = map_id(shared_inputs.digests, redacted_prompt)
    # among the inputs, a digest of all rows; in `run_start`, the facts of `map_setting` below
    settings = {**shared_inputs.settings, MAP_SETTING: map_digest([row.key for row in filled_rows])}
    inputs = msgspec.structs.replace(shared_inputs, prompt=redacted_prompt, settings=settings)
    live = bool(filled_rows) and (not read_launch().why_not_live or agent.choice.is_script())
    live_side = _LiveSide(
        agent=agent, client=client, options=options, redaction=redaction, live=live
    )
    budget = Budget(
        agent.limits.tokens if "tokens" in agent.chosen_limits else 0, agent.limits.cost
    )
    map_setting = {"rows": len(filled_rows), **describe_store(id_, store)}
    map_setting |= msgspec.to_builtins(options)
    facts = _collect_facts(rows, options, redaction, "" if client is None else "dask")
    job = Job(
        rows=filled_rows,
        options=options,
        budget=budget,
        start=partial(_collect_start_fields, live_side, inputs, map_setting),
        user=events.User(content=redacted_prompt, origin="user"),
        plan=partial(_estimate_rows, live_side, budget, facts),
        open_asker=live_side.open_asker,
        read_pictures=filling.read_pictures,
        play=prepare_row_player(agent, redaction),
        unplayable=UNPLAYABLE if live and not is_named(store) else "",
        store=lambda warn: open_store(
            store, id_, owner=new_run_id(), title=redacted_prompt, live=live, warn=warn
        ),
    )
    return MapPlan(rows, job, inputs, redaction, live_side.check, missing_store_name(store))


class _LiveSide(msgspec.Struct, kw_only=True):
    """What only a map that asks rows needs; `live`: this map does.

    `basis` and `make_cluster_asker` are made by `prepare`, once: a recorded map plays without them.
    """

    agent: Configuration
    client: Any
    options: MapOptions
    redaction: Redaction
    live: bool
    basis: Basis | None = None
    make_cluster_asker: Callable[[], RowAsker] | None = None

    def check(self) -> None:
        """Raise UsageError if the map would ask rows and cannot."""
        if self.live:
            self.prepare()

    def prepare(self) -> Basis:
        """Return what the runs of all rows share. Raises UsageError if no row can be asked."""
        if self.basis is None:
            basis = self.make_basis(self.agent)
            if self.client is not None:
                self.make_cluster_asker = distribute_rows(
                    self.agent, self.client, self.options, self.redaction
                )
            self.basis = basis
        return self.basis

    def make_basis(self, agent: Configuration) -> Basis:
        """Return what runs of this agent share. Raises UsageError if a map cannot call a tool."""
        basis = Basis.of(agent, self.redaction)
        check_map_tools(agent.tools, basis.policy, self.options.concurrency)
        return basis

    async def open_asker(self, left: Sequence[Row], show_status: ShowStatus) -> RowAsker:
        """Return the asker of the rows that are left; `show_status` receives what it waits for."""
        if not self.live:
            raise UsageError(_describe_unrecorded(left))
        basis = self.prepare()
        server_notes: Sequence[events.State] = ()
        if self.make_cluster_asker is not None:
            return self.make_cluster_asker()
        if self.agent.tools.late:
            extended, server_notes = await self.agent.with_servers(self.redaction, show_status)
            show_status("")
            basis = self.make_basis(extended)
        return LocalRows(self.agent, basis, rpm=self.options.rpm, notes=server_notes)


def _collect_start_fields(
    live_side: _LiveSide, inputs: RunInputs, map_setting: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the fields of `run_start`. Where no row is asked, the model may be unknown."""
    fields: Mapping[str, Any] = {"model": inputs.model, "settings": {"asked": inputs.model}}
    if live_side.live:
        fields = live_side.prepare().start
    digests = {"inputs": dict(inputs.digests), "hash": inputs.digests.hash}
    settings = {**fields["settings"], **digests, MAP_SETTING: map_setting}
    return {**fields, "agent": "map", "settings": settings}


def _collect_facts(
    rows: Rows, options: MapOptions, redaction: Redaction, where: str
) -> Mapping[str, Any]:
    """Return the facts of a map that need no model; names of columns are redacted."""
    columns = [replace_surrogates(name) for name in rows.names[:LOGGED_COLUMNS]]
    return {
        "rows": len(rows),
        "repeats": options.repeats,
        "columns": [redaction.value(name) for name in columns],
        "concurrency": options.concurrency,
        "rpm": options.rpm,
        "where": where,
    }


def _estimate_rows(
    live_side: _LiveSide, budget: Budget, facts: Mapping[str, Any], left: Sequence[Row]
) -> Mapping[str, Any]:
    """Return the facts to log, with the estimate for these rows, which `budget` then expects."""
    if not (live_side.live and left):
        return facts
    figures, rows = estimate_map(left, live_side.prepare(), budget), len(left)
    budget.expect((figures.input + figures.written) / rows, (figures.cost or 0.0) / rows)
    return {**facts, "estimate": figures.payload}


def _describe_unrecorded(unrecorded: Sequence[Row]) -> str:
    """Return why rows without a record cannot be asked here, where nothing runs live."""
    positions = ", ".join(str(row.position) for row in islice(unrecorded, NAMED_ROWS))
    subject, verb = ("Row", "has") if len(unrecorded) == 1 else ("Rows", "have")
    others = len(unrecorded) - NAMED_ROWS
    more = f" and {others} more" if others > 0 else ""
    return f"{subject} {positions}{more} {verb} no record here. {read_launch().why_not_live}"
