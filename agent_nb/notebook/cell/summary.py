"""The numbers of a run, for the metadata of its output: a JSON object of a few hundred bytes.

Why: readers of a notebook need the numbers even where the record is elsewhere or missing. If the
run recorded nothing, the field `record` (added by `ending`) names the former record in the output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ... import events as ev
from ...agent import Played, Run
from ...events import Interrupt, is_map
from ...models import collect_secrets
from ...wire import as_dict, redact_value
from ..notices import print_warning

VERSION = 1  # of the numbers
LONGEST_TEXT = 2000  # characters of a text in the numbers of a replay or a drift
MOST_ITEMS = 50  # items of a list there
_RARE = frozenset({"rows", "denied", "cost", "error", "limit"})  # numbers that most runs lack


def summarize_run(run: Run, *, recorded: bool = True) -> dict[str, Any]:
    """Return id, status, model, turns, calls, tokens (in, out), cost and seconds of a run.

    Rows (answered, all), denied calls, the cost in US dollars, the error and the limit that ended
    the run are included if there are any. Calls of sub-agents do not count. `recorded`: the run has
    a record in the output.
    """
    denied = sum(isinstance(e, ev.Result) and not e.span and e.status == "denied" for e in run.log)
    start = next((e for e in run.log if isinstance(e, ev.RunStart)), ev.RunStart())
    limit = Interrupt.limit_in(run.reason) if run.status == "limit" else ""
    rows = _find_newest_state(run, "map") if is_map(run.log) else {}
    numbers: dict[str, Any] = {
        "version": VERSION,
        "run": run.id,
        "recorded": recorded,
        "status": run.status,
        # a fallback model that took over is in a State
        "model": str(_find_newest_state(run, "model").get("model") or start.model),
        "turns": max((e.turn for e in run.log), default=0),
        "calls": sum(isinstance(e, ev.Result) and not e.span for e in run.log),
        "rows": [n for n in (rows.get("ok"), rows.get("total")) if type(n) is int],
        "denied": denied,
        "tokens": [run.usage.input, run.usage.output],
        "cost": run.usage.cost,
        "seconds": round(run.log[-1].ts - run.log[0].ts, 1) if len(run.log) else 0.0,
        "error": run.error,
        "limit": limit[:100],
    }
    # every output holds these numbers, so values that most runs lack are left out
    return {name: number for name, number in numbers.items() if number or name not in _RARE}


def _find_newest_state(run: Run, kind: str) -> dict[str, Any]:
    """Return the payload of the last State of this kind in a run, {} if it has none."""
    for event in reversed(list(run.log)):
        if isinstance(event, ev.State) and event.kind == kind and not event.span:
            return as_dict(event.payload)
    return {}


def summarize_replay(played: Played) -> dict[str, Any]:
    """Return the further numbers of a replay, without secrets; print a drift to stderr."""
    numbers: dict[str, Any] = {"replayed": True}
    if played.drift is not None:
        print_warning(f"the replay drifted: {played.drift}")
        numbers["drift"] = msgspec.to_builtins(played.drift)
    if played.checked is not None:
        checked = msgspec.to_builtins(played.checked)
        numbers |= {name: listed for name, listed in checked.items() if listed}
    # most replays have no text to redact, and collecting the secrets costs more than all else here
    without_text = all(isinstance(value, int) for value in numbers.values())
    return numbers if without_text else dict(_redact_and_cut(numbers, collect_secrets()))


def _redact_and_cut(value: Any, secrets: Mapping[str, str]) -> Any:
    """Return a JSON value without `secrets`, with texts and lists cut to size."""
    if isinstance(value, dict):
        return {k: _redact_and_cut(v, secrets) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_redact_and_cut(v, secrets) for v in value[:MOST_ITEMS]]
    return redact_value(value, secrets=secrets)[:LONGEST_TEXT] if isinstance(value, str) else value
