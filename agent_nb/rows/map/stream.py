"""A map in progress: await it for the frame, iterate it for the rows as they finish.

A map is a `Stream`, so that cells, cards, the journal, the hub and Stop treat it like a run. Its
results come from the driver, or, if a record is played, from the record and the store.

Rule: a map goes on when a loop over it ends early. It is stopped by `cancel`, `stop` and `aclose`,
and by an interrupt of the cell that awaits it or loops over it.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ...agent import Checked, Configuration, OutputType, Played, Player, RunRequest, Stream
from ...errors import AgentStopped
from ...events import Event, EventLog
from ...record import InnerRecords, Record
from ...view import count_noun
from ..recorded_runs import Runs
from .driver import MapDriver
from .finish import FinalState
from .known_rows.map_player import MapPlayer, make_map_player
from .known_rows.recorded import count_unanswered_rows, read_earlier_rows, read_recorded_results
from .known_rows.row_runs import RowRuns
from .known_rows.stored import FoundRow, Store, find_stored_rows
from .options import MapOptions
from .planning import MapPlan, plan_map
from .results import Results
from .row import Row, RowResult
from .row_result import finish_row
from .table.frame_out import frame_out

if TYPE_CHECKING:
    from ...agent import RecordedTurns, ReplayStrictness
    from ...record import RunInputs
    from ..store.row_store import RowStore

#: Computes the final state of a map whose rows have all ended.
Finish = Callable[["MapStream"], Awaitable[FinalState]]

UNKEPT = (
    "The runs of the rows are kept nowhere: a map of this size needs a store for them (store=…)."
)


class MapStream(Stream):
    """One map. `results` holds the results by position and repeat. `absent`: see `MapPlan`.

    `record`: a notebook may record the map or play its record. `finish` computes the `FinalState`.
    """

    is_map = True

    def __init__(
        self,
        plan: MapPlan,
        agent: Configuration,
        *,
        view: str | None = "auto",
        check: bool = True,
        record: bool = True,
        finish: Finish | None = None,
    ) -> None:
        rows, log = plan.job.rows, EventLog()
        self.results = Results(row.result() for row in rows)
        self._make_map_player = partial(
            make_map_player, agent=agent, log=log, redaction=plan.redaction, rows=rows
        )
        request = RunRequest(
            plan.job.user, plan.inputs, agent.tools, agent.choice.is_script, self._make_map_player
        )
        self._make_map_driver: Callable[[Any], MapDriver] = lambda _: MapDriver(
            self._job, log, self.results, finish=self._finish
        )
        super().__init__(
            log,
            self._make_map_driver,
            view=view,
            check=check,
            request=request if record else None,
            output=agent.output,
            make_redaction=agent.redaction,
        )
        self.absent = plan.absent
        self._plan = plan
        self._job = plan.job
        self._output = agent.output
        self._finish = None if finish is None else partial(finish, self)

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the end and return the frame."""
        return self._wait().__await__()

    def __repr__(self) -> str:
        done = f"{self.results.done:,} of {count_noun(len(self.results), 'row')} done"
        state = "not started; await it" if self._task is None else self.run.status
        return f"<Map {self.log.run}: {state}, {done}>"

    @property
    def given(self) -> RunInputs:
        """The inputs of the map, by which its record is found."""
        return self._plan.inputs

    def ready(self) -> MapStream:
        """Return the map. Raises UsageError if it cannot be asked, before anything is sent."""
        self._plan.check()
        return self

    def play(self, tape: RecordedTurns, wish: ReplayStrictness | None) -> None:
        """Play a recorded map, `tape`, instead of this one, which has not begun.

        `wish`: how strictly a test compares (None: the final state is not compared).
        """
        self.log.run = tape.run
        make = self._make_map_player(tape, wish)
        self._make_driver = make
        if self._finish is not None and wish is not None:
            check = partial(self._check_final_state, self._finish, tape.events)
            self._make_driver = lambda scope: MapPlayer(make(scope), check=check)

    async def _check_final_state(
        self, finish: Callable[[], Awaitable[FinalState]], recorded: Sequence[Event]
    ) -> Checked:
        """Compute the final state from the recorded rows; compare it with the recorded one."""
        self._put_recorded(recorded)
        return (await finish()).check(recorded)

    def take_earlier_rows(
        self, logs: Iterable[Sequence[Event]], trust: bool | frozenset[str] = False
    ) -> None:
        """Use the rows in the logs of earlier maps, best log first, instead of asking them.

        Call it before the map begins. `trust`: which records of others in the store count (True:
        all; else those with these hashes).
        """
        self._job = msgspec.structs.replace(self._job, known=read_earlier_rows(logs), trust=trust)

    def forget(self) -> None:
        """Remove the rows from the store before the map begins, so that all are asked anew."""
        with self._open_store() as store:
            if store is not None:
                store.forget({each.result.run for each in find_stored_rows(store, self._job.rows)})

    def find_lost_rows(self, log: Sequence[Event]) -> list[Row]:
        """Return the rows that a recorded map had, and whose store has lost them.

        None are lost if the record holds rows; a large map leaves them to its store.
        """
        if InnerRecords.of_log(log):
            return []
        lost = self.find_unrecorded_rows([log])
        # rows that the recorded map never finished were in no store
        return lost if len(lost) > count_unanswered_rows(log) else []

    def find_unrecorded_rows(self, logs: Iterable[Sequence[Event]]) -> list[Row]:
        """Return the rows that neither the logs of earlier maps nor the store have."""
        logged_rows = read_earlier_rows(logs)
        unlogged = [row for row in self._job.rows if row.key not in logged_rows]
        stored_keys = {each.row.key for each in self._find_stored(unlogged)}
        return [row for row in unlogged if row.key not in stored_keys]

    def _find_stored(self, rows: Sequence[Row]) -> list[FoundRow]:
        """Return the stored rows that go with a played record; strangers' rows count here."""
        with self._open_store() as store:
            return [] if store is None else list(find_stored_rows(store, rows, live=False))

    @contextmanager
    def _open_store(self) -> Iterator[RowStore | None]:
        store = self._job.store(lambda _: None)
        try:
            yield store
        finally:
            if store is not None:
                store.close()

    @property
    def rows(self) -> Sequence[Row]:
        """The rows as they are asked, with their prompts, in the order of `results`."""
        return self._plan.job.rows

    def pictures(self, row: Row) -> Sequence[Mapping[str, Any]]:
        """Return the pictures of a row; read them again if the map has too many to keep."""
        return self._plan.job.read_pictures(row).attachments

    @property
    def runs(self) -> Runs:
        """The runs of the finished rows, in order; each is read when it is used.

        If neither the log nor a store holds the runs, `problems` of the result says so.
        """
        finished_keys = [result.key for result in self.results if result.run]
        logged = InnerRecords.of_log(self.log)
        if logged or not finished_keys:
            keys = [key for key in finished_keys if key in logged]
            return Runs(RowRuns(keys, lambda some: logged, self._output))
        with self._open_store() as store:
            if store is None:
                return Runs(problems=[UNKEPT])
        return Runs(RowRuns(finished_keys, self._read_records, self._output))

    def _read_records(self, keys: Sequence[str]) -> dict[str, Record]:
        with self._open_store() as store:
            rows = {} if store is None else store.find(keys)
            return {key: each.record for key, each in rows.items()}

    @property
    def frame(self) -> Any:
        """The frame of the results so far: the same kind as the data, in its order."""
        reason = self.run.reason if self.log.ended else ""
        return frame_out(self._plan.data, self.results, self._output, why=reason)

    def _finish_unbegun(self) -> None:
        if self._make_driver is self._make_map_driver:  # else it was refused, or is played
            with suppress(Exception):  # the log ends all the same
                self._make_map_driver(None).end_unbegun()
        super()._finish_unbegun()

    def _complete_log(self) -> None:
        try:
            super()._complete_log()
        finally:  # a record that was played, or a map that was refused, gave no results yet
            is_replay = isinstance(self._driver, Player | MapPlayer)
            self._put_recorded(self.log, from_store=is_replay)
            self.results.close()

    def _put_recorded(self, log: Sequence[Event], *, from_store: bool = True) -> None:
        """Add the results of the rows in a log; `from_store`: also of those in the store alone."""
        rows = self._job.rows
        for index, result in read_recorded_results(log, rows):
            self.results.put(index, result)
        if from_store:
            index_of = {row.key: n for n, row in enumerate(rows) if not self.results[n].run}
            for each in self._find_stored([rows[n] for n in index_of.values()]):
                self.results.put(index_of[each.row.key], each.result)

    @property
    def played(self) -> Played:
        """The outcome so far of a recorded map that is played."""
        driver = self._driver
        return driver.played if isinstance(driver, MapPlayer) else super().played

    async def _wait(self) -> Any:
        __tracebackhide__ = True
        await super()._wait()
        return self.frame

    async def __aiter__(self) -> AsyncIterator[Any]:
        """Yield each row as it finishes, after those that have finished already.

        Raises RunFailed and AgentStopped as awaiting does.
        """
        __tracebackhide__ = True
        self.start()
        finished = self.results.finished()
        while (result := await self._await_result(finished)) is not None:
            yield finish_row(result, self._output, self._plan.data.values(result.position))
        assert self._task is not None
        await asyncio.wait([self._task])
        if self._stopped_elsewhere:
            raise AgentStopped(self._stopped_elsewhere, self.run)
        if self._check:
            self.run.raise_for_status()

    async def _await_result(self, finished: AsyncIterator[RowResult]) -> RowResult | None:
        """Return the next result, None after the last. A cancellation while waiting stops the map.

        Raises AgentStopped if an interrupt of the cell caused it.
        """
        __tracebackhide__ = True
        screen = self._find_screen(None)
        waiting = asyncio.ensure_future(self._next_result(finished))
        try:
            await self._wait_for_task(waiting, screen, self._stop_by_cell)
        finally:
            waiting.cancel()
            if screen is not None:
                screen.close()
        if screen is not None and screen.stopped:
            self._stop_by_cell(screen.stopped)
            raise self._make_agent_stopped(screen.stopped)
        return waiting.result()

    async def _next_result(self, finished: AsyncIterator[RowResult]) -> RowResult | None:
        """Return the next result, None after the last; if the map is stopped, wait for its end."""
        result = await anext(finished, None)
        if self._stop_cause is not None and self._task is not None:
            await asyncio.wait([self._task])
        return result


def start_map(
    agent: Configuration,
    data: Any,
    prompt: str,
    options: MapOptions | None = None,
    *,
    output: Any = None,
    view: str | None = "auto",
    attachments: Any = None,
    store: Store = None,
    check: bool = True,
    record: bool = True,
    late: bool = False,
    client: Any = None,
    finish: Finish | None = None,
) -> MapStream:
    """Return the map of `prompt` over the rows of `data`, which starts when it is awaited.

    `Agent.map` documents the other parameters. `late`: the caller calls `ready`, unless the caller
    plays a record. `finish` computes the `FinalState`. `check`: awaiting a map that failed raises
    RunFailed. Raises UsageError for data, a prompt, options or tools that cannot be used.
    """
    if output is not None:
        agent = agent.with_output(OutputType(output))
    plan = plan_map(
        agent,
        data,
        prompt,
        options or MapOptions(),
        attachments=attachments,
        store=store,
        client=client,
    )
    stream = MapStream(plan, agent, view=view, check=check, record=record, finish=finish)
    return stream if late else stream.ready()
