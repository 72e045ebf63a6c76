"""Waiting for a run: code that shows no screen wakes up at the end only."""

import asyncio

import pytest

from agent_nb.agent.in_progress import InProgress


@pytest.mark.parametrize("stops_on_cancel", [True, False])
def test_waiting_without_a_screen_sleeps_until_the_end(stops_on_cancel, monkeypatch):
    timeouts, wait = [], asyncio.wait

    async def recorded(tasks, *, timeout=None):
        timeouts.append(timeout)
        return await wait(tasks, timeout=timeout)

    async def main():
        task = asyncio.ensure_future(asyncio.sleep(0))
        await InProgress._wait_for_task(task, None, print, stops_on_cancel=stops_on_cancel)

    monkeypatch.setattr(asyncio, "wait", recorded)
    asyncio.run(main())
    assert timeouts == [None]
