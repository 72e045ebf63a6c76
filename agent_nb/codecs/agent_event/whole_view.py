"""`run_view`: a server that sends the whole state of a run, a view, in each frame, not its events.

    {"type": "run_view", "content": "", "steps": [{"thought": "…", "action": {"toolName": "ask"}}]}

What a view adds to the one before becomes lines here, as a server of single events would send them;
the run's reader (`run_reader`) turns these into events and marks them `derived`. A thought becomes
a line only when something follows it, because it may still grow. The answer (`content`) has no
lines: `ViewAnswer` turns it into events.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...events import Delta, Event, Respond
from ...wire import as_dict, as_list
from ..foreign_values import text_of
from .lines import Obj

#: Status of a run -> the line that would end it.
_ENDS = {
    "completed": {"type": "final"},
    "failed": {"type": "error"},
    "cancelled": {"type": "cancelled"},
}


class _StepLines(msgspec.Struct):
    """Which lines a step has had so far; `progress` is their number."""

    thought: bool = False
    call: bool = False
    progress: int = 0
    result: bool = False


class ViewAnswer:
    """The answer in the views of one run; `derive` makes events, `prefix` begins their blocks."""

    def __init__(self, derive: Callable[..., Event], prefix: str) -> None:
        self._derive = derive
        self._prefix = prefix
        self._text = ""  # in the newest view
        self._rewrites = 0  # how often a view has rewritten the answer

    def read_text(self, text: str) -> list[Event]:
        """Return what the answer in the next view adds, or the new answer if it is another one."""
        before, self._text = self._text, text
        out: list[Event] = []
        if not text.startswith(before):
            out = self._make_answer(before, incomplete=True)
            self._rewrites += 1
            before = ""
        if text != before:
            rest = text[len(before) :]
            out.append(self._derive(Delta, of="respond", block=self._block, text=rest))
        return out

    def close(self, *, incomplete: bool = False) -> list[Event]:
        """Return the answer, if there is one, and forget it."""
        text, self._text = self._text, ""
        return self._make_answer(text, incomplete=incomplete) if text else []

    def _make_answer(self, text: str, *, incomplete: bool) -> list[Event]:
        return [self._derive(Respond, content=text, block=self._block, incomplete=incomplete)]

    @property
    def _block(self) -> str:
        return f"{self._prefix}view-{self._rewrites}"


class WholeView:
    """Compares the steps and the status of each view of one run with those of the view before."""

    def __init__(self) -> None:
        self._steps: dict[int, _StepLines] = {}  # by the number of the step

    def list_new_lines(self, obj: Obj) -> list[Obj]:
        """Return the lines that a server of single events would have sent since the last view."""
        steps = [s for s in as_list(obj.get("steps")) if isinstance(s, dict)]
        end = _ENDS.get(text_of(obj, "status"))
        ending = bool(end or obj.get("content"))
        out: list[Obj] = []
        for number, step in enumerate(steps):
            earlier = self._steps.setdefault(number, _StepLines())
            action = as_dict(step.get("action"))
            is_over = ending or bool(action) or "observation" in step or number + 1 < len(steps)
            if is_over and not earlier.thought:
                earlier.thought = True
                if thought := text_of(step, "thought"):
                    out.append({"type": "thought", "content": thought})
            if action:
                out += _list_call_lines(action, step, earlier)
        if end:
            out.append({**end, "at": obj.get("at")})
        return out


def _list_call_lines(action: Obj, step: Obj, earlier: _StepLines) -> list[Obj]:
    """Return the new lines of the tool call (`action`) in a step, and note them in `earlier`."""
    ids: Obj = {k: v for k, v in action.items() if k in ("callId", "toolName")}
    out: list[Obj] = []
    if not earlier.call:
        earlier.call = True
        out.append({"type": "tool_call", **ids, "toolArgs": action.get("toolArgs")})
    reports = as_list(action.get("progress"))
    out += [{"type": "tool_progress", **ids, "data": data} for data in reports[earlier.progress :]]
    earlier.progress = max(earlier.progress, len(reports))
    failed, observation = action.get("status") == "failed", step.get("observation")
    has_result = failed or action.get("status") == "completed" or observation is not None
    if has_result and not earlier.result:
        earlier.result = True
        output = action.get("error") if failed and observation is None else observation
        kind = "tool_error" if failed else "tool_result"
        out.append({"type": kind, **ids, "output": "" if output is None else output})
    return out
