"""Reads the frames of Looopy (an agent framework): each goes to its task, which reads it.

The tasks of several runs and sub-agents share one stream, and a frame may name only its own. This
sub-agent's frame names its task, the task around it and the agents on the way:

    {"taskId": "t2", "parentTaskId": "t1", "path": ["tool:ask", "agent:scout"], "kind": …}

Rules
- A sub-agent is a task whose parent is in the stream. Events without a task id of their own belong
  to the sub-agent that their path names: a part other than `tool:NAME`, mostly `agent:NAME`.
- Its span is the id of the open call that runs it, if one does (`find_caller`).
- A late event of an ended subtask gets its span, unless it creates the task anew.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from ...events import Event, Result
from ...wire import as_dict, as_list
from ..foreign_values import run_id, text_of
from ..framing import Item
from ..losses import Losses
from ..passthrough import guard_names
from ..run_builder import UniqueIds
from .lines import NAME, Obj
from .task import Task

_REMEMBERED = 1024  # ended runs


class _Subtask(NamedTuple):
    """The run of a subtask, and the key of the task around it."""

    run: str
    parent: str


class LooopyReader:
    """Reads any number of tasks.

    A task is known by its run (the `taskId` of the outermost task) and its key in that run: "" for
    the outermost, else its own `taskId` or the agents of its path.
    """

    def __init__(self, _losses: Losses) -> None:
        self._tasks: dict[tuple[str, str], Task] = {}  # by run and key
        self._ended_subtasks: dict[tuple[str, str], Task] = {}  # of open runs, for late events
        self._run_counts: dict[str, int] = {}  # how often each run has begun
        self._ended: OrderedDict[str, None] = OrderedDict()  # the ended runs, the newest last
        self._run_ids: dict[str, str] = {}  # our id of each run that is open
        self._subtasks: dict[str, _Subtask] = {}  # by `taskId`
        self._agent_names: dict[str, str] = {}  # subtask -> its agent, from `subtask-created`
        self._spans: dict[str, UniqueIds] = {}  # of the sub-agents of each open run
        self._root = ""  # the newest outermost task

    def read(self, item: Item) -> list[Event]:
        """Return the events of one frame or object."""
        obj = _unframe(item)
        out: list[Event] = []
        task_id, agents = text_of(obj, "taskId"), _list_agents(obj)
        self._record_subtask(task_id, text_of(obj, "parentTaskId"), agents)
        run, key = self._find_task(task_id, agents)
        if not key:
            self._root = run
        task, ended = self._tasks.get((run, key)), self._ended_subtasks.get((run, key))
        if task is None and ended is not None and obj["kind"] != "task-created":  # a late event
            return [*ended.read(obj), *ended.close(caller_ended=True)]
        if task is None:
            if not key:
                out += self._close_other_tasks(run)
            task = self._tasks[run, key] = self._begin_task(run, key, obj)
            out += task.enter_agent(obj)
        # what is inside a task or a call ends before it, and closes before it is forgotten
        if obj["kind"] == "task-complete":
            out += self._close_subtasks(run, span=task.span)
        events = task.read(obj)
        for event in events:
            if isinstance(event, Result):
                out += self._close_subtasks(run, span=task.span, call=event.call_id)
        out += events
        if task.is_over:
            self._remove(run, key)
        subtask = text_of(obj, "subtaskId")
        if obj["kind"] == "subtask-created" and subtask:
            self._agent_names[subtask] = text_of(obj, "agentId")
            self._add_subtask(subtask, run, key)
        return out

    def close(self) -> list[Event]:
        """Close every task, inner ones first; a run waits for an answer if a task of it does."""
        outermost = [entry for entry in self._tasks.items() if not entry[0][1]]
        tasks = [*(entry for entry in reversed(self._tasks.items()) if entry[0][1]), *outermost]
        self._tasks = {}
        asking = {run for (run, _), task in tasks if task.asks}
        return [event for (run, _), task in tasks for event in task.close(inner_asks=run in asking)]

    def _record_subtask(self, task: str, parent: str, agents: list[str]) -> None:
        """Record a task as a subtask, if its parent or the agents in its path show that."""
        if parent != task and parent in self._subtasks:
            self._add_subtask(task, self._subtasks[parent].run, parent)
        elif parent not in ("", task) and parent in self._run_counts:  # "": a run without an id
            self._add_subtask(task, parent, "")
        # only the path shows that this task has a parent: probably the newest outermost task
        if agents and self._root:
            self._add_subtask(task, self._root, "/".join(agents[:-1]))

    def _find_task(self, task: str, agents: list[str]) -> tuple[str, str]:
        """Return the run and the key of the task with that id, or of the agents in its path."""
        if task in self._subtasks:
            return self._subtasks[task].run, task
        # no task id: the newest outermost task runs the agent, unless one without an id is open
        if agents and not task and ("", "") not in self._tasks:
            return self._root, "/".join(agents)
        return task, "/".join(agents)  # an outermost task also writes the events of its agents

    def _add_subtask(self, task: str, run: str, parent_key: str) -> None:
        """Record that `task` runs inside the task `parent_key` of `run`, unless it is known."""
        if task and task != run and task not in self._subtasks and (task, "") not in self._tasks:
            self._subtasks[task] = _Subtask(run, parent_key)

    def _begin_task(self, run: str, key: str, obj: Obj) -> Task:
        """Return the reader of a new task; a sub-agent's reader knows the call that runs it."""
        our_run = self._name_run(run, obj)
        if not key:
            return Task(our_run)
        agents = _list_agents(obj)
        parent_key = self._subtasks[key].parent if key in self._subtasks else "/".join(agents[:-1])
        parent = self._tasks.get((run, parent_key)) or self._tasks.get((run, ""))
        name = agents[-1].removeprefix("agent:") if agents else self._agent_names.get(key, "")
        name = name or text_of(as_dict(obj.get("metadata")), "agentId")
        used = {task.call for (other, _), task in self._tasks.items() if other == run}
        call = parent.tools.find_caller(name, _calling_tool(obj), used) if parent else ""
        span = self._spans.setdefault(run, UniqueIds()).take(call or key)
        span_around = parent.span if parent else ""
        return Task(our_run, span, parent=span_around, name=name or key, call=call)

    def _name_run(self, run: str, obj: Obj) -> str:
        """Return our id of a run; after its end a task may begin another run, with another id."""
        if run in self._run_ids:
            return self._run_ids[run]
        self._ended.pop(run, None)
        count = self._run_counts[run] = self._run_counts.get(run, 0) + 1
        if not run:
            our_run = run_id(NAME, {k: v for k, v in obj.items() if k != "#id"}, count)
        else:
            our_run = run if count == 1 else f"{run}#{count}"
        self._run_ids[run] = our_run
        return our_run

    def _remove(self, run: str, key: str) -> Task:
        """Forget a task, and its run unless the task is part of another; return it."""
        task = self._tasks.pop((run, key))
        if key in self._subtasks:
            self._ended_subtasks[run, key] = task
        if not key:
            self._ended_subtasks = {k: t for k, t in self._ended_subtasks.items() if k[0] != run}
            self._run_ids.pop(run, None)
            self._spans.pop(run, None)
            self._ended[run] = None
            if len(self._ended) > _REMEMBERED:
                self._forget(self._ended.popitem(last=False)[0])
        return task

    def _forget(self, run: str) -> None:
        """Forget an ended run and its subtasks."""
        del self._run_counts[run]
        for subtask in [name for name, each in self._subtasks.items() if each.run == run]:
            del self._subtasks[subtask]
            self._agent_names.pop(subtask, None)

    def _close_subtasks(self, run: str, *, span: str = "", call: str = "") -> list[Event]:
        """Close the tasks of a run inside its task `span` (or that task's `call`), inner first."""
        inside: dict[str, str] = {}  # span -> key; a task stands in `_tasks` before those inside it
        for (other, key), task in self._tasks.items():
            begins = task.parent == span and call in ("", task.call)
            if other == run and key and (begins or task.parent in inside):
                inside[task.span] = key
        keys = reversed(inside.values())
        return [event for key in keys for event in self._remove(run, key).close(caller_ended=True)]

    def _close_other_tasks(self, run: str) -> list[Event]:
        """Close other outermost tasks with a final status: a new task shows that they are over."""
        out: list[Event] = []
        for (other, key), task in list(self._tasks.items()):
            if other != run and not key and task.has_final_status:
                out += [*self._close_subtasks(other), *self._remove(other, "").close()]
        return out


def _read_path(obj: Obj) -> list[str]:
    return [str(part) for part in as_list(obj.get("path"))]


def _list_agents(obj: Obj) -> list[str]:
    """Return the parts of a path that stand for tasks of their own."""
    return [part for part in _read_path(obj) if not part.startswith("tool:")]


def _calling_tool(obj: Obj) -> str:
    """Return the tool that runs the innermost agent of a path (the part before it), or ""."""
    path = _read_path(obj)
    innermost = max((n for n, part in enumerate(path) if not part.startswith("tool:")), default=0)
    before = path[innermost - 1] if innermost else ""
    return before.removeprefix("tool:") if before.startswith("tool:") else ""


def _unframe(item: Item) -> Obj:
    """Return the object with its kind, and with marks of its frame (see `lines`)."""
    obj, kind = guard_names(item.obj), item.obj.get("kind")
    marks: Obj = {} if item.id is None else {"#id": item.id}
    if "kind" not in obj and item.event:
        return {"kind": item.event, **obj, **marks, "#event": item.event, "#bare": True}
    if item.event not in ("", "message"):
        marks["#event"] = item.event
    if isinstance(kind, str):
        return {**obj, **marks}
    marks.update({"#kind": kind} if "kind" in obj else {"#bare": True})
    return {"kind": "", **{k: v for k, v in obj.items() if k != "kind"}, **marks}
