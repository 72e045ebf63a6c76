"""A real IPython shell in this process, and ways to run cells in it."""

import asyncio

import pytest


@pytest.fixture(scope="session")
def ipython():
    """One in-process IPython shell, without history file and start-up files."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    yield shell
    InteractiveShell.clear_instance()


@pytest.fixture
def shell(ipython):
    """The shell with an empty namespace."""
    ipython.reset(new_session=False)
    yield ipython
    ipython.reset(new_session=False)


@pytest.fixture
def run():
    """Run a coroutine as a cell does: on an asyncio loop of this thread, with a bound on its time."""

    def run(coroutine, seconds=30):
        async def bounded():
            return await asyncio.wait_for(coroutine, seconds)

        return asyncio.run(bounded())

    return run
