"""Thought tags in the text of a provider: before the first visible character they are thoughts,
later they are what the answer says. Tags that count anywhere do so outside code fences.
"""

import pytest
from helpers.dialect_reading import as_events, chunkings, merged, named
from helpers.examples import count_examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_nb.agent.parse import with_thought_tags
from agent_nb.models import parts as p

EASY = settings(
    max_examples=count_examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def said(text):
    return {"type": "respond", "content": text}


def thought(text, **attributes):
    return {"type": "think", "content": text, **attributes}


LEADING = [
    ("<think>a</think>b", [thought("a"), said("b")]),
    ("\n \t<think>a</think>\n\nb", [thought("a"), said("b")]),
    ("\ufeff\u200b<think>a</think>b", [said("\ufeff\u200b"), thought("a"), said("b")]),
    (
        "<think></think>\n<thinking>a</thinking> <think>b</think>c",
        [thought("a"), thought("b"), said("c")],
    ),
    ('<thinking thought="a"/><think>b</think>c', [thought("a"), thought("b"), said("c")]),
    ('<think>a</think>{"x": "<thinking>"}', [thought("a"), said('{"x": "<thinking>"}')]),
    ("<think>a <think> b</think>c", [thought("a <think> b"), said("c")]),
    ("<think>a", [thought("a", incomplete=True)]),
]


@pytest.mark.parametrize(("text", "found"), LEADING)
@pytest.mark.parametrize("inner", ["native", "xml", "section"])
def test_a_thought_before_the_first_visible_character_is_a_thought(
    same_in_any_chunking, to_events, inner, text, found
):
    assert to_events(same_in_any_chunking(f"leading+{inner}", text)) == found


LATER = [
    "a <think>b</think> c",
    "Use `<think>` and `</think>`.",
    '{"summary": "<think>x</think> is stripped"}',
    "```xml\n<thinking>x</thinking>\n```",
    "b</think>c",
    "</think>\n<think>b</think>",
    "a <thinking",
    "<b><think>x</think></b>",
    "<thinkable><think>x</think>",
    "<thinking about><thinking>x</thinking>",
    "\u00a0.<think thought='x'/>",
]


@pytest.mark.parametrize("text", LATER)
@pytest.mark.parametrize("inner", ["native", "section"])
def test_a_thought_tag_after_the_first_visible_character_is_text(
    same_in_any_chunking, to_events, inner, text
):
    assert to_events(same_in_any_chunking(f"leading+{inner}", text)) == [said(text.strip())]


@pytest.mark.parametrize("text", LATER)
@pytest.mark.parametrize("cut", [False, True])
def test_text_after_the_lead_is_never_held_back(text, cut):
    parser = named("leading+native").parser()
    parts = [*parser.feed("a "), *(q for c in text for q in parser.feed(c))]
    assert "".join(q.text for q in parts if isinstance(q, p.Text)) == f"a {text}"
    assert [q for q in parser.close(cut=cut) if isinstance(q, p.Text)] == []


def test_the_dialect_xml_reads_its_own_think_anywhere(same_in_any_chunking, to_events):
    text = "a<think>b</think>c<thinking>d</thinking><think>e</think>f"
    assert to_events(same_in_any_chunking("leading+xml", text)) == [
        said("a"),
        thought("b"),
        said("c<thinking>d</thinking>"),
        thought("e"),
        said("f"),
    ]


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ("section", "§RESPOND: <think>b</think>"),
        ("xml", "<respond><thinking>b</thinking></respond>"),
        ("xml", "<execute>[1</execute><thinking>b</thinking>"),
    ],
)
def test_a_marker_of_the_dialect_ends_the_lead(same_in_any_chunking, inner, text):
    parts = same_in_any_chunking(f"leading+{inner}", text)
    assert not [q for q in parts if isinstance(q, p.Thought)]


BITS = [
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "<thinking a='b'/>",
    "<",
    "<th",
    " ",
    "\n",
]
BITS += ["\ufeff", "x", "```\n", '{"a": "', '"}', "§END", "答"]
TEXTS = st.lists(st.sampled_from(BITS), max_size=12).map("".join)


@given(text=TEXTS, rest=TEXTS)
@EASY
def test_whatever_follows_a_visible_character_is_said_as_it_came(text, rest):
    parser = named("leading+native").parser()
    parser.feed(text)
    lead = parser.feed("</thinking></think>.")  # closes whatever is open, and is visible
    assert "." in "".join(q.text for q in lead if isinstance(q, p.Text))
    parts = [*(q for c in rest for q in parser.feed(c)), *parser.close()]
    assert not [q for q in parts if isinstance(q, p.Thought)]
    assert "".join(q.text for q in parts if isinstance(q, p.Text)) == rest


FENCED = [
    "```\n<think>x</think>\n```",
    "~~~~xml\n<think>x</think>\n~~~\n```\n<think>y</think>\n~~~~",
    "- ```py\n  <think>x</think>\n  ```",
    "> ```\n> <think>x</think>\n> ```",
    "```<think>x</think>```",
    "````\n```\n<think>x</think>\n````",
    "```\n<think>x</think> and no end",
]


@pytest.mark.parametrize("text", FENCED)
def test_tags_that_count_anywhere_are_text_in_a_code_fence(same_in_any_chunking, to_events, text):
    assert to_events(same_in_any_chunking("thinking", f"a\n{text}")) == [said(f"a\n{text}")]


def test_after_a_code_fence_tags_count_again(same_in_any_chunking, to_events):
    text = "`` ``` <think>a</think>\n```\n<think>b\n```\n<think>c</think>\n```a``` <think>d</think>"
    assert to_events(same_in_any_chunking("thinking", text)) == [
        said("`` ```"),
        thought("a"),
        said("```\n<think>b\n```"),
        thought("c"),
        said("```a``` <think>d</think>"),
    ]


@given(
    text=st.lists(st.sampled_from([*BITS, "```", "~~~", "- ", "> ", "````\n"]), max_size=14).map(
        "".join
    )
)
@EASY
def test_fences_do_not_depend_on_the_chunks(text):
    found = []
    for chunks in chunkings(text):
        parser = with_thought_tags(named("native"), ["think", "thinking"]).parser()
        found.append(merged([*(q for c in chunks for q in parser.feed(c)), *parser.close()]))
    assert all(parts == found[0] for parts in found)
    assert as_events(found[0]) is not None
