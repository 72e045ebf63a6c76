"""The servers of the tests leave nothing open."""

import asyncio
import gc
import socket
import warnings

import pytest
from helpers.tcp_server import listen


@pytest.mark.parametrize("rounds", range(8))
def test_a_connection_that_arrives_at_the_end_is_closed(rounds):
    async def talk(reader, writer):
        await reader.read()

    async def main():
        async with listen(talk) as port:
            client.connect_ex(("127.0.0.1", port))
            for _ in range(rounds):
                await asyncio.sleep(0)

    with socket.socket() as client, warnings.catch_warnings(record=True) as unclosed:
        client.setblocking(False)
        asyncio.run(main())
        gc.collect()
    assert not unclosed


def test_what_a_server_raises_fails_the_test():
    async def talk(reader, writer):
        raise LookupError("unexpected request")

    async def main():
        async with listen(talk) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()

    with pytest.raises(LookupError, match="unexpected request"):
        asyncio.run(main())
