"""Thought tags around any dialect."""

import pytest
from helpers.dialect_reading import named

from agent_nb.agent.parse import with_thought_tags
from agent_nb.dialects import fences
from agent_nb.dialects.tags import ThoughtTags
from agent_nb.dialects.thinking import FilterParser, Thinking, thinking
from agent_nb.errors import UsageError
from agent_nb.host import plugins
from agent_nb.models import parts as p

CALL = '[{"name": "f", "args": {"a": "<thinking>x</thinking>"}}]'


def said(text):
    return {"type": "respond", "content": text}


def thought(text, **attributes):
    return {"type": "think", "content": text, **attributes}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<thinking>a</thinking>b", [thought("a"), said("b")]),
        ("<think>a</think>b", [thought("a"), said("b")]),
        (
            '<thinking thought="a" thought_type="plan" confidence="0.7"></thinking>b',
            [thought("a", thought_type="plan", confidence=0.7), said("b")],
        ),
        ("<thinking thought='a \"b\"'/>c", [thought('a "b"'), said("c")]),
        ("<thinking thought=a confidence=1 />c", [thought("a", confidence=1.0), said("c")]),
        ('<thinking thought="say &quot;hi&quot; &amp; go"/>', [thought('say "hi" & go')]),
        ('<thinking thought_type="plan">body</thinking>', [thought("body", thought_type="plan")]),
        ('<thinking thought="a">b</thinking>c', [thought("a"), thought("b"), said("c")]),
        ('<think mode="x">a</think>b', [thought("a", mode="x"), said("b")]),
        ('<thinking confidence="high" thought="a"/>', [thought("a", confidence="high")]),
        (
            '<thinking content="a" thought_type="plan"/>b',
            [thought("a", thought_type="plan"), said("b")],
        ),
        ('<thinking content="a"></thinking>b', [thought("a"), said("b")]),
        ('<thinking thought="a" content="b"/>', [thought("a", content="b")]),
        ('<thinking thought="" content="b"/>', [thought("b")]),
        ("<thinking/>a", [said("a")]),
        ("<thinking   >a</thinking>b", [thought("a"), said("b")]),
        ("<thinking>a</think>b</thinking>c", [thought("a</think>b"), said("c")]),
        ('<thinking thought="a\nb" />', [thought("a\nb")]),
    ],
)
def test_every_form_of_a_thought(same_in_any_chunking, to_events, text, found):
    assert to_events(same_in_any_chunking("thinking", text)) == found


@pytest.mark.parametrize(
    "text",
    [
        "<thinking about it",
        "<thinking>"[:-1],
        "<thinkings>a",
        "<think-about>",
        "<thinking a>",
        '<thinking a="b" c>',
        "<thinking a='",
        "<thinking =x>",
        "<thinking / >",
        "<br> <div class='a'> List<String> a<b",
        "<analysis>q</analysis>",
        "< think>",
        "<thinking a=b<c>",
        '<thinking thought="' + "x" * 9000 + '"/>',
    ],
)
def test_what_only_looks_like_a_thought_is_text(same_in_any_chunking, to_events, text):
    assert to_events(same_in_any_chunking("thinking", f"a {text} b")) == [said(f"a {text} b")]


@pytest.mark.parametrize(
    "text", ["<br", "<d", "a < ", "</", "<thinkx", "<thinking about it", "List<S"]
)
def test_what_cannot_be_a_thought_is_not_delayed(load_dialect, text):
    parser = load_dialect("thinking").parser()
    parser.feed("a ")
    assert "".join(x.text for x in parser.feed(text)) == text


def test_an_attribute_tag_may_be_long_in_coming(load_dialect):
    parser = load_dialect("thinking").parser()
    text = '<thinking thought="' + "word " * 1500 + '" />done'
    parts = [*(part for c in text for part in parser.feed(c)), *parser.close()]
    assert len(parts[0].text) == 7500


def test_a_call_inside_a_thought_never_runs(events):
    text = (
        '<thinking>maybe <execute>[{"name": "f", "args": {}}]</execute> or §EXECUTE </thinking>ok'
    )
    assert [e["type"] for e in events("thinking+xml", text)] == ["think", "respond"]
    assert [e["type"] for e in events("thinking+section", text)] == ["think", "respond"]


def test_a_call_inside_a_thought_that_follows_an_open_quote_never_runs(
    same_in_any_chunking, to_events
):
    text = f'<execute>["a</execute> <thinking>x <execute>{CALL}</execute></thinking>'
    types = [e["type"] for e in to_events(same_in_any_chunking("thinking+xml", text))]
    assert "execute" not in types
    assert "call" not in types


def test_a_tag_inside_a_call_is_part_of_its_arguments(events):
    runs = [
        {"type": "call", "name": "f", "args": {"a": "<thinking>x</thinking>"}},
        {"type": "execute"},
    ]
    assert events("thinking+xml", f"<execute>{CALL}</execute>") == runs
    assert events("thinking+section", f"§CALL: {CALL[1:-1]}\n§EXECUTE") == runs


def test_the_tags_of_the_wrapped_dialect_still_count(events):
    text = f"<thinking>a</thinking><think>b</think>c<execute>{CALL}</execute>"
    assert [e["type"] for e in events("thinking+xml", text)] == [
        "think",
        "think",
        "respond",
        "call",
        "execute",
    ]
    assert events(
        "thinking+section", "<think>a</think>§think: b <think> §respond: c<think>d</think>"
    ) == [
        thought("a"),
        thought("b <think>"),
        said("c"),
        thought("d"),
    ]


def test_further_tags_can_be_given(to_events):
    parser = plugins.load_plugin("dialects", "thinking").over(named("xml"), ["analysis"]).parser()
    text = "<thinking>p</thinking>r<analysis>q</analysis>s<thinking>t"
    parts = [*parser.feed(text), *parser.close()]
    assert to_events(parts) == [thought("p"), said("r"), thought("q"), said("s<thinking>t")]


def test_tags_that_the_user_names_count_in_the_dialect_thinking_too(to_events):
    parser = with_thought_tags(named("thinking"), ["analysis"]).parser()
    parts = [*parser.feed("r<analysis>q</analysis>s<thinking>t</thinking>"), *parser.close()]
    assert to_events(parts) == [said("r"), thought("q"), said("s"), thought("t")]


def test_a_tag_must_be_a_name():
    with pytest.raises(UsageError, match="tag name"):
        plugins.load_plugin("dialects", "thinking").over(named("xml"), ["<think>"])


def test_wrapping_twice_is_wrapping_once():
    twice = thinking(thinking(named("xml")))
    assert isinstance(twice, Thinking)
    assert type(twice.parser()) is type(named("xml").parser())


def test_the_wrapped_dialect_keeps_its_name_and_words(tools):
    inner = plugins.load_plugin("dialects", "xml")
    outer = plugins.load_plugin("dialects", "thinking").over(inner)
    assert (outer.name, outer.native) == ("xml", False)
    assert outer.instructions(tools) == inner.instructions(tools)
    assert outer.grammar(tools) == inner.grammar(tools)
    assert outer.shots(tools) == inner.shots(tools)


class Shouting:
    """The parser of a dialect that knows nothing of thought tags."""

    def __init__(self):
        self.stopped = False
        self.seen = ""

    def feed(self, text):
        self.seen += text
        self.stopped = "STOP" in self.seen
        return [p.Text(text.upper())]

    def close(self, *, cut=False):
        return [p.Close()]


def test_a_dialect_that_cannot_read_tags_is_given_the_text_without_them():
    inner = Shouting()
    parser = FilterParser(inner, ThoughtTags(anywhere=("think",)))
    parts = [*parser.feed("a<th"), *parser.feed("ink>b</think>c"), *parser.close()]
    assert parts == [p.Text("A"), p.Thought("b"), p.Close(), p.Text("C"), p.Close()]
    assert inner.seen == "ac"


def test_the_filter_stops_with_the_dialect_inside_it():
    parser = FilterParser(Shouting(), ThoughtTags(anywhere=("think",)))
    parts = parser.feed("STOP<think>b</think>c")
    assert parts == [p.Text("STOP")]
    assert parser.stopped


def test_tags_in_a_long_line_do_not_read_it_again_and_again(monkeypatch):
    lengths = []
    opening = fences._OPENING
    monkeypatch.setattr(fences, "_OPENING", lambda line: lengths.append(len(line)) or opening(line))
    parser = thinking(named("native"), ThoughtTags(anywhere=("think",))).parser()
    for _ in range(1000):
        parser.feed("``` <think > text")
    assert max(lengths) <= 1000
    assert not any(isinstance(part, p.Thought) for part in parser.close())
