"""Read Looopy's frames: find the task of each, and its kind.

Rules
- `tool:name` in a path is where an event comes from, no task of its own; `agent:name` is.
- A sub-agent is a task whose parent is in the stream, or what has an `agent:` in its path. It
  belongs into the open call that runs it (`ToolEvents.caller`), whose id is then its span.
- A call that ends, ends the sub-agents in it.
"""

from __future__ import annotations

from ...events import Event, Result
from ..foreign_values import object_of, run_id, text_of
from ..framing import Item
from ..losses import Losses
from ..run_builder import Spans
from .lines import NAME, Obj
from .task import Task


class LooopyReader:
    """Any number of tasks."""

    def __init__(self, _losses: Losses) -> None:
        self._tasks: dict[tuple[str, str], Task] = {}
        self._runs: dict[str, int] = {}
        self._current: dict[str, str] = {}  # the run of each task
        self._homes: dict[str, tuple[str, str]] = {}  # run and parent of each sub-agent's task
        self._names: dict[str, str] = {}  # agents of announced subtasks
        self._spans: dict[str, Spans] = {}
        self._root = ""

    def read(self, item: Item) -> list[Event]:
        """Return the events of one frame or object."""
        obj = _unframed(item)
        out: list[Event] = []
        run, key = self._place(obj)
        task = self._tasks.get((run, key))
        if task is None:
            if not key:
                out += self._close_others(run)
            task = self._tasks[run, key] = self._begin(run, key, obj)
            out += task.enter(obj)
        if not key and obj["kind"] == "task-complete":
            out += self._close_inner(run)
        events = task.read(obj)
        for event in events:
            if isinstance(event, Result):
                out += self._close_inner(run, event.call_id)
        out += events
        if task.over:
            self._forget(run, key)
        subtask = text_of(obj, "subtaskId")
        if obj["kind"] == "subtask-created" and subtask:
            self._names[subtask] = text_of(obj, "agentId")
            self._adopt(subtask, run, key)
        return out

    def close(self) -> list[Event]:
        """Close every task, inner ones first. A task waits for what one inside it waits for."""
        tasks = sorted(self._tasks.items(), key=lambda entry: not entry[0][1])
        self._tasks = {}
        waiting = {run for (run, _), task in tasks if task.asks}
        return [event for (run, _), task in tasks for event in task.close(waits=run in waiting)]

    def _place(self, obj: Obj) -> tuple[str, str]:
        """Return the run that the object belongs to and the key of a task inside it."""
        task, parent, agents = text_of(obj, "taskId"), text_of(obj, "parentTaskId"), _agents(obj)
        if parent != task and (parent in self._homes or parent in self._runs):
            self._adopt(task, *self._home(parent))
        outer = "/".join(agents[:-1])
        if agents and task not in self._homes:
            run = task if (task, "") in self._tasks or not self._root else self._root
            if run == task or not task:
                return run, "/".join(agents)
            self._adopt(task, run, outer)
        if task in self._homes:
            return self._homes[task][0], task
        self._root = task
        return task, ""

    def _home(self, task: str) -> tuple[str, str]:
        """Return the run and key of a task."""
        return (self._homes[task][0], task) if task in self._homes else (task, "")

    def _adopt(self, task: str, run: str, parent: str) -> None:
        """Note that a task runs inside another, unless it is known."""
        if task and task != run and task not in self._homes and (task, "") not in self._tasks:
            self._homes[task] = (run, parent)

    def _begin(self, run: str, key: str, obj: Obj) -> Task:
        """Return a new task; one inside another belongs to the open call that runs its agent."""
        run_id = self._run(run, obj)
        if not key:
            return Task(run_id)
        agents = _agents(obj)
        above = self._homes[key][1] if key in self._homes else "/".join(agents[:-1])
        parent = self._tasks.get((run, above)) or self._tasks.get((run, ""))
        name = agents[-1].removeprefix("agent:") if agents else self._names.get(key, "")
        name = name or text_of(object_of(obj.get("metadata")), "agentId")
        used = {task.call for (other, _), task in self._tasks.items() if other == run}
        call = parent.caller(name, _tool(obj), used) if parent else ""
        span = self._spans.setdefault(run, Spans()).take(call or key)
        return Task(run_id, span, parent=parent.span if parent else "", name=name or key, call=call)

    def _run(self, task: str, obj: Obj) -> str:
        """Return the id of a task's current run; one that goes on after its end is another run."""
        if task not in self._current:
            count = self._runs[task] = self._runs.get(task, 0) + 1
            base = task or run_id(NAME, {k: v for k, v in obj.items() if k != "#id"}, count)
            self._current[task] = base if count == 1 or not task else f"{base}#{count}"
        return self._current[task]

    def _forget(self, run: str, key: str) -> Task:
        """Forget a task, and its run unless the task is part of another; return it."""
        if not key:
            self._current.pop(run, None)
            self._spans.pop(run, None)
        return self._tasks.pop((run, key))

    def _close_inner(self, run: str, call: str = "") -> list[Event]:
        """Close what runs inside a run, or a call of it, that ends."""
        inner = [
            key
            for key, task in self._tasks.items()
            if key[0] == run and key[1] and (not call or task.call == call)
        ]
        return [event for key in inner for event in self._forget(*key).close(whole=True)]

    def _close_others(self, run: str) -> list[Event]:
        """Close the tasks whose status says how they ended: another task begins."""
        out: list[Event] = []
        for key in [
            k
            for k, task in self._tasks.items()
            if k[0] != run and not k[1] and task.waiting_for_end
        ]:
            out += [*self._close_inner(key[0]), *self._forget(*key).close()]
        return out


def _path(obj: Obj) -> list[str]:
    path = obj.get("path")
    return [str(part) for part in path] if isinstance(path, list) else []


def _agents(obj: Obj) -> list[str]:
    """Return the parts of a path that are tasks of their own."""
    return [part for part in _path(obj) if not part.startswith("tool:")]


def _tool(obj: Obj) -> str:
    """Return the tool of the path that the innermost agent runs in."""
    path = _path(obj)
    inner = max((n for n, part in enumerate(path) if not part.startswith("tool:")), default=0)
    outer = path[inner - 1] if inner else ""
    return outer.removeprefix("tool:") if outer.startswith("tool:") else ""


def _unframed(item: Item) -> Obj:
    """Return the object with its kind in it, and notes of its frame."""
    obj, kind = item.obj, item.obj.get("kind")
    notes: Obj = {} if item.id is None else {"#id": item.id}
    if "kind" not in obj and item.event:
        return {"kind": item.event, **obj, **notes, "#event": item.event, "#bare": True}
    if item.event not in ("", "message"):
        notes["#event"] = item.event
    if isinstance(kind, str):
        return {**obj, **notes}
    notes.update({"#kind": kind} if "kind" in obj else {"#bare": True})
    return {"kind": "", **{k: v for k, v in obj.items() if k != "kind"}, **notes}
