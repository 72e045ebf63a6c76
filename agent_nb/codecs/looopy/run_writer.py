"""Writes one run as Looopy's events (seed 004).

A run of ours begins with `task-created` and the statuses `submitted` and `working`. Each turn's
text is streamed and then repeated whole (`content-complete`, before the turn's tool calls). The run
ends with `task-complete`, or with a status such as `failed` or `canceled`.

Rule: the `path` of a sub-agent's event has one `agent:name` for each level.
"""

from __future__ import annotations

from typing import ClassVar

from ... import events
from ...events import Event, read_repetition
from ..losses import Losses
from ..provenance import note_of
from ..run_builder import EventHandlers
from ..times import format_iso
from ..value_losses import LastError, count_answer_loss, count_result_losses, count_step_losses
from ..writing import LiveBlocks, split_block
from .imported import ImportedEvents
from .lines import DRAW, NAME, Obj, draw_complete, draw_delta, plain_prompt, strip_envelope

_TWO_STATUSES = "only success and failure are distinguished"
_NO_NESTED = "of a sub-agent's run only the start is written, as a subtask"
# kinds of events that do not end a text of the model
_WITHIN_TEXT = frozenset({events.Delta, events.Respond, events.Think, events.Metric, events.Error})


class RunWriter:
    """Writes the events of one run."""

    def __init__(self, losses: Losses, run: str, conversation: str) -> None:
        self._losses = losses
        self._task_ids: Obj = {"contextId": conversation or run, "taskId": run}
        self._live = LiveBlocks()
        # the run's own text since the last `content-complete`, which will repeat it, unless the
        # newest block of that text is open or incomplete
        self._text, self._is_cut_off = "", False
        self._imported = ImportedEvents(self._live)
        self._answer = events.Answer()
        self._next_index: dict[str, int] = {}  # span -> index of its next delta
        self._thought_count = 0
        self._newest: Event = events.User()  # deltas aside; `content-complete` takes its envelope
        self._calls: dict[str, events.Call] = {}  # the open calls, by id
        self._agent_names: dict[str, str] = {}  # span -> name of the sub-agent
        self._last_error = LastError(losses, "only the error that ends a task is written")
        self._last_interrupt: events.Interrupt | None = None

    def write(self, event: Event) -> list[Obj]:
        """Return the objects of one event, envelope included."""
        self._answer.add(event)
        note = note_of(event, NAME)
        if note is not None:
            return self._imported.write(event, note)
        out: list[Obj] = []
        # of a sub-agent's events only nodes end the text
        if type(event) not in _WITHIN_TEXT and (not event.span or isinstance(event, events.Node)):
            out += self._complete_text(event)
        out += [self._wrap(obj, event) for obj in self._draw(event)]
        if type(event) is not events.Delta:
            self._newest = event
        return out

    def close(self) -> list[Obj]:
        """Return the `content-complete` of text that lacks it; an error without an end is lost."""
        self._last_error.count_as_lost()
        return self._complete_text(self._newest)

    def _draw(self, event: Event) -> list[Obj]:
        """Return the objects of one event, without their envelope."""
        if event.span and isinstance(event, events.RunStart | events.User | events.End):
            self._losses.add(f"nested {event.type}", _NO_NESTED)
            return []
        handler = self.HANDLERS.get(type(event))
        return handler(self, event) if handler else []

    def _wrap(self, obj: Obj, event: Event) -> Obj:
        """Return an object of `event` with its envelope."""
        agents = self._list_agents(event)
        path = {"path": agents} if agents else {}
        time = {"timestamp": format_iso(event.ts)} if event.ts else {}
        return {"kind": obj["kind"], **self._task_ids, **path, **obj, **time, "#own": True}

    def _list_agents(self, event: Event) -> list[str]:
        """Return the `path` of an event: one part for each sub-agent around it."""
        parts = event.span.split("/") if event.span else []
        spans = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        names = [self._agent_names.get(span) for span in spans]
        return [f"agent:{name}" for name in names if name]

    def _complete_text(self, event: Event) -> list[Obj]:
        """Return the `content-complete` of the text before `event`; nothing if it was cut off."""
        text, self._text = self._text, ""
        if not text or self._is_cut_off:
            return []
        self._next_index.pop("", None)
        reason = "tool_calls" if isinstance(event, events.Call) else "stop"
        return [self._wrap({**draw_complete(text), "finishReason": reason}, self._newest)]

    def _start_run(self, event: events.RunStart) -> list[Obj]:
        statuses = [{"state": "submitted"}, {"state": "working"}]
        kind = {"kind": "task-status"}
        return [DRAW[events.RunStart](event), *({**kind, "status": s} for s in statuses)]

    def _delta(self, event: events.Delta) -> list[Obj]:
        if event.of != "respond":
            return []
        self._live.add_delta(event)
        if not event.span:
            self._is_cut_off = True
        return [self._write_piece(event.text, event.span)]

    def _write_piece(self, text: str, span: str) -> Obj:
        """Return the numbered delta of a piece of text; `span`: of the sub-agent, "" for none."""
        if not span:
            self._text += text
        index = self._next_index.get(span, 0)
        self._next_index[span] = index + 1
        return {**draw_delta(text), "index": index}

    def _respond(self, event: events.Respond) -> list[Obj]:
        """Write a text, unless its deltas have been written."""
        if not event.span:
            self._is_cut_off = event.incomplete
        if read_repetition(event) == "instead" and not event.span:
            self._text = event.content
            return []
        if self._live.end_block(event):
            return []
        return [self._write_piece(text, event.span) for text, _ in split_block(event)]

    def _think(self, event: events.Think) -> list[Obj]:
        index = self._thought_count
        self._thought_count += 1
        thought_id = event.block or f"thought-{self._thought_count}"
        return [{**DRAW[events.Think](event), "thoughtId": thought_id, "index": index}]

    def _call(self, event: events.Call) -> list[Obj]:
        self._calls[event.call_id] = event
        return [DRAW[events.Call](event)]

    def _about_call(
        self, event: events.Started | events.Progress | events.Approval | events.Result
    ) -> list[Obj]:
        """Write an event about a call, with the fields of its `Call` that the event lacks."""
        call = self._calls.get(event.call_id)
        obj = DRAW[type(event)](event)
        if isinstance(event, events.Started):
            obj["arguments"] = call.args if call else {}
        if isinstance(event, events.Progress):
            return [self._complete_progress(event, obj)]
        if isinstance(event, events.Approval):
            return self._complete_question(event, obj, call)
        if isinstance(event, events.Result):
            self._calls.pop(event.call_id, None)
            name = "" if event.status == "ok" else "an error"
            count_result_losses(self._losses, event, why=_TWO_STATUSES, content_name=name)
        return [obj]

    def _complete_progress(self, event: events.Progress, obj: Obj) -> Obj:
        if event.data is not None and not isinstance(event.data, dict):
            self._losses.add("progress.data", "only an object has a place (metadata)")
        if not event.text:
            return obj
        self._losses.add("progress.text", "output becomes the message of the progress")
        if event.message:
            self._losses.add("progress.message", "the output takes its place")
        return {**obj, "message": event.text}

    def _complete_question(
        self, event: events.Approval, obj: Obj, call: events.Call | None
    ) -> list[Obj]:
        if event.stage != "requested":
            count_answer_loss(self._losses, event, "an event")
            return []
        name = call.name if call else ""
        ids = {"kind": obj["kind"], "inputId": event.call_id, "toolName": name}
        return [{**ids, "inputType": "confirmation", "prompt": plain_prompt(name), **obj}]

    def _metric(self, event: events.Metric) -> list[Obj]:
        count_step_losses(self._losses, event, all_tokens=True)
        return [DRAW[events.Metric](event)]

    def _state(self, event: events.State) -> list[Obj]:
        payload = event.payload
        has_fields = isinstance(payload, dict) and strip_envelope(payload) == payload
        if event.kind in ("status", "checkpoint") and has_fields:
            return [DRAW[events.State](event)]
        self._losses.add("state", "only task statuses and checkpoints have events")
        return []

    def _node(self, event: events.Node) -> list[Obj]:
        """Write a model request, or the start of a sub-agent."""
        if event.phase == "exit":
            return []
        if event.name == "llm":
            count = (event.data or {}).get("messages", 0)
            return [{"kind": "internal:llm-call", "iteration": event.turn, "messageCount": count}]
        self._agent_names[event.span] = event.name
        call = self._calls.get(event.span)
        prompt = call.args.get("prompt") if call else None
        prompt_text = prompt if isinstance(prompt, str) else ""
        ids = {"subtaskId": event.span, "agentId": event.name}
        return [{"kind": "subtask-created", **ids, "prompt": prompt_text}]

    def _extension(self, event: events.Extension) -> list[Obj]:
        return [DRAW[events.Extension](event)] if event.namespace == NAME else []

    def _interrupt(self, event: events.Interrupt) -> list[Obj]:
        self._last_interrupt = event
        return []

    def _end(self, event: events.End) -> list[Obj]:
        if event.status != "error":
            self._last_error.count_as_lost()
        if event.status == "ok":
            return [{**DRAW[events.End](event), "content": self._answer.text}]
        if event.finish_reason:
            self._losses.add("end.finish_reason", "a status says how the task ended")
        return [{"kind": "task-status", **self._final_status(event)}]

    def _final_status(self, event: events.End) -> Obj:
        """Return the status that ends a task which did not complete."""
        if event.status == "error":
            error = self._last_error.take_last()
            message = error.message if error is not None else event.finish_reason
            return {"status": {"state": "failed", "error": message}}
        if event.status == "awaiting":
            return {"status": {"state": "waiting-input"}}
        default = events.Interrupt(reason="limit" if event.status == "limit" else "user")
        interrupt = self._last_interrupt or default
        detail = {"message": interrupt.detail} if interrupt.detail else {}
        metadata = {"metadata": {"reason": interrupt.reason}} if interrupt.reason != "user" else {}
        return {"status": {"state": "canceled", **detail}, **metadata}

    #: Kind of event -> the method that writes it; events of other kinds are not written.
    HANDLERS: ClassVar[EventHandlers] = {
        events.RunStart: _start_run,
        events.User: lambda _, message: [DRAW[events.User](message)],
        events.Delta: _delta,
        events.Respond: _respond,
        events.Think: _think,
        events.Call: _call,
        events.Started: _about_call,
        events.Progress: _about_call,
        events.Approval: _about_call,
        events.Result: _about_call,
        events.Metric: _metric,
        events.State: _state,
        events.Node: _node,
        events.Extension: _extension,
        events.Error: lambda self, event: self._last_error.add(event),
        events.Interrupt: _interrupt,
        events.End: _end,
    }
