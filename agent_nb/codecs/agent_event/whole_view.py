"""`run_view`: a server that sends the whole state of a run, a view, in each frame, not its events.

The run's reader (`run_reader`) keeps each view as a state. The additions of a view to the one
before become lines here, which the reader turns into events and marks `derived`.

Why lines: the reader of single events then serves both kinds of servers.

Rules
- A thought becomes a line only when something follows it, because it may still grow.
- The answer streams as deltas and is complete at the end of the run; a rewritten answer replaces
  the one before.
"""

from __future__ import annotations

from ...wire import as_dict, as_list
from ..foreign_values import text_of
from .lines import Obj

#: Status of a run -> the line that would end it.
_ENDS = {
    "completed": {"type": "final"},
    "failed": {"type": "error"},
    "cancelled": {"type": "cancelled"},
}


class WholeView:
    """Compares each view of one run with the one before; the reader sets `content`, its answer."""

    def __init__(self) -> None:
        self.content = ""
        # what earlier views have turned into lines, by the number of the step
        self._steps_thought = 0  # how many steps, from the first, have had their thought's line
        self._with_call: set[int] = set()  # steps whose call has had its line
        self._progress_counts: dict[int, int] = {}  # step -> number of its lines of progress
        self._with_result: set[int] = set()  # steps whose result has had its line

    def list_new_lines(self, obj: Obj) -> list[Obj]:
        """Return the lines that a server of single events would have sent since the last view."""
        steps = [s for s in as_list(obj.get("steps")) if isinstance(s, dict)]
        end = _ENDS.get(text_of(obj, "status"))
        ending = bool(end or obj.get("content"))
        out: list[Obj] = []
        for number, step in enumerate(steps):
            action = as_dict(step.get("action"))
            is_over = ending or bool(action) or "observation" in step or number + 1 < len(steps)
            if number >= self._steps_thought and is_over:
                self._steps_thought = number + 1
                thought = text_of(step, "thought")
                if thought:
                    out.append({"type": "thought", "content": thought})
            if action:
                out += self._list_call_lines(number, action, step)
        if end:
            out.append({**end, "at": obj.get("at")})
        return out

    def _list_call_lines(self, number: int, action: Obj, step: Obj) -> list[Obj]:
        """Return the new lines of the tool call in step `number`."""
        ids: Obj = {k: v for k, v in action.items() if k in ("callId", "toolName")}
        out: list[Obj] = []
        if number not in self._with_call:
            self._with_call.add(number)
            out.append({"type": "tool_call", **ids, "toolArgs": action.get("toolArgs")})
        reports = as_list(action.get("progress"))
        before = self._progress_counts.get(number, 0)
        self._progress_counts[number] = max(before, len(reports))
        out += [{"type": "tool_progress", **ids, "data": data} for data in reports[before:]]
        failed, observation = action.get("status") == "failed", step.get("observation")
        has_result = failed or action.get("status") == "completed" or observation is not None
        if has_result and number not in self._with_result:
            self._with_result.add(number)
            output = action.get("error") if failed and observation is None else observation
            kind = "tool_error" if failed else "tool_result"
            out.append({"type": kind, **ids, "output": "" if output is None else output})
        return out
