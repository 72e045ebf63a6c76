"""Digests of a run's inputs: they find a record and name the input that changed.

Why digests of inputs and not of requests: a request contains our own instructions, which change
from release to release, and a record must survive that.

Rules
- Of the earlier runs, the texts of prompts, calls and answers count; pictures, ids, times, tool
  output and sub-agents do not.
- Approval and limits do not count: they decide whether a run may happen, not what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .. import events
from ..events import Event
from ..wire import as_list
from .packing import digest_value, home_at
from .record import Record, events_of

INPUTS = ("prompt", "model", "tools", "settings", "conversation")
OUTPUT = "output"  # the type of the answer, an input that most runs lack

Hide = Callable[[str], str]  # replaces the home folder in a text


class Digests(dict[str, str]):
    """The digest of each input of a run, by the names of `INPUTS` and `OUTPUT`; "": empty input."""

    @classmethod
    def of_inputs(
        cls,
        prompt: str,
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
        model: str = "",
        tools: Iterable[str] = (),
        settings: Mapping[str, Any] | None = None,
        history: Sequence[Sequence[Event]] = (),
        output: Mapping[str, Any] | None = None,
        home: str | None = None,
    ) -> Digests:
        """Digest the inputs of a run.

        prompt: as the model reads it (redacted).
        attachments: those of the prompt; only their media types and data count.
        output: name and JSON schema of the answer's type; the name does not count.
        history: the earlier runs, oldest first.
        home: the folder that does not count (default: the user's).
        """
        hide = home_at(home).hide
        set_options = {k: v for k, v in (settings or {}).items() if v not in (None, "", {}, [], ())}
        values = {
            "prompt": _describe_prompt(prompt, attachments, hide),
            "model": model,
            "tools": list(tools),
            "settings": _without_home(set_options, hide),
            "conversation": _describe_turns(history, hide),
        }
        digests = {name: digest_value(value) if value else "" for name, value in values.items()}
        return cls(digests | ({OUTPUT: digest_value(output["schema"])} if output else {}))

    @classmethod
    def read_log(cls, log: Iterable[Event]) -> Digests | None:
        """Return the digests that the `run_start` of a run names, or None."""
        inputs = events.RunStart.first_in(log).settings.get("inputs")
        if not isinstance(inputs, Mapping):
            return None
        output = {OUTPUT: str(inputs[OUTPUT])} if inputs.get(OUTPUT) else {}
        return cls({name: str(inputs.get(name, "")) for name in INPUTS} | output)

    @classmethod
    def read_record(cls, record: Record) -> Digests | None:
        """Return the digests that a record names, or None; only its first event is unpacked."""
        return cls.read_log(events_of({**record, "events": as_list(record.get("events"))[:1]}))

    def with_prompt(self, prompt: str, attachments: Sequence[Mapping[str, Any]] = ()) -> Digests:
        """Return the digests of the same run with another prompt (redacted)."""
        digest = digest_value(_describe_prompt(prompt, attachments, home_at(None).hide))
        return Digests({**self, "prompt": digest})

    @property
    def hash(self) -> str:
        """One digest of all inputs."""
        output = [self[OUTPUT]] if self.get(OUTPUT) else []
        return digest_value([*(self.get(name, "") for name in INPUTS), *output])

    def list_changes(self, recorded: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names of the inputs whose recorded digest differs, in fixed order."""
        names = (*INPUTS, OUTPUT)
        return tuple(name for name in names if recorded.get(name, "") != self.get(name, ""))


def digest_turns(history: Sequence[Sequence[Event]], home: str | None = None) -> list[str]:
    """Return the digests of the runs that have messages, oldest first."""
    return [digest_value(turn) for turn in _describe_turns(history, home_at(home).hide)]


def _describe_prompt(
    prompt: str, attachments: Sequence[Mapping[str, Any]], hide: Hide
) -> list[Any]:
    pictures = ({"type": a.get("media_type"), "data": a.get("data")} for a in attachments)
    return [hide(prompt), *pictures]


def _describe_turns(history: Sequence[Sequence[Event]], hide: Hide) -> list[Any]:
    return [
        _without_home(messages, hide) for run in history if (messages := list(_list_messages(run)))
    ]


def _list_messages(run: Sequence[Event]) -> Iterator[list[Any]]:
    """Yield the prompts, answers and calls of the run itself, without what its sub-agents did."""
    for event in run:
        if event.span:
            continue
        if isinstance(event, events.User):
            yield ["user", event.content]
        elif isinstance(event, events.Respond):
            yield ["respond", event.content]
        elif isinstance(event, events.Call):
            yield ["call", event.name, event.args]


def _without_home(value: Any, hide: Hide) -> Any:
    """Return a JSON value without the home folder; other values become text."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {hide(str(k)): _without_home(v, hide) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_home(v, hide) for v in value]
    return value if isinstance(value, int | float | bool) or value is None else str(value)
