"""Fingerprints of a run's inputs: they find a recording and name the input that changed.

Why fingerprints of inputs and not of requests: our own instructions change from release to release,
and a record must survive that.

Rules
- Inputs are the prompt (with attachments), the requested model ("" if the environment chose it),
  the names of the tools, the settings that matter (system text, sampling, a requested dialect) and
  the conversation before. The JSON schema of the answer is one only where there is a schema, so
  runs without a type have the digests they always had.
- The conversation counts by its prompts, calls and answers; not by ids, times, tokens or tool
  output.
- Approval and limits do not count: they decide whether a run may happen, not what it says.
- The user's home folder does not count, so that a record matches on another machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import events
from ..events import Event
from .packing import digest_value, home_at

INPUTS = ("prompt", "model", "tools", "settings", "conversation")
OUTPUT = "output"  # the input that most runs lack


def inputs_of(
    prompt: str,
    *,
    attachments: Sequence[Mapping[str, Any]] = (),
    model: str = "",
    tools: Iterable[str] = (),
    settings: Mapping[str, Any] | None = None,
    history: Sequence[Sequence[Event]] = (),
    output: Mapping[str, Any] | None = None,
    home: str | None = None,
) -> dict[str, str]:
    """Return the digest of each input, by the names of `INPUTS`; "" for an empty input.

    prompt: as the model reads it (redacted).
    output: name and JSON schema of the answer's type; the name does not count.
    history: the earlier runs, oldest first.
    home: the folder that does not count (default: the user's).
    """
    hide = home_at(os.path.expanduser("~") if home is None else home).hide
    set_options = {k: v for k, v in (settings or {}).items() if v not in (None, "", {}, [], ())}
    values: tuple[Any, ...] = (
        _prompt(prompt, attachments, hide),
        model,
        list(tools),
        _hidden(set_options, hide),
        _turns(history, hide),
    )
    digests = {
        name: digest_value(value) if value else ""
        for name, value in zip(INPUTS, values, strict=True)
    }
    return digests | ({OUTPUT: digest_value(output["schema"])} if output else {})


def prompt_digest(
    prompt: str, attachments: Sequence[Mapping[str, Any]] = (), home: str | None = None
) -> str:
    """Return the digest of the input `prompt` alone, as `inputs_of` does."""
    hide = home_at(os.path.expanduser("~") if home is None else home).hide
    return digest_value(_prompt(prompt, attachments, hide))


def turns_of(history: Sequence[Sequence[Event]], home: str | None = None) -> list[str]:
    """Return the digest of each run of a conversation, oldest first; silent runs are skipped."""
    return [
        digest_value(turn)
        for turn in _turns(history, home_at(os.path.expanduser("~") if home is None else home).hide)
    ]


def inputs_hash(inputs: Mapping[str, str]) -> str:
    """Return one digest of all inputs."""
    more = [inputs[OUTPUT]] if inputs.get(OUTPUT) else []
    return digest_value([*(inputs.get(name, "") for name in INPUTS), *more])


def recorded_inputs(log: Iterable[Event]) -> dict[str, str] | None:
    """Return the inputs that the `run_start` of a run names, or None."""
    start = next((e for e in log if isinstance(e, events.RunStart) and not e.span), None)
    inputs = start.settings.get("inputs") if start is not None else None
    if not isinstance(inputs, Mapping):
        return None
    return {name: str(inputs.get(name, "")) for name in INPUTS} | (
        {OUTPUT: str(inputs[OUTPUT])} if inputs.get(OUTPUT) else {}
    )


def find_changed_inputs(recorded: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the inputs that differ, in the order of `INPUTS`."""
    return tuple(name for name in (*INPUTS, OUTPUT) if recorded.get(name, "") != now.get(name, ""))


def _prompt(prompt: str, attachments: Sequence[Mapping[str, Any]], hide: Any) -> list[Any]:
    pictures = ({"type": a.get("media_type"), "data": a.get("data")} for a in attachments)
    return [hide(prompt), *pictures]


def _turns(history: Sequence[Sequence[Event]], hide: Any) -> list[Any]:
    return [_hidden(messages, hide) for run in history if (messages := list(_said(run)))]


def _said(run: Sequence[Event]) -> Iterable[list[Any]]:
    for event in run:
        if event.span:
            continue
        if isinstance(event, events.User):
            yield ["user", event.content]
        elif isinstance(event, events.Respond):
            yield ["respond", event.content]
        elif isinstance(event, events.Call):
            yield ["call", event.name, event.args]


def _hidden(value: Any, hide: Any) -> Any:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {str(k): _hidden(v, hide) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(v, hide) for v in value]
    return value if isinstance(value, int | float | bool) or value is None else str(value)
