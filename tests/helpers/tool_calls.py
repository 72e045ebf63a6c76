"""Calls of tools outside an agent: a report that keeps everything, a main thread, a way to run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import anyio

from agent_nb.tools.approval import Approver
from agent_nb.tools.base import Outcome, Update
from agent_nb.tools.policy import Policy
from agent_nb.tools.runner import ToolRunner
from agent_nb.tools.running_call import Job
from agent_nb.tools.threads import catch_outcome
from agent_nb.tools.toolset import Toolset


class Record:
    """A Report that keeps what it is told, in order."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str, Any]] = []
        self.threads: set[int] = set()
        self.news = asyncio.Event()

    def _keep(self, kind: str, call_id: str, what: Any) -> None:
        self.threads.add(threading.get_ident())
        self.all.append((kind, call_id, what))
        self.news.set()

    def approval(self, call_id: str, **fields: Any) -> None:
        self._keep(fields["stage"], call_id, fields)

    def started(self, call_id: str) -> None:
        self._keep("started", call_id, None)

    def update(self, call_id: str, news: Update) -> None:
        self._keep("update", call_id, news)

    def relay(self, call_id: str, event: Any) -> None:
        self._keep("relay", call_id, event)

    def end(self, call_id: str, outcome: Outcome) -> None:
        self._keep("end", call_id, outcome)

    def of(self, kind: str, call_id: str = "") -> list[Any]:
        """What was told of `kind`, of all calls or of one."""
        return [what for k, c, what in self.all if k == kind and (not call_id or c == call_id)]

    def kinds(self, call_id: str) -> list[str]:
        return [k for k, c, _ in self.all if c == call_id]

    async def seen(self, kind: str, count: int = 1) -> None:
        """Wait until `kind` was told `count` times."""
        while len(self.of(kind)) < count:
            self.news.clear()
            await self.news.wait()


class MainThread:
    """A host whose main thread is a thread of its own."""

    def __init__(self) -> None:
        self.idents: list[int] = []
        self.cells: list[str] = []

    async def call(self, function: Callable[[], Any]) -> Any:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()

        def body() -> None:
            self.idents.append(threading.get_ident())
            caught = catch_outcome(function)
            loop.call_soon_threadsafe(lambda: done.done() or done.set_result(caught))

        threading.Thread(target=body, daemon=True).start()
        caught = await done
        if caught.error is not None:
            raise caught.error
        return caught.value

    async def run_cell(
        self, code: str, on_output: Callable[[str], None], on_picture: Any = None
    ) -> Outcome:
        self.cells.append(code)
        on_output("out\n")
        return Outcome("ok", "cell value")

    def namespace(self) -> dict[str, Any]:
        return {}


def run_calls(
    tools: Any, *calls: Any, report: Record | None = None, **options: Any
) -> tuple[list[Outcome], Record]:
    """Run `calls` ((name, args) or (name, args, fault), ids c1, c2 …) and return outcomes and
    report.
    """
    kept: list[Any] = []

    async def main() -> None:
        record = report or Record()
        toolset = tools if isinstance(tools, Toolset) else Toolset.resolve(tools)
        options.setdefault("approver", Approver(Policy("allow", name="test")))
        during = {name: options.pop(name) for name in ("remaining",) if name in options}
        jobs = [Job(f"c{i}", *c) for i, c in enumerate(calls, 1)]
        kept.append(await ToolRunner(toolset, **options).run(jobs, record, **during))
        kept.append(record)

    anyio.run(main)
    return kept[0], kept[1]
