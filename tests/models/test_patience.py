"""A time limit for one await: it holds, it cleans up, and it keeps apart who cancelled."""

import asyncio

import anyio
import pytest

from agent_nb.models.http.patience import wait_within


def run(work):
    return asyncio.run(work)


async def never():
    await asyncio.get_running_loop().create_future()


def test_what_is_there_already_is_returned_without_a_timer(monkeypatch):
    async def ready():
        return 1

    async def main():
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", lambda *_: pytest.fail("a timer was started"))
        return await wait_within(5, ready())

    assert run(main()) == 1


def test_what_takes_a_while_is_returned():
    assert run(wait_within(30, asyncio.sleep(0.001, "done"))) == "done"


@pytest.mark.parametrize("pause", [0, 0.001])
def test_errors_pass(pause):
    async def fails():
        await asyncio.sleep(pause)
        raise KeyError("x")

    with pytest.raises(KeyError):
        run(wait_within(30, fails()))


def test_the_limit_cancels_lets_clean_up_and_leaves_the_task_as_it_was():
    seen = []

    async def work():
        try:
            await never()
        finally:
            await asyncio.sleep(0)
            seen.append("clean")

    async def main():
        with pytest.raises(TimeoutError):
            await wait_within(0.001, work())
        await asyncio.sleep(0)
        return asyncio.current_task().cancelling()

    assert (run(main()), seen) == (0, ["clean"])


def test_a_value_that_comes_in_spite_of_the_limit_is_returned():
    async def stubborn():
        try:
            await never()
        except asyncio.CancelledError:
            return "late"

    async def main():
        return await wait_within(0.001, stubborn()), asyncio.current_task().cancelling()

    assert run(main()) == ("late", 0)


def test_a_cancellation_from_elsewhere_stays_one():
    async def main():
        task = asyncio.ensure_future(wait_within(30, never()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


def test_both_at_once_are_a_cancellation():
    async def work():
        asyncio.current_task().cancel()
        await never()

    async def main():
        async def limited():
            await wait_within(0, work())

        with pytest.raises(asyncio.CancelledError):
            await asyncio.ensure_future(limited())

    run(main())


@pytest.mark.parametrize("outer", [0.001, 30])
def test_scopes_around_and_inside_keep_to_their_limits(outer):
    async def work():
        with anyio.move_on_after(0.002) as inner:
            await anyio.sleep_forever()
        assert inner.cancelled_caught
        await anyio.sleep_forever()

    async def main():
        with anyio.move_on_after(outer) as scope:
            with pytest.raises(TimeoutError):
                await wait_within(0.01, work())
            await anyio.sleep(0)
        return scope.cancelled_caught

    if outer < 1:

        async def stopped():
            with anyio.move_on_after(outer) as scope:
                await wait_within(30, work())
            return scope.cancelled_caught

        assert run(stopped())
    else:
        assert not run(main())
