"""Work on a thread with an event loop of its own."""

import asyncio
import threading

import pytest

from agent_nb.host.background import Background


async def answer():
    return 42


def test_work_after_a_thread_that_could_not_be_started_is_done(monkeypatch):
    background = Background("test", answer, 1.0)
    work = answer()
    loop = asyncio.new_event_loop()

    def fail(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "new_event_loop", lambda: loop)
        patch.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError, match="new thread"):
            background.submit(work)
    work.close()
    loop.close()
    assert background.submit(answer()).result(10) == 42
