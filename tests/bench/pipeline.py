"""CPU time a token, from the bytes of a response to the folded state of the view, beside two peers
in the same run.

    python tests/bench/pipeline.py

Ours: SSE, JSON, parts, secret filter, dialect, events, log, fold. Peers: `json.loads` of the same
payloads, and the official `openai` client iterating the same stream (if it is installed). Figures
are medians of several rounds, in CPU time of this process.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable

from agent_nb.agent.turn import Turn
from agent_nb.agent.turn_reader import TurnReader
from agent_nb.events import RunStart
from agent_nb.events.log import EventLog
from agent_nb.host import plugins
from agent_nb.models.chat.decoder import ChatDecoder
from agent_nb.view.state.fold import RunView
from agent_nb.wire.redact import Redaction

TOKENS = 20_000
ROUNDS = 5
WORDS = [
    "The ",
    "median ",
    "price ",
    "is ",
    "28.9 ",
    ". ",
    "Two ",
    "values ",
    "stand ",
    "out ",
    "so ",
    "far ",
    ", ",
    "and ",
]


def payloads() -> list[str]:
    """Return the JSON of each chunk, as OpenAI writes it."""
    base = {
        "id": "chatcmpl-9xYz",
        "object": "chat.completion.chunk",
        "created": 1763700000,
        "model": "gpt-5-mini-2025",
    }

    def choice(i: int) -> dict[str, object]:
        return {
            "index": 0,
            "delta": {"content": WORDS[i % len(WORDS)]},
            "logprobs": None,
            "finish_reason": None,
        }

    return [
        json.dumps({**base, "system_fingerprint": "fp_1", "choices": [choice(i)]})
        for i in range(TOKENS)
    ]


def ours(frames: list[bytes]) -> None:
    """Take every frame the whole way."""
    decoder, log, view = ChatDecoder(), EventLog(), RunView()
    log.subscribe(view.apply)
    log.append(RunStart(model="m"))
    dialect = plugins.load_plugin("dialects", "thinking").over(
        plugins.load_plugin("dialects", "native")
    )
    pipeline = TurnReader(
        dialect, Turn(1), Redaction({"SOME_KEY": "a-secret-value-of-thirty-chars"})
    )
    for frame in frames:
        for event in pipeline.feed(decoder.feed(frame)):
            log.append(event)
    for event in pipeline.feed(decoder.close()) + pipeline.close():
        log.append(event)


def official(frames: list[bytes]) -> None:
    """Let the official client iterate the same stream."""
    import httpx
    import openai

    async def body():
        for frame in frames:
            yield frame

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body())

    async def main() -> None:
        client = openai.AsyncOpenAI(
            api_key="none", http_client=httpx.AsyncClient(transport=httpx.MockTransport(answer))
        )
        stream = await client.chat.completions.create(model="m", messages=[], stream=True)
        async for _ in stream:
            pass

    asyncio.run(main())


def cpu(function: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the median CPU time of `function` in microseconds a token."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return statistics.median(times) / TOKENS * 1e6


def main() -> None:
    """Measure and print."""
    texts = payloads()
    frames = [f"data: {t}\n\n".encode() for t in texts]
    base = cpu(lambda: [json.loads(t) for t in texts])
    mine = cpu(lambda: ours(frames))
    print(f"json.loads of the payloads   {base:7.2f} us a token   1.0")
    print(f"agent_nb, bytes to view      {mine:7.2f} us a token   {mine / base:.1f}   (bar: 3)")
    try:
        peer = cpu(lambda: official(frames), 3)
        print(f"openai client, iterating     {peer:7.2f} us a token   {peer / base:.1f}")
    except ImportError:
        print("openai client                not installed: pip install openai")


if __name__ == "__main__":
    main()
