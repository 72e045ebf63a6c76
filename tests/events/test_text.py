"""One definition of the answer: which blocks are one text, and that everything which shows or sends
a text has the same one.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from functools import cache

import anyio
import msgspec
import pytest
from helpers.scripts import calling
from helpers.streams import ndjson

from agent_nb import Agent, Run, Scripted, decode, encode
from agent_nb import events as e
from agent_nb.agent import compaction
from agent_nb.agent.history import write_messages
from agent_nb.agent.turn import Turn
from agent_nb.agent.turn_reader import TurnReader
from agent_nb.events.frame import to_frame
from agent_nb.events.log import EventLog
from agent_nb.events.settler import Settler
from agent_nb.events.text import Texts, answer_text
from agent_nb.host import plugins
from agent_nb.models.messages_api.decoder import AnthropicDecoder
from agent_nb.record import journal, journal_recovery
from agent_nb.record.record import log_of, run_record
from agent_nb.view.bundle import make_bundle
from agent_nb.view.markdown.stream import render
from agent_nb.view.state.cards import RespondCard, ThinkCard
from agent_nb.view.state.fold import RunView

XML, SECTION, NATIVE = (
    plugins.load_plugin("dialects", name) for name in ("xml", "section", "native")
)


def frame(number: int, kind: str, **fields: object) -> dict:
    return {
        "session_id": "sess-001",
        "node_id": "run-think-1",
        "event_id": number,
        "type": kind,
        **fields,
    }


LOOM = ndjson(  # seed 002 § 4.3, then the reply of § 5
    {
        "session_id": "sess-001",
        "event_id": 0,
        "type": "run_start",
        "run_id": "run-1",
        "message": "Hello",
        "agent": "react",
    },
    frame(1, "node_enter", id="think"),
    frame(2, "message_chunk", content="I", id="think"),
    frame(3, "message_chunk", content=" don't", id="think"),
    frame(4, "usage", prompt_tokens=100, completion_tokens=62, total_tokens=162),
    frame(5, "node_exit", id="think", result="Ok"),
    {
        "session_id": "sess-001",
        "node_id": "run-think-1",
        "event_id": 8,
        "reply": "I don't have access to your device's clock ...",
    },
)
DIFFERS = ndjson(
    {"type": "run_start", "message": "And?"},
    {"type": "message_chunk", "content": "I", "id": "think"},
    {"type": "message_chunk", "content": " know", "id": "think"},
    {"reply": "I don't know"},
)
LOOOPY = ndjson(  # seed 004 § 7
    {"kind": "task-status", "taskId": "t", "contextId": "c", "status": {"state": "submitted"}},
    {"kind": "task-status", "taskId": "t", "contextId": "c", "status": {"state": "working"}},
    *(
        {"kind": "content-delta", "taskId": "t", "contextId": "c", "delta": d, "index": i}
        for i, d in enumerate(("Let me ", "analyze "))
    ),
    {"kind": "thought-stream", "taskId": "t", "contextId": "c", "content": "I should verify first"},
    *(
        {"kind": "content-delta", "taskId": "t", "contextId": "c", "delta": d}
        for d in ("The ", "answer ", "is 4")
    ),
    {
        "kind": "content-complete",
        "taskId": "t",
        "contextId": "c",
        "content": "Let me analyze The answer is 4",
    },
    {"kind": "task-complete", "taskId": "t", "contextId": "c", "finishReason": "stop"},
)
SEARCHED = "Two rivers meet in Berlin:\n\n- the Spree (400 km)\n- the Havel."


def searched(*before: str) -> bytes:
    """Return an answer of Anthropic's with a search of the server's and a block for each cited
    piece.
    """
    said = (
        "Two rivers meet in Berlin:\n\n- ",
        "the Spree",
        " ",
        "(400 km)",
        "\n- ",
        "the Havel",
        ".",
    )
    blocks = [
        *({"type": "text", "text": text} for text in before),
        {
            "type": "server_tool_use",
            "id": "s1",
            "name": "web_search",
            "input": {"query": "rivers of Berlin"},
        },
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        *({"type": "text", "text": text} for text in said),
    ]
    out: list[dict] = [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 9}}}
    ]
    for index, block in enumerate(blocks):
        text = block.get("text", "")
        out.append(
            {
                "type": "content_block_start",
                "index": index,
                "content_block": {**block, "text": ""} if text else block,
            }
        )
        if text.startswith("the"):
            citation = {
                "type": "web_search_result_location",
                "url": "https://example.com",
                "cited_text": text,
            }
            out.append(
                {
                    "type": "content_block_delta",
                    "index": index,
                    "delta": {"type": "citations_delta", "citation": citation},
                }
            )
        if text:
            out.append(
                {
                    "type": "content_block_delta",
                    "index": index,
                    "delta": {"type": "text_delta", "text": text},
                }
            )
        out.append({"type": "content_block_stop", "index": index})
    out += [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {o['type']}\ndata: {json.dumps(o)}\n\n" for o in out).encode()


def turn(data: bytes) -> list[e.Event]:
    """Return the events of one model turn, deltas included, as a run has them."""
    decoder, pipeline = AnthropicDecoder(), TurnReader(NATIVE, Turn(1))
    came = pipeline.feed([*decoder.feed(data), *decoder.close()]) + pipeline.close()
    node = {"name": "llm", "span": "llm-1", "turn": 1}
    return [
        e.RunStart(),
        e.User(content="Which?"),
        e.Node(phase="enter", **node),
        *came,
        e.Node(phase="exit", **node),
        e.End(),
    ]


def read(text: str, codec: str) -> list[e.Event]:
    """Return all events of a stream, deltas included."""
    decoder, settler = plugins.load_plugin("codecs", codec).decoder(), Settler(codec)
    came = [*decoder.feed(text), *decoder.close()]
    return [s for event in came for s in settler.feed(event)] + settler.close()


def mid_sentence() -> list[e.Event]:
    say = [
        e.Respond(content="1. one\n2. ", block="a", turn=1),
        e.Think(content="hm", block="t", turn=1),
        e.Respond(content="two", turn=1),
    ]
    return [e.RunStart(), e.User(content="Count."), *say, e.End()]


TEXTS = {
    "loom, half of it streamed": (
        lambda: read(LOOM, "loom"),
        "I don't have access to your device's clock ...",
    ),
    "loom, streamed otherwise": (lambda: read(DIFFERS, "loom"), "I don't know"),
    "looopy, a thought within": (lambda: read(LOOOPY, "looopy"), "Let me analyze The answer is 4"),
    "anthropic, cited blocks": (lambda: turn(searched()), SEARCHED),
    "ours, a thought within": (mid_sentence, "1. one\n2. two"),
}


@cache
def seen(name: str) -> tuple[e.Event, ...]:
    log = EventLog("r", clock=lambda: 1767225600.0)
    out: list[e.Event] = []
    log.subscribe(out.append)
    for event in TEXTS[name][0]():
        log.append(msgspec.structs.replace(event, seq=0, ts=0.0, run=""))
    return tuple(out)


def stored(name: str) -> list[e.Event]:
    return [event for event in seen(name) if event.type != "delta"]


def cards(events: Sequence[e.Event]) -> str:
    return "\n\n".join(
        str(c.text)
        for c in RunView().extend(events).cards
        if isinstance(c, RespondCard) and len(c.text)
    )


def flat(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", page))


def recovered(name: str, tmp_path) -> EventLog:
    writer = journal.Journal("r", where=tmp_path)
    for event in seen(name):
        writer(event)
    writer.close()
    return journal_recovery.RecoverableRun.recover(next(tmp_path.iterdir()))


def last_words(dialect, name: str) -> str:
    said = write_messages(dialect, [stored(name)])[-1].text
    return re.sub(r"<think>.*?</think>\s*|§THINK: .*?\n|§RESPOND: ", "", said).strip()


def again(codec: str):
    def consume(name: str, _) -> str:
        text = "".join(t if t.endswith("\n\n") else t + "\n" for t in encode(stored(name), codec))
        return answer_text(decode(text, codec))

    return consume


def end_of(codec: str, key: str):
    def consume(name: str, _) -> str:
        written = map(json.loads, encode(stored(name), codec, framing="ndjson"))
        return [obj for obj in written if key in obj][-1][key]

    return consume


CONSUMERS = {
    "Run.answer": lambda name, _: Run(EventLog.of_events(stored(name))).answer,
    "deltas among the events": lambda name, _: answer_text(seen(name)),
    "frame": lambda name, _: to_frame(stored(name), "runs")["answer"][0],
    "record": lambda name, _: Run(log_of(run_record(EventLog.of_events(stored(name))))).answer,
    "journal": lambda name, tmp: Run(recovered(name, tmp)).answer,
    "cards": lambda name, _: cards(stored(name)),
    "cards as they stream": lambda name, _: cards(seen(name)),
    "xml messages": lambda name, _: last_words(XML, name),
    "section messages": lambda name, _: last_words(SECTION, name),
    "native messages": lambda name, _: last_words(NATIVE, name),
    "transcript": lambda name, _: compaction.write_transcript([stored(name)]).partition(
        "Assistant: "
    )[2],
    "loom": again("loom"),
    "loom's reply": end_of("loom", "reply"),
    "looopy": again("looopy"),
    "looopy's end": end_of("looopy", "content"),
}
TOLD_ANEW = "loom, streamed otherwise"
LOSSY = {
    f"{name} (format)": again(name) for name in ("ag-ui", "agent-event", "cogency", "ui-message")
}


@pytest.mark.few(30)
@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("name", TEXTS)
def test_everything_that_shows_or_sends_the_answer_has_the_same(name, consumer, tmp_path):
    assert CONSUMERS[consumer](name, tmp_path) == TEXTS[name][1]


@pytest.mark.parametrize("consumer", LOSSY)
@pytest.mark.parametrize("name", [n for n in TEXTS if n != TOLD_ANEW])
def test_formats_without_a_reply_have_the_same_answer_too(name, consumer, tmp_path):
    assert LOSSY[consumer](name, tmp_path) == TEXTS[name][1]


@pytest.mark.parametrize("codec", ["ag-ui", "agent-event", "cogency", "ui-message"])
def test_a_repeated_text_is_a_loss_if_the_format_has_no_reply(codec):
    encoder = plugins.load_plugin("codecs", codec).encoder()
    for event in stored(TOLD_ANEW):
        encoder.feed(event)
    assert encoder.losses.counts()["respond.reply"] == 1


@pytest.mark.parametrize("name", TEXTS)
def test_pages_show_the_answer_as_one_piece_of_markdown(name):
    forms, answer = make_bundle(stored(name)), TEXTS[name][1]
    assert re.sub(r"\s", "", flat(render(answer))) in re.sub(r"\s", "", flat(forms["text/html"]))
    assert answer in forms["text/plain"]
    assert answer in forms["text/markdown"]


def test_a_sub_agent_returns_its_answer():
    helper = Agent(Scripted(["Let me <think>hm</think>see."]), name="helper", secrets={})
    ask = calling("helper", prompt="look")
    done = anyio.run(lambda: run_of(Agent(Scripted([ask, "ok"]), [helper.as_tool()], secrets={})))
    assert done.log.of("result")[0].content == "Let me see."


async def run_of(agent: Agent) -> Run:
    return await agent("go")


# What parts texts.


def answer(*events: e.Event) -> str:
    return answer_text(events)


def test_a_call_parts_the_texts_of_a_turn():
    said = (
        e.Respond(content="I look.", turn=1),
        e.Call(call_id="c", name="a", turn=1),
        e.Respond(content="Found.", turn=1),
    )
    assert answer(*said) == "I look.\n\nFound."
    assert [str(c.text) for c in RunView().extend(said).cards if isinstance(c, RespondCard)] == [
        "I look.",
        "Found.",
    ]


def test_a_search_of_the_server_parts_texts():
    events = [event for event in turn(searched("Let me look that up.")) if event.type != "delta"]
    assert answer_text(events) == f"Let me look that up.\n\n{SEARCHED}"
    assert cards(events) == f"Let me look that up.\n\n{SEARCHED}"
    assert write_messages(NATIVE, [events])[-1].text == f"Let me look that up.\n\n{SEARCHED}"


def test_only_the_last_turn_that_answered_is_the_answer():
    found = e.Result(call_id="c", turn=1)
    assert (
        answer(
            e.Respond(content="I look.", turn=1),
            e.Call(call_id="c", turn=1),
            found,
            e.Respond(content="Found.", turn=2),
        )
        == "Found."
    )
    assert (
        answer(
            e.Respond(content="I look.", turn=1),
            e.Call(call_id="c", turn=1),
            found,
            e.Respond(content=" \n", turn=2),
        )
        == "I look."
    )


def test_a_sub_agents_words_are_not_the_answer():
    assert (
        answer(e.Respond(content="Yes.", turn=1), e.Respond(content="inside", turn=1, span="c1"))
        == "Yes."
    )


def test_nodes_and_messages_of_a_foreign_run_part_texts():
    node = {"type": "node_enter", "id": "b"}
    loom = ndjson(
        {"type": "message_chunk", "content": "plan", "id": "a"},
        node,
        {"type": "message_chunk", "content": "done", "id": "b"},
    )
    assert answer_text(decode(loom, "loom")) == "plan\n\ndone"
    said = [
        {
            "type": f"TEXT_MESSAGE_{what}",
            "messageId": number,
            **({"delta": text} if what == "CONTENT" else {}),
        }
        for number, text in (("m1", "Hello."), ("m2", "How are you?"))
        for what in ("START", "CONTENT", "END")
    ]
    assert answer_text(decode(ndjson(*said), "ag-ui")) == "Hello.\n\nHow are you?"


def test_a_reply_with_the_words_of_all_turns_is_the_answer():
    frames = ndjson(
        {"type": "message_chunk", "content": "I look. ", "id": "a"},
        {"type": "tool_call", "call_id": "c", "name": "x", "arguments": {}},
        {"type": "tool_end", "call_id": "c", "name": "x", "result": "1", "is_error": False},
        {"type": "message_chunk", "content": "It is 1.", "id": "a"},
        {"reply": "I look. It is 1."},
    )
    events = decode(frames, "loom")
    assert answer_text(events) == "I look. It is 1."
    assert [str(c.text) for c in RunView().extend(events).cards if isinstance(c, RespondCard)] == [
        "I look. ",
        "It is 1.",
    ]


def test_the_content_of_a_finished_task_is_the_answer():
    delta = {"kind": "content-delta", "taskId": "t", "delta": "I know"}
    events = decode(
        ndjson(delta, {"kind": "task-complete", "taskId": "t", "content": "I don't know"}), "looopy"
    )
    assert answer_text(events) == cards(events) == "I don't know"


def test_complete_content_with_other_words_replaces_the_streamed_text():
    delta, end = (
        {"kind": "content-delta", "taskId": "t", "delta": "I know"},
        {"kind": "task-complete", "taskId": "t"},
    )
    events = decode(
        ndjson(delta, {"kind": "content-complete", "taskId": "t", "content": "I don't know"}, end),
        "looopy",
    )
    assert answer_text(events) == cards(events) == "I don't know"
    kinds = [json.loads(text)["kind"] for text in encode(events, "looopy", framing="ndjson")]
    assert kinds == ["content-delta", "content-complete", "task-complete"]


def test_a_record_whose_end_alone_has_the_reply_shows_it():
    end = e.End(extra={"looopy": {"fields": {"content": "I don't know"}}})
    assert cards([e.Respond(content="I know", turn=1), end]) == "I don't know"


def end_with(reply):
    return e.End(extra={"looopy": {"fields": {"content": reply}}})


def test_a_reply_that_is_only_part_of_a_shown_text_is_shown():
    said = (e.Respond(content="It is 24.", turn=1), e.Call(call_id="c", name="x", turn=1))
    view = RunView().extend([*said, end_with("4")])
    assert [str(c.text) for c in view.cards if isinstance(c, RespondCard)] == ["It is 24.", "4"]
    assert cards([e.Respond(content="It is 24.", turn=1), end_with("24")]) == "24"


@pytest.mark.parametrize(
    "reply", ["First. Second. Third.", "First.", "Second. Third.", "Second.\n\nThird.", "Third."]
)
def test_a_reply_that_repeats_shown_texts_or_the_last_block_adds_nothing(reply):
    said = (
        e.Respond(content="First. ", turn=1),
        e.Call(call_id="c", name="x", turn=1),
        e.Respond(content="Second. ", turn=2),
        e.Respond(content="Third.", turn=2),
    )
    view = RunView().extend([*said, end_with(reply)])
    shown = [str(c.text) for c in view.cards if isinstance(c, RespondCard)]
    assert shown == ["First. ", "Second. Third."]


def test_blocks_that_begin_with_a_delta_count_once():
    texts = Texts()
    steps = [
        texts.add(event)
        for event in (
            e.Delta(of="respond", block="a", text="x"),
            e.Delta(of="respond", block="a", text="y"),
            e.Respond(block="a", content="xy"),
            e.Delta(of="think", block="t"),
            e.Think(block="t"),
            e.Respond(block="b", content="z"),
        )
    ]
    assert steps == ["begin", "same", "same", "", "", "go_on"]


# White space, thoughts and cards.


def test_white_space_between_two_blocks_is_text_and_none_before_a_call():
    events = turn(searched("a", " ", "b", " \n"))
    assert answer_text(events) == f"a b\n\n{SEARCHED}"


def test_a_thought_between_two_paragraphs_stays_between_them():
    said = (
        e.Respond(content="First.\n\n", turn=1),
        e.Think(content="hm", turn=1),
        e.Respond(content="Second.", turn=1),
        e.End(),
    )
    assert [c.kind for c in RunView().extend(said).cards] == ["respond", "think", "respond"]
    assert answer_text(said) == "First.\n\nSecond."


@pytest.mark.parametrize("before", ["- ", "1. one\n", "A sen", "```\ncode\n\n"])
def test_a_thought_within_a_paragraph_does_not_part_it(before):
    said = (
        e.Respond(content=before, turn=1),
        e.Think(content="hm", turn=1),
        e.Respond(content="rest", turn=1),
        e.End(),
    )
    view = RunView().extend(said)
    assert [c.kind for c in view.cards] == ["respond", "think"]
    assert str(view.cards[0].text) == before + "rest"
    assert isinstance(view.cards[1], ThinkCard)


def test_only_a_text_that_was_cut_off_is_incomplete():
    open_block = (
        e.Respond(content="a", turn=1),
        e.Delta(of="respond", block="b", text="b", turn=1),
        e.End(),
    )
    assert [(c.incomplete, c.done) for c in RunView().extend(open_block).cards] == [(True, True)]
    whole = (e.Respond(content="a", turn=1), e.End())
    assert [(c.incomplete, c.done) for c in RunView().extend(whole).cards] == [(False, True)]


def test_a_thought_within_a_text_stands_before_it_in_a_text_dialect():
    assert write_messages(XML, [mid_sentence()])[-1].text == "<think>hm</think>\n\n1. one\n2. two"
    assert [b.text for b in write_messages(NATIVE, [mid_sentence()])[-1].blocks] == [
        "1. one\n2. ",
        "hm",
        "two",
    ]
