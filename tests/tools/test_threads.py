"""Functions in threads that may be stopped: each ends with an outcome, whenever `stop` comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from agent_nb.tools import threads
from agent_nb.tools.threads import Caught, Worker


def test_a_stop_at_the_end_of_the_function_leaves_an_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, workers = threads.catch_outcome, []

    def catch_outcome(function: Callable[[], Any]) -> Caught:
        caught = plain(function)
        while not workers:
            time.sleep(0.001)
        workers[0].stop()
        time.sleep(0)  # here the exception of `stop` is raised
        return caught

    monkeypatch.setattr(threads, "catch_outcome", catch_outcome)

    async def run() -> Caught:
        workers.append(Worker(lambda: 1, "short"))
        return await asyncio.wait_for(workers[0].future, 20)

    assert isinstance(asyncio.run(run()).error, SystemExit)


def test_a_stop_at_any_moment_leaves_an_outcome() -> None:
    async def run() -> list[Caught]:
        found = []
        for n in range(400):
            worker = Worker(lambda n=n: time.sleep(n % 5 * 0.0001), "short")
            if n % 2:
                await asyncio.sleep(n % 7 * 0.0001)
            worker.stop()
            worker.stop()
            found.append(await asyncio.wait_for(worker.future, 20))
        return found

    for caught in asyncio.run(run()):
        assert caught.error is None or isinstance(caught.error, SystemExit)


def test_a_stop_after_the_end_changes_nothing() -> None:
    async def run() -> Caught:
        worker = Worker(lambda: 7, "short")
        caught = await worker.future
        worker.stop()
        return caught

    assert asyncio.run(run()) == Caught(7)
