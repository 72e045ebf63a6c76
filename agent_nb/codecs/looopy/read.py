"""Read Looopy's frames: find the task of each, and its kind."""

from __future__ import annotations

from ...events import Event
from ..foreign_values import run_id, text_of
from ..framing import Item
from ..losses import Losses
from .lines import NAME, Obj
from .task import Task


class LooopyReader:
    """Any number of tasks."""

    def __init__(self, _losses: Losses) -> None:
        self._tasks: dict[tuple[str, str], Task] = {}
        self._runs: dict[str, int] = {}
        self._current: dict[str, str] = {}  # the run of each task
        self._subtasks: dict[str, str] = {}
        self._root = ""

    def read(self, item: Item) -> list[Event]:
        """Return the events of one frame or object."""
        obj = _unframed(item)
        out: list[Event] = []
        run, span = self._place(obj)
        task = self._tasks.get((run, span))
        if task is None:
            if not span:
                out += self._close_others(run)
            task = self._tasks[run, span] = Task(self._run(run, obj), span)
        if not span and obj["kind"] == "task-complete":
            out += self._close_inner(run)
        out += task.read(obj)
        if task.over:
            self._forget(run, span)
        subtask = text_of(obj, "subtaskId")
        if obj["kind"] == "subtask-created" and subtask:
            self._subtasks[subtask] = run
        return out

    def close(self) -> list[Event]:
        """Close every task, inner ones first."""
        tasks = sorted(self._tasks.items(), key=lambda entry: not entry[0][1])
        self._tasks = {}
        return [event for _, task in tasks for event in task.close()]

    def _place(self, obj: Obj) -> tuple[str, str]:
        """Return the run that the object belongs to and, for a run inside a run, its span."""
        task, parent = text_of(obj, "taskId"), text_of(obj, "parentTaskId")
        path = obj.get("path")
        if parent and obj["kind"] == "task-created":
            self._subtasks[task] = self._subtasks.get(parent, parent)
        if isinstance(path, list) and path:
            own = task if (task, "") in self._tasks or not self._root else self._root
            return self._subtasks.get(task, own), "/".join(str(p) for p in path)
        if task in self._subtasks:
            return self._subtasks[task], task
        self._root = task
        return task, ""

    def _run(self, task: str, obj: Obj) -> str:
        """Return the id of a task's current run; one that goes on after its end is another run."""
        if task not in self._current:
            count = self._runs[task] = self._runs.get(task, 0) + 1
            base = task or run_id(NAME, {k: v for k, v in obj.items() if k != "#id"}, count)
            self._current[task] = base if count == 1 or not task else f"{base}#{count}"
        return self._current[task]

    def _forget(self, run: str, span: str) -> Task:
        """Forget a task, and its run unless the task is part of another; return it."""
        if not span:
            self._current.pop(run, None)
        return self._tasks.pop((run, span))

    def _close_inner(self, run: str) -> list[Event]:
        """Close what runs inside a run that ends."""
        inner = [key for key in self._tasks if key[0] == run and key[1]]
        return [event for key in inner for event in self._forget(*key).close()]

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
