"""Plans a map before its first request: rows with prompts and keys, inputs, checks.

Why so early: a wrong column, a tool that needs approval or an unknown model must fail before any
row is paid for.

Rules
- Prompts are filled in and redacted here, once. Rows differ in prompt and attachments only.
- Planning needs no model, so that a recorded map plays without one; `check` looks the model up.
- A token limit that the user set, and a limit in dollars, hold over all rows. The default token
  limit holds for each row, as do the limits of turns, calls and seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

import msgspec

from ... import events
from ...agent import Basis, Configuration, Limits
from ...errors import UsageError
from ...events import new_run_id
from ...host import read_launch
from ...record import RunInputs
from ...wire import Redaction, replace_surrogates
from .asking import LocalRows, RowAsker
from .budget import Budget
from .cluster.dask_rows import distribute_rows
from .driver import Job, Say
from .estimate import estimate_map
from .keys import map_digest
from .known_rows.forgetting import describe_store
from .known_rows.map_player import make_row_player
from .known_rows.stored import Store, is_named, map_id, missing_store_name, open_store
from .options import MapOptions
from .refusals import check_map_tools
from .row import Row
from .table.filling import Filling
from .table.rows import Rows, rows_of
from .table.template import Template

TOKENS = "tokens"  # the name of the limit
NAMED = 10  # rows that an error names
COLUMNS = 100  # columns whose names are logged
UNPLAYABLE = "This map is too large for its record to hold the rows (1,000 rows, 1 MB): jupyter agent-nb test cannot replay it. Keep its rows in a file beside the notebook, which goes with it: --store FILE (store=)."
MAP = "map"  # name of a setting: in the inputs a digest of all rows, in `run_start` size, options


class MapPlan(msgspec.Struct, frozen=True):
    """The plan of a map: the data, the work (`job`), the inputs, and the redaction of secrets.

    `check` raises UsageError if the map must not run live. `absent`: the path of the user's store
    if that file does not exist, else "".
    """

    data: Rows
    job: Job
    inputs: RunInputs
    redaction: Redaction
    check: Callable[[], object]
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
    options, prompt = options.checked(), replace_surrogates(prompt)
    rows = rows_of(data, options.limit)
    template = Template(prompt, agent.namespace, attachments)
    template.check(rows)
    redaction = agent.redaction()
    shared_inputs = agent.given_of(redaction, "", (), ())
    filling = Filling(rows, template, redaction)
    filled_rows = filling.fill_all(shared_inputs, options.repeats)
    redacted = redaction.value(prompt)
    id_ = map_id(shared_inputs.digests, redacted)
    settings = {**shared_inputs.settings, MAP: map_digest([row.key for row in filled_rows])}
    inputs = msgspec.structs.replace(shared_inputs, prompt=redacted, settings=settings)

    @cache
    def basis() -> Basis:
        prepared = Basis.of(agent, redaction)
        check_map_tools(agent.tools, prepared.policy, options.concurrency)
        return prepared

    async def open_here(say: Say) -> RowAsker:
        if not agent.tools.late:
            return LocalRows(agent, basis(), rpm=options.rpm)
        extended_agent, server_notes = await agent.with_servers(redaction, say)
        say("")
        shared = Basis.of(extended_agent, redaction)
        check_map_tools(extended_agent.tools, shared.policy, options.concurrency)
        return LocalRows(agent, shared, rpm=options.rpm, notes=server_notes)

    @cache
    def find_cluster() -> Callable[[], RowAsker] | None:
        assert basis()
        return None if client is None else distribute_rows(agent, client, options, redaction)

    async def asker(left: Sequence[Row], say: Say) -> RowAsker:
        if not live:
            raise UsageError(_describe_unrecorded(left))
        make = find_cluster()
        return await open_here(say) if make is None else make()

    live = bool(filled_rows) and (not read_launch().why_not_live or agent.choice.is_script())
    shared = basis if live else None  # offline, the model may be unknown
    budget = Budget(agent.limits.tokens if TOKENS in agent.limited else 0, agent.limits.cost)
    job = Job(
        rows=filled_rows,
        options=options,
        budget=budget,
        start=_make_start(shared, inputs, options, len(filled_rows), describe_store(id_, store)),
        user=events.User(content=redacted, origin="user"),
        plan=_make_plan(
            _collect_facts(rows, options, redaction, "" if client is None else "dask"),
            shared,
            budget,
        ),
        asker=asker,
        read_pictures=filling.read_pictures,
        play=make_row_player(agent, redaction),
        unplayable=UNPLAYABLE if live and not is_named(store) else "",
        store=lambda warn: open_store(
            store, id_, owner=new_run_id(), title=redacted, live=live, warn=warn
        ),
    )
    check = find_cluster if live else lambda: None
    return MapPlan(rows, job, inputs, redaction, check, missing_store_name(store))


def _make_start(
    basis: Callable[[], Basis] | None,
    run_inputs: RunInputs,
    options: MapOptions,
    count: int,
    origin: Mapping[str, str],
) -> Callable[[], Mapping[str, Any]]:
    """Return a function that makes the fields of `run_start`; it may look the model up.

    `origin`: the settings that name the store.
    """
    setting = {"rows": count, **origin, **msgspec.to_builtins(options)}
    model = run_inputs.model
    unknown: Mapping[str, Any] = {"model": model, "settings": {"asked": model}}

    def start() -> Mapping[str, Any]:
        shared = basis().start if basis is not None else unknown
        inputs = {"inputs": dict(run_inputs.digests), "hash": run_inputs.digests.hash}
        settings = {**shared["settings"], **inputs, MAP: setting}
        return {**shared, "agent": "map", "settings": settings}

    return start


def _describe_unrecorded(unrecorded: Sequence[Row]) -> str:
    """Return why rows without a record cannot be asked here, where nothing runs live."""
    places = [str(row.position) for row in islice(unrecorded, NAMED)]
    more = f" and {len(unrecorded) - NAMED} more" if len(unrecorded) > NAMED else ""
    single = len(unrecorded) == 1
    subject = f"{'Row' if single else 'Rows'} {', '.join(places)}{more} {'has' if single else 'have'} no record here."
    return f"{subject} {read_launch().why_not_live}"


def _collect_facts(
    rows: Rows, options: MapOptions, redaction: Redaction, where: str
) -> Mapping[str, Any]:
    """Return the facts of a map that need no model; names of columns are redacted."""
    return {
        "rows": len(rows),
        "repeats": options.repeats,
        "columns": [redaction.value(replace_surrogates(name)) for name in rows.names[:COLUMNS]],
        "concurrency": options.concurrency,
        "rpm": options.rpm,
        "where": where,
    }


def _make_plan(
    facts: Mapping[str, Any], basis: Callable[[], Basis] | None, budget: Budget
) -> Callable[[Sequence[Row]], Mapping[str, Any]]:
    """Return a function that takes the rows left to ask and returns facts and estimate to log."""
    limits = Limits(tokens=budget.tokens, cost=budget.cost)

    def plan(left: Sequence[Row]) -> Mapping[str, Any]:
        if not (basis and left):
            return facts
        figures, rows = estimate_map(left, basis(), limits), len(left)
        budget.expect((figures.input + figures.written) / rows, (figures.cost or 0.0) / rows)
        return {**facts, "estimate": figures.payload}

    return plan
