"""What a model gets of pictures: exactly what is sent to each provider, and words where none is."""

import base64
import io
import itertools

import pytest
from helpers.answers import PROVIDERS, calls, refuses, says
from helpers.model_server import Server
from helpers.pictures import attached, base64_of, png
from helpers.waiting import wait
from PIL import Image

from agent_nb import Agent, events, tool
from agent_nb.agent import vision
from agent_nb.agent.history import IMAGE_TOKENS, estimate_tokens, write_messages
from agent_nb.dialects.native import dialect as NATIVE
from agent_nb.dialects.section import dialect as SECTION
from agent_nb.dialects.xml import dialect as XML
from agent_nb.errors import RunFailed
from agent_nb.host import plugins
from agent_nb.models.messages import ImageBlock, ResultBlock, TextBlock
from agent_nb.tools.base import Pictured

PLOT, OTHER = png(70, 30), png(20, 10, (0, 0, 255))
NAMES = (f"m{n}" for n in itertools.count())  # what a model refused is remembered by its name


@tool
def look() -> Pictured:
    """Look."""
    return Pictured("It looks like this:", [PLOT, png(8, 6, text=b"sk-secret")])


@pytest.fixture
def ask(monkeypatch):
    """Run an agent against a server that gives the `answers`; return the run and the requests."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    servers = []

    def run(provider, *answers, tools=(look,), prompt="go", attachments=(), name="", **options):
        server = Server(*answers)
        servers.append(server)
        base = server.url.removesuffix("/v1") if provider == "anthropic" else server.url
        made = plugins.load_plugin("models", provider)(
            name or next(NAMES), base_url=base, **options
        )
        agent = Agent(made, list(tools), secrets={}, approve="auto")
        try:
            log = wait(lambda: agent(prompt, attachments=attachments)).log
        except RunFailed as failed:
            log = failed.run.log
        return log, [peer.body for peer in server.asked]

    yield run
    for server in servers:
        server.close()


SENT = {
    "openai": [
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": "It looks like this:\n[figure 1: 70×30 pixels]\n[figure 2: 8×6 pixels]",
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Pictures of look (call c1):"},
                *(
                    {
                        "type": "image_url",
                        "image_url": {"url": f"data:image/png;base64,{base64_of(p)}"},
                    }
                    for p in (PLOT, png(8, 6))
                ),
            ],
        },
    ],
    "openai-responses": [
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {
                    "type": "input_text",
                    "text": "It looks like this:\n[figure 1: 70×30 pixels]\n[figure 2: 8×6 pixels]",
                },
                *(
                    {
                        "type": "input_image",
                        "image_url": f"data:image/png;base64,{base64_of(p)}",
                    }
                    for p in (PLOT, png(8, 6))
                ),
            ],
        }
    ],
    "anthropic": [
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "cache_control": {"type": "ephemeral"},
                    "content": [
                        {
                            "type": "text",
                            "text": "It looks like this:\n[figure 1: 70×30 pixels]\n[figure 2: 8×6 pixels]",
                        },
                        *(
                            {
                                "type": "image",
                                "source": {
                                    "type": "base64",
                                    "media_type": "image/png",
                                    "data": base64_of(p),
                                },
                            }
                            for p in (PLOT, png(8, 6))
                        ),
                    ],
                }
            ],
        }
    ],
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_pictures_of_a_result_are_sent_as_the_provider_wants_them(ask, provider):
    log, asked = ask(provider, calls(provider, "look", {}), says(provider, "A plot."))
    assert log.of("end")[0].status == "ok"
    body = asked[1]
    said = body["input" if provider == "openai-responses" else "messages"]
    assert said[-len(SENT[provider]) :] == SENT[provider]


@pytest.mark.parametrize("dialect", ["xml", "section"])
def test_a_text_dialect_has_the_pictures_in_the_message_of_the_results(ask, dialect):
    written = {
        "xml": '<execute>[{"name": "look", "args": {}}]</execute>',
        "section": '§CALL: {"name": "look", "args": {}}\n§EXECUTE',
    }
    _, asked = ask(
        "openai", says("openai", written[dialect]), says("openai", "ok"), dialect=dialect
    )
    last = asked[1]["messages"][-1]
    assert last["role"] == "user"
    assert [piece["type"] for piece in last["content"]] == [
        "text",
        "text",
        "image_url",
        "image_url",
    ]
    assert "[figure 1: 70×30 pixels]" in last["content"][0]["text"]
    assert last["content"][1]["text"].strip() == "Pictures of look:"


REFUSALS = [
    (400, "Invalid content type. image_url is only supported by certain models."),
    (404, "No endpoints found that support image input"),
    (500, "image input is not supported - hint: you may need to provide the mmproj"),
    (400, "At most 0 image(s) may be provided in one request."),
    (422, "messages[2]: unknown variant `image_url`, expected `text`"),
    (
        400,
        "'messages.3' : for 'role:user' the following must be satisfied[('content' must be a string)]",
    ),
    (400, "m is not a multimodal model"),
]


@pytest.mark.parametrize(("status", "words"), REFUSALS)
def test_a_refusal_of_pictures_is_answered_with_words_once_and_remembered(ask, status, words):
    name = next(NAMES)
    answers = (calls("openai", "look", {}), refuses(status, words), says("openai", "I see words."))
    log, asked = ask("openai", *answers, name=name)
    assert len(asked) == 3
    assert "image_url" not in str(asked[2])
    assert asked[2]["messages"][-1]["content"] == (
        "It looks like this:\n[a picture the model cannot see: figure 1, 70×30]\n"
        "[a picture the model cannot see: figure 2, 8×6]"
    )
    (error,) = log.of("error")
    assert error.code == "no_images"
    assert "Going on with words in place of the pictures." in error.message
    assert log.of("end")[0].status == "ok"
    assert vision._refused


def test_a_model_that_refused_pictures_is_not_asked_to_see_again():
    class Blind:
        name, address = next(NAMES), "http://here"

    assert not vision.is_blind(Blind())
    vision.Vision(Blind()).omit("This model does not support images.")
    assert vision.is_blind(Blind())
    other = Blind()
    other.address = "http://there"
    assert not vision.is_blind(other)


@pytest.mark.parametrize(
    "words", ["Could not process image", "image exceeds 5 MB maximum", "Invalid base64 image_url"]
)
def test_a_refusal_of_one_picture_is_not_held_against_the_model(ask, words):
    name = next(NAMES)
    answers = (calls("openai", "look", {}), refuses(400, words), says("openai", "ok"))
    log, asked = ask("openai", *answers, name=name)
    assert (len(asked), log.of("end")[0].status) == (3, "ok")
    assert not any(known == f"openai/{name}" for known, _ in vision._refused)


def test_a_second_refusal_ends_the_run(ask):
    refused = refuses(400, "image input is not supported")
    log, asked = ask("openai", calls("openai", "look", {}), refused)
    assert len(asked) == 3
    assert log.of("end")[0].status == "error"


def test_a_refusal_that_is_not_about_pictures_leaves_them_in(ask):
    log, asked = ask("openai", calls("openai", "look", {}), refuses(400, "bad temperature"))
    assert (len(asked), log.of("error")[0].code) == (2, "provider")


@pytest.mark.parametrize(("vision", "sent"), [(True, True), (None, True), (False, False)])
def test_the_configuration_says_whether_a_model_sees(ask, vision, sent):
    answers = (calls("openai", "look", {}), says("openai", "ok"))
    _, asked = ask("openai", *answers, vision=vision, attachments=[OTHER])
    for body in asked:
        assert ("image_url" in str(body)) is sent
        assert ("a picture the model cannot see: figure 1, 20×10" in str(body)) is not sent


def test_a_large_picture_is_scaled_down_and_the_log_keeps_it(ask):
    large = png(3000, 1500)

    @tool
    def draw() -> Pictured:
        """Draw."""
        return Pictured("", [large])

    log, asked = ask(
        "anthropic", calls("anthropic", "draw", {}), says("anthropic", "ok"), tools=[draw]
    )
    data = asked[1]["messages"][-1]["content"][0]["content"][-1]["source"]["data"]
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (1024, 512)
    assert log.of("result")[0].attachments == (attached(large),)


def test_a_picture_of_the_user_keeps_more_detail(ask):
    _, asked = ask("openai", says("openai", "ok"), attachments=[png(3000, 1500)])
    url = asked[0]["messages"][-1]["content"][0]["image_url"]["url"]
    picture = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
    assert picture.size == (2048, 1024)


def test_without_pillow_a_large_picture_is_words_and_the_log_advises(ask, lacking_pillow):
    log, asked = ask("openai", says("openai", "ok"), attachments=[png(3000, 1500), OTHER])
    text, small, _ = asked[0]["messages"][-1]["content"]
    assert text["text"].strip() == ("[a picture too large to be sent: figure 1, 3000×1500]")
    assert small["image_url"]["url"].endswith(base64_of(OTHER))
    (note,) = log.of("error")
    assert (note.code, log.of("end")[0].status) == ("no_picture", "ok")
    assert note.message == (
        "The model did not get figure 1 (3000×1500). "
        "It is too large, and scaling it down needs Pillow: pip install pillow."
    )


def test_a_responses_server_with_text_results_gets_pictures_after_them(ask):
    provider = "openai-responses"
    refused = refuses(400, "Invalid type for 'input[2].output': expected a string, got an array.")
    log, asked = ask(provider, calls(provider, "look", {}), refused, says(provider, "A plot."))
    result, pictures = asked[2]["input"][-2:]
    assert result["output"].startswith("It looks like this:")
    assert [p["type"] for p in pictures["content"]] == ["input_text", "input_image", "input_image"]
    assert (pictures["role"], log.of("error")) == ("user", [])


@pytest.fixture
def lacking_pillow(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "PIL", None)


def test_pictures_are_counted_in_the_estimate():
    shown = events.Result(call_id="c", name="look", content="x", attachments=(attached(PLOT),) * 3)
    run = [events.User(content="go"), events.Call(call_id="c", name="look"), shown]
    for dialect in (NATIVE, XML, SECTION):
        bare = estimate_tokens(write_messages(dialect, [[*run[:2], events.Result(call_id="c")]]))
        assert 3 * IMAGE_TOKENS <= estimate_tokens(write_messages(dialect, [run])) - bare < 3200


def test_a_blind_model_does_not_pay_for_pictures():
    class Blind:
        name, vision = "blind", False

    seen = vision.Vision(Blind()).view(
        [events.User(content="x", attachments=(attached(PLOT),) * 5)]
    )
    assert estimate_tokens(write_messages(NATIVE, [seen])) < 200


def test_only_the_newest_pictures_of_a_long_conversation_are_sent():
    runs = [
        [events.User(content=f"{n}", attachments=(attached(png(n, 5)),)) for n in range(1, 16)],
        [
            events.Call(call_id="c", name="look"),
            events.Result(
                call_id="c",
                name="look",
                content="",
                attachments=tuple(attached(png(n, 6)) for n in range(1, 11)),
            ),
        ],
    ]
    sent = vision.keep_newest(write_messages(NATIVE, runs), 12)
    pictures = [b for m in sent for b in m.blocks if isinstance(b, ImageBlock)]
    assert [vision.describe_picture(1, attached(base64.b64decode(p.data))) for p in pictures] == [
        "[figure 1: 14×5 pixels]",
        "[figure 1: 15×5 pixels]",
    ]
    words = [
        b for m in sent for b in m.blocks if isinstance(b, TextBlock) and vision.EARLIER in b.text
    ]
    assert len(words) == 13
    few = vision.keep_newest(write_messages(NATIVE, runs), 4)
    (result,) = (b for m in few for b in m.blocks if isinstance(b, ResultBlock))
    assert (len(result.pictures), result.pictures[-1].data) == (4, base64_of(png(10, 6)))
    assert vision.EARLIER in result.content


def test_a_long_run_leaves_out_the_pictures_of_older_results(ask):
    shown = [
        e
        for n in range(4)
        for e in (
            events.Call(call_id=f"c{n}", name="look"),
            events.Result(call_id=f"c{n}", name="look", content="x", attachments=(attached(PLOT),)),
        )
    ]
    from agent_nb.agent.compaction import cut_results

    kept = write_messages(NATIVE, [cut_results(NATIVE, [events.User(content="go"), *shown], 2500)])
    results = [b for m in kept for b in m.blocks if isinstance(b, ResultBlock)]
    assert [len(r.pictures) for r in results] == [0, 0, 1, 1]
    assert f"[{vision.LEFT_OUT}: figure 1, 70×30]" in results[0].content


def test_json_stays_json_with_its_pictures_beside_it_in_a_text_dialect():
    run = [
        events.User(content="go"),
        events.Call(call_id="c", name="look"),
        events.Result(call_id="c", name="look", content={"a": 1}, attachments=(attached(PLOT),)),
    ]
    last = write_messages(XML, [run])[-1]
    assert '"content": {"a": 1}' in last.text
    assert isinstance(last.blocks[-1], ImageBlock)


@pytest.mark.parametrize(
    "other",
    [{"data": "x"}, {"media_type": 1, "data": "x"}, {"media_type": "image/png", "data": [1]}],
)
def test_what_a_record_calls_a_picture_without_being_one_is_left_out(other):
    run = [
        events.User(content="go", attachments=(other,)),
        events.Call(call_id="c", name="look"),
        events.Result(call_id="c", name="look", content="seen", attachments=(other,)),
    ]
    for dialect in (XML, NATIVE):
        sent = write_messages(dialect, [run])
        assert not [b for m in sent for b in m.blocks if isinstance(b, ImageBlock)]
