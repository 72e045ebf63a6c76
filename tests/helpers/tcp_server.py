"""A TCP server for a test, in the event loop of the test.

Why beside `asyncio.start_server`: when that server closes one round of the event loop after it took
a connection, asyncio forgets the connection open (an assertion in `Server._attach`, Python 3.11),
and a later test reports its socket. Here nothing more is taken first; then every connection is
closed, and every task has ended, when the test goes on.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]
GONE = (ConnectionError, asyncio.IncompleteReadError)  # the client has closed
ACCEPTING = 4  # rounds of the event loop until a connection that was taken has its task


@asynccontextmanager
async def listen(
    talk: Talk, port: int = 0, *, grace: float = 0, **options: Any
) -> AsyncIterator[int]:
    """Answer each connection by `talk(reader, writer)`; yield the port on 127.0.0.1.

    At the end, wait `grace` seconds for what still runs, then cancel it. What a task raises is
    raised here.
    """
    loop = asyncio.get_running_loop()
    tasks: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await talk(reader, writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks[loop.create_task(run(reader, writer))] = writer

    server = await asyncio.start_server(accept, "127.0.0.1", port, **{"backlog": 1024, **options})
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        for listening in server.sockets:
            loop.remove_reader(listening.fileno())
        for _ in range(ACCEPTING):
            await asyncio.sleep(0)
        server.close()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        for writer in tasks.values():
            writer.transport.abort()
        await asyncio.sleep(0)  # closes the sockets
    for task in tasks:
        fault = None if task.cancelled() else task.exception()
        if fault is not None and not isinstance(fault, GONE):
            raise fault
