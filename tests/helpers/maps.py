"""A map of invented rows whose answers a test gives, one by one."""

import asyncio

from agent_nb import events
from agent_nb.events.log import EventLog
from agent_nb.record.record import run_record
from agent_nb.rows.map.asking import RowAnswer
from agent_nb.rows.map.budget import Budget
from agent_nb.rows.map.driver import Job, MapDriver
from agent_nb.rows.map.options import MapOptions
from agent_nb.rows.map.results import Results
from agent_nb.rows.map.row import Row, RowResult


class Rows:
    """Answers rows when it is asked to; keeps how many were under way at once."""

    def __init__(self):
        self.open = {}
        self.most = 0
        self.asked = []
        self.closed = False

    async def ask(self, row):
        self.asked.append(row.position)
        waiting = self.open[row.position] = asyncio.get_running_loop().create_future()
        self.most = max(self.most, len(self.open))
        try:
            said = await waiting
        finally:
            del self.open[row.position]
        if isinstance(said, Exception):
            raise said
        given = {"input": 10, "cost": 0.5, "run": f"r{row.position}", "attempts": 1, **said}
        result = RowResult(position=row.position, key=row.key, **given)
        return RowAnswer(result, record(result))

    async def aclose(self):
        self.closed = True


def record(result):
    """Return the record of a row's run."""
    log = EventLog(result.run)
    log.append(events.RunStart())
    log.append(events.Respond(content=result.answer, turn=1))
    if result.error:
        log.append(events.Error(code=result.kind, message=result.error))
    log.append(events.End(status=result.status))
    return run_record(log)


OK = {"status": "ok", "answer": "yes"}
BAD = {"status": "error", "kind": "provider", "error": "no"}


class Map:
    """A map of `count` rows in progress."""

    def __init__(self, count, *, budget=None, store=None, **options):
        """`store`: what opens the store of the rows."""
        self.asker, self.log = Rows(), EventLog()
        rows = [Row(position=n, prompt=f"row {n}", key=f"k{n}") for n in range(count)]
        self.results = Results(RowResult(position=row.position, key=row.key) for row in rows)
        self.now = 0.0
        self.ticks = asyncio.Event()
        job = Job(
            rows=rows,
            options=MapOptions(**options),
            budget=budget or Budget(),
            start=dict,
            user=events.User(content="{{ text }}"),
            plan=lambda left: {"rows": count},
            open_asker=self.open,
            store=lambda warn: store() if store else None,
        )
        self.driver = MapDriver(
            job, self.log, self.results, clock=lambda: self.now, sleep=self.sleep
        )

    async def open(self, left, say):
        return self.asker

    async def sleep(self, seconds):
        await self.ticks.wait()
        self.ticks.clear()
        self.now += seconds

    async def begin(self):
        self.task = asyncio.create_task(self.driver.run())
        await settled()

    async def finish(self, place, said=OK):
        self.asker.open[place].set_result(said)
        await settled()

    async def end(self):
        """Finish what is asked until the map has ended."""
        while not self.task.done():
            while self.asker.open:
                await self.finish(next(iter(self.asker.open)))
            await asyncio.sleep(0)
        await self.task

    @property
    def statuses(self):
        return [r.status for r in self.results]


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


async def until(condition):
    """Wait for what another thread does."""
    while not condition():
        await asyncio.sleep(0.001)
