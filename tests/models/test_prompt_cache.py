"""Breakpoints of Anthropic's prompt cache: where they stand, and that each turn reads what the last
one wrote.
"""

import itertools
import json

import pytest
from helpers.waiting import wait

from agent_nb import Agent, tool
from agent_nb.agent.context import Context
from agent_nb.models import choose
from agent_nb.models.anthropic import provider
from agent_nb.models.messages_api.breakpoints import MARK, with_breakpoints

CACHED = {"type": "ephemeral"}
USAGE = {"input_tokens": 3, "output_tokens": 1}


def answer(*blocks, stop="end_turn", **usage):
    """Return the SSE of a whole answer."""
    message = {"id": "m", "model": "c", "content": [], "usage": {**USAGE, **usage}}
    events = [{"type": "message_start", "message": message}]
    for i, block in enumerate(blocks):
        start = {**block, "input": {}} if block["type"] == "tool_use" else {**block, "text": ""}
        delta = (
            {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            if block["type"] == "tool_use"
            else {"type": "text_delta", "text": block["text"]}
        )
        events += [
            {"type": "content_block_start", "index": i, "content_block": start},
            {"type": "content_block_delta", "index": i, "delta": delta},
            {"type": "content_block_stop", "index": i},
        ]
    events += [
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events]


def said(text):
    return answer({"type": "text", "text": text})


def calling(turn, count=1):
    return answer(
        *(
            {"type": "tool_use", "id": f"t{turn}_{n}", "name": "look", "input": {"at": n}}
            for n in range(count)
        ),
        stop="tool_use",
    )


@tool
def look(at: int) -> str:
    """Look at something."""
    return f"seen {at}"


def replies(*answers):
    return [lambda peer, chunks=chunks: peer.stream(*chunks) for chunks in answers]


def asking(server, prompt="go", **options):
    agent = Agent(
        provider("c", base_url=server.url), [look], system="Be brief.", secrets={}, **options
    )
    return wait(lambda: agent(prompt, check=False))


def marks(body):
    """Return the places of the breakpoints of a request."""
    found = [f"tool {t['name']}" for t in body.get("tools", ()) if "cache_control" in t]
    if isinstance(body.get("system"), list):
        found += ["system" for block in body["system"] if "cache_control" in block]
    for i, message in enumerate(body["messages"]):
        found += [
            f"{i} {message['role']} {block['type']}"
            for block in message["content"]
            if block.get("cache_control") == CACHED
        ]
    return found


def test_requests_mark_tools_system_and_the_last_two_user_messages(serve):
    server = serve(*replies(calling(1), calling(2, 2), said("Done.")))
    assert asking(server).status == "ok"
    first, second, third = (peer.body for peer in server.asked)
    assert first["system"] == [{"type": "text", "text": "Be brief.", "cache_control": CACHED}]
    assert first["tools"][-1]["cache_control"] == CACHED
    assert first["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "go", "cache_control": CACHED}]}
    ]
    assert marks(first) == ["tool look", "system", "0 user text"]
    assert marks(second) == ["tool look", "system", "0 user text", "2 user tool_result"]
    assert marks(third) == ["tool look", "system", "2 user tool_result", "4 user tool_result"]
    assert [b.get("cache_control") for b in third["messages"][4]["content"]] == [None, CACHED]


class Cache:
    """The provider's cache by its published rules: what a breakpoint ends is written; each
    breakpoint looks for the longest written prefix that ends at it or up to 20 blocks before it.
    """

    def __init__(self):
        self.written = set()

    def ask(self, body):
        """Return how many blocks of a request are read, and how many are cached after it."""
        blocks, ends = [], []
        parts = [*body.get("tools", ()), *body.get("system", ())]
        parts += [b for m in body["messages"] for b in m["content"]]
        for block in parts:
            plain = {k: v for k, v in block.items() if k != "cache_control"}
            blocks.append(json.dumps(plain, sort_keys=True))
            if "cache_control" in block:
                ends.append(len(blocks))
        assert len(ends) <= 4
        seen = [
            n
            for end in ends
            for n in range(end, max(end - 21, 0), -1)
            if tuple(blocks[:n]) in self.written
        ]
        self.written |= {tuple(blocks[:end]) for end in ends}
        return max(seen, default=0), max(ends)


@pytest.mark.parametrize("calls", [1, 30])
def test_each_turn_reads_all_that_the_last_one_wrote(serve, calls):
    server = serve(*replies(calling(1, calls), calling(2, calls), calling(3, 1), said("Done.")))
    assert asking(server, limits={"tool_calls": 0}).status == "ok"
    cache, before = Cache(), 0
    for number, peer in enumerate(server.asked):
        read, wrote = cache.ask(peer.body)
        assert read == before
        assert read or not number
        before = wrote
    assert len(server.asked) == 4


def test_the_next_run_of_a_conversation_reads_tools_system_and_run_again(serve):
    server = serve(*replies(calling(1), said("One."), calling(2), said("Two."), said("Three.")))
    agent = Agent(provider("c", base_url=server.url), [look], system="Be brief.", secrets={})

    async def main():
        runs = []
        for prompt in ("a", "b", "c"):
            runs.append(await agent(prompt, history=[run.log for run in runs]))

    wait(main)
    cache = Cache()
    figures = [cache.ask(peer.body) for peer in server.asked]
    for (_, wrote), (read, _) in itertools.pairwise(figures):
        assert read == wrote


def test_what_stands_beside_the_newest_prompt_costs_only_later_prompts(serve):
    server = serve(*replies(*[said(f"Answer {n}.") for n in range(4)]))
    agent = Agent(provider("c", base_url=server.url), [look], system="Be brief.", secrets={})

    async def main():
        runs = []
        for n, prompt in enumerate("abcd"):
            beside = Context(mode="vars", text=f"The notebook has {n} variables.")
            history = [run.log for run in runs]
            runs.append(await agent(prompt, history=history, context=beside))

    wait(main)
    texts = [[b["text"] for b in peer.body["messages"][-1]["content"]] for peer in server.asked]
    assert texts[3] == ["The notebook has 3 variables.\n\nd"]
    assert "variables" not in json.dumps(server.asked[3].body["messages"][:-1])
    cache = Cache()
    figures = [cache.ask(peer.body) for peer in server.asked]
    fixed = 2  # the tool and the system text
    assert [read for read, _ in figures] == [0, fixed, fixed + 1, fixed + 3]
    assert [wrote for _, wrote in figures] == [fixed + n for n in (1, 3, 5, 7)]


def test_an_endpoint_switches_the_cache_off(serve, monkeypatch, tmp_path):
    server = serve(*replies(said("x")))
    file = tmp_path / "c.toml"
    file.write_text(
        f'[endpoints.lab]\nbase_url = "{server.url}"\napi = "anthropic"\ncache = false\n'
    )
    monkeypatch.setenv("AGENT_NB_CONFIG", str(file))
    agent = Agent(choose.make_model("lab/c"), [look], system="Be brief.", secrets={})
    wait(lambda: agent("go"))
    assert server.asked[0].body["system"] == "Be brief."
    assert "cache_control" not in json.dumps(server.asked[0].body)


@pytest.mark.parametrize(
    "words",
    [
        "tools.0.cache_control: Extra inputs are not permitted",
        "system: Input should be a valid string",
    ],
)
def test_a_server_that_refuses_breakpoints_is_asked_without_them(serve, words):
    error = json.dumps({"type": "error", "error": {"type": "invalid_request", "message": words}})
    server = serve(lambda peer: peer.reply(400, error), *replies(calling(1), said("Done.")))
    assert asking(server).answer == "Done."
    held = ["cache_control" in json.dumps(peer.body) for peer in server.asked]
    assert held == [True, False, False]
    assert server.asked[1].body["system"] == "Be brief."
    assert asking(server, "again").answer == "Done."  # another model object
    assert "cache_control" not in json.dumps(server.asked[3].body)


def test_another_refusal_is_not_repeated(serve):
    server = serve(lambda peer: peer.reply(400, '{"error": {"message": "no credit"}}'))
    assert asking(server).status == "error"
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "extra",
    [
        {"cache_control": CACHED},
        {"system": [{"type": "text", "text": "Mine.", "cache_control": {"ttl": "1h", **CACHED}}]},
    ],
)
def test_a_user_who_places_breakpoints_places_all_of_them(serve, extra):
    server = serve(*replies(said("x")))
    asking(server, settings={"extra_body": extra})
    body = server.asked[0].body
    assert json.dumps(body).count('"cache_control"') == 1
    assert body | extra == body


def test_what_cannot_be_marked_is_passed_over():
    blocks = [
        {"type": "tool_result", "tool_use_id": "t", "content": "x"},
        {"type": "text", "text": " "},
        {"type": "thinking", "thinking": "…", "signature": "s"},
    ]
    body = {"messages": [{"role": "user", "content": blocks}]}
    made = with_breakpoints(body)["messages"][0]["content"]
    assert made == [{**blocks[0], **MARK}, *blocks[1:]]
    assert body == {"messages": [{"role": "user", "content": blocks}]}
    empty = {"messages": [{"role": "user", "content": blocks[1:]}]}
    assert with_breakpoints(empty) == empty


def test_a_message_whose_content_is_a_text_is_marked():
    body = {"messages": [{"role": "user", "content": "Hi."}, {"role": "user", "content": " "}]}
    marked, blank = with_breakpoints(body)["messages"]
    assert marked["content"] == [{"type": "text", "text": "Hi.", **MARK}]
    assert blank["content"] == " "


def test_reads_and_writes_are_counted_and_priced(serve, monkeypatch, tmp_path):
    used = {"cache_creation_input_tokens": 1_000_000, "cache_read_input_tokens": 2_000_000}
    server = serve(*replies(answer({"type": "text", "text": "x"}, **used)))
    file = tmp_path / "c.toml"
    file.write_text(
        f'[endpoints.lab]\nbase_url = "{server.url}"\napi = "anthropic"\n'
        "prices = { input = 3.0, output = 15.0, cached = 0.3, cache_written = 3.75 }\n"
    )
    monkeypatch.setenv("AGENT_NB_CONFIG", str(file))
    usage = wait(lambda: Agent(choose.make_model("lab/c"), secrets={})("go")).usage
    assert (usage.input, usage.cached, usage.cache_written) == (3_000_003, 2_000_000, 1_000_000)
    assert usage.cost == pytest.approx(3.75 + 0.6 + (3 * 3 + 15) / 1e6)
