"""Typed answers in the view: tables for rows, fields for objects, and nothing for other JSON."""

from __future__ import annotations

import json
import re

import pydantic
import pytest
from helpers.output_types import Order, Row
from helpers.waiting import wait

from agent_nb import Agent, Scripted
from agent_nb import events as e
from agent_nb.events.event_json import decode_event, encode_event
from agent_nb.events.text import Answer
from agent_nb.view.cards.base import Context
from agent_nb.view.cards.respond import card as respond
from agent_nb.view.draw import html, terminal, text
from agent_nb.view.layout import page
from agent_nb.view.nodes import Code, Prose, Stack, Table
from agent_nb.view.state.cards import RespondCard
from agent_nb.view.state.fold import RunView
from agent_nb.view.typed_answer import LONGEST_CELL, MOST_COLUMNS, MOST_ROWS, answer_nodes

TEA = {"name": "tea", "price": 3.5}
OIL = {"name": "oil", "price": None}


def of(value, name="T", order=()):
    return answer_nodes(json.dumps(value), name, order)


def tables(found):
    return [node for node in found if isinstance(node, Table)]


def test_rows_are_a_table_in_the_order_of_the_type():
    (table,) = tables(of([TEA, OIL], order=("price", "name")))
    assert table.columns == ("price", "name")
    assert table.rows == (("3.5", "tea"), ("–", "oil"))


def test_rows_with_different_fields_share_a_table():
    (table,) = tables(of([{"a": 1}, {"b": [1, 2]}]))
    assert (table.columns, table.rows) == (("a", "b"), (("1", ""), ("", "[1, 2]")))


def test_an_object_is_fields_and_values_with_tables_of_its_lists_below():
    found = of({"number": 3, "rows": [TEA], "paid": True})
    first, second = tables(found)
    assert first.columns == ("field", "value")
    assert first.rows == (("number", "3"), ("paid", "true"))
    assert second.rows == (("tea", "3.5"),)


@pytest.mark.parametrize(
    ("value", "words"),
    [(3, "3"), (2.5, "2.5"), (True, "true"), (None, "–"), ([], "No items."), ({}, "No fields.")],
)
def test_a_scalar_is_its_value(value, words):
    assert words in "\n".join(text.draw(node) for node in of(value))


def test_a_text_is_markdown():
    assert any(isinstance(node, Prose) for node in of("**bold**"))


def test_a_list_of_scalars_is_one_column():
    (table,) = tables(of(["a", 1]))
    assert (table.columns, table.rows) == (("value",), (("a",), ("1",)))


def test_everything_is_bounded_and_says_what_is_left_out():
    (table,) = tables(of([{f"c{n}": "x" * 300 for n in range(40)}] * 100))
    assert len(table.rows) == MOST_ROWS
    assert len(table.columns) == MOST_COLUMNS
    assert all(len(cell) <= LONGEST_CELL + 1 for row in table.rows for cell in row)
    assert (
        table.note
        == f"{100 - MOST_ROWS} more rows, {40 - MOST_COLUMNS} more columns: output_frame() has them all"
    )
    (below,) = tables(of({"rows": [TEA] * 60}))  # the frame is one row per object of the answer
    assert below.note == "10 more rows"
    (fields,) = tables(of({f"f{n}": n for n in range(300)}))
    assert (len(fields.rows), fields.note) == (MOST_ROWS, f"{300 - MOST_ROWS} more fields")
    assert len(html.page(page(RunView().extend(log([TEA] * 5000))))) < 200_000


@pytest.mark.parametrize(
    "broken", ["", "[{", "not json", "NaN x", "[" * 5000, "[" * 900 + "]" * 900, '{"a":' * 5000]
)
def test_a_typed_text_that_is_not_json_is_shown_as_it_is(broken):
    found = answer_nodes(broken, "T")
    assert isinstance(found[0], Code) or broken.endswith("]")
    assert all(text.draw(node) or node for node in found)


def test_short_cells_stay_on_one_line_and_longer_texts_wrap():
    words = "Please ring the bell at the back door."
    drawn = "".join(map(html.draw_html, of([{"day": "2026-01-01", "n": -3, "note": words}])))
    style = {cell: css for css, cell in re.findall(r'<t[dh][^>]*style="([^"]*)">([^<]*)<', drawn)}
    assert all("white-space:nowrap" in style[cell] for cell in ("day", "2026-01-01", "-3"))
    assert "nowrap" not in style[words]
    assert "min-width:150px" in style[words]  # beside many short cells, too


def test_hostile_values_are_escaped():
    evil = '<img src=x onerror="alert(1)">'
    page_ = html.page(page(RunView().extend(log([{evil: evil}], name=evil))))
    assert "<img" not in page_


def log(value, name="list[Row]", **settings):
    return [
        e.RunStart(seq=1, settings={"output": {"name": name, "schema": {}}, **settings}),
        e.User(seq=2, content="go"),
        e.Respond(
            seq=3, block="1.1", turn=1, content=json.dumps(value), extra={Answer.TYPED: name}
        ),
        e.End(seq=4),
    ]


def test_only_a_marked_text_is_a_table():
    unmarked = [
        x if x.type != "respond" else e.Respond(seq=3, block="1.1", turn=1, content="[1]")
        for x in log([TEA])
    ]
    (card,) = [c for c in RunView().extend(unmarked).cards if isinstance(c, RespondCard)]
    assert not card.typed
    assert not tables([respond(card, Context())])
    (card,) = [c for c in RunView().extend(log([TEA])).cards if isinstance(c, RespondCard)]
    drawn = respond(card, Context())
    assert isinstance(drawn, Stack)
    assert tables(drawn.children)


def heard(turns, output, dialect="native"):
    """Return everything that a subscriber hears of a run, and what its log keeps."""
    seen = []

    async def main():
        made = Agent(Scripted(turns, dialect=dialect), output=output, secrets={})
        stream = made("go", check=False)
        stream.log.subscribe(seen.append)
        return list((await stream).log)

    return seen, wait(main)


def final(document):
    return {"calls": [{"name": "final_answer", "args": document}]}


def states(events):
    return [
        (c.key, c.kind, str(c.text), c.typed, c.done, c.incomplete)
        for c in RunView().extend(events).cards
        if isinstance(c, RespondCard)
    ]


@pytest.mark.parametrize(
    "turns",
    [
        [final({"value": [TEA]})],
        [{"text": "Here it is: ", **final({"value": [TEA]})}],
        [{"text": "Here it is: ", **final({"value": [1]})}, final({"value": [TEA]})],
        [{"text": "no"}, final({"value": [TEA]})],
        [{"text": json.dumps([TEA]), "chunk": 3}],
        [{"text": f"```json\n{json.dumps([TEA])}\n```", "chunk": 3}],
        [{"text": f"[<think>so</think>{json.dumps(TEA)}]", "chunk": 3}],
        [final({"value": [1]})] * 3,
    ],
)
def test_the_cards_are_the_same_with_and_without_deltas(turns):
    seen, kept = heard(turns, list[Row])
    assert any(isinstance(x, e.Delta) for x in seen)
    assert states(seen) == states(kept)


def test_json_that_is_being_written_is_code_and_words_are_prose():
    view = RunView()
    view.apply(log([])[0])
    view.apply(e.Delta(block="1.1", of="respond", text='{"value": [', turn=1))
    card = view.texts.answer
    assert isinstance(respond(card, Context(live=True)), Code)
    view.apply(e.Delta(block="2.1", of="respond", text="Let me see", turn=2))
    assert isinstance(respond(view.texts.answer, Context(live=True)), Prose)


def test_a_text_without_letters_is_no_json_code():
    view = RunView()
    view.apply(log([])[0])
    for text_ in ("", "\n "):
        view.apply(e.Delta(block="1.1", of="respond", text=text_, turn=1))
        assert not view.texts.answer.is_json_code
        assert isinstance(respond(view.texts.answer, Context(live=True)), Prose)
    view.apply(e.Delta(block="1.1", of="respond", text="[", turn=1))
    assert view.texts.answer.is_json_code


def test_the_terminal_shows_the_table_once_and_no_raw_json():
    seen, _ = heard([{"text": "Here it is: ", **final({"value": [TEA]})}], list[Row])
    said = []
    view = RunView()
    painter = terminal.TextPainter(said.append)
    for event in seen:
        view.apply(event)
        painter.paint(view, None)
    whole = "".join(said)
    assert whole.count("name  price") == 1
    assert "{" not in whole
    assert "Here it is:" in whole


def test_json_after_white_space_is_json_from_the_first_character_on():
    seen, _ = heard([{"chunks": ["\n\n", ' {"value": [', json.dumps(TEA), "]}"]}], list[Row], "xml")
    said, view = [], RunView()
    painter = terminal.TextPainter(said.append)
    for event in seen:
        view.apply(event)
        painter.paint(view, 1.0)
    painter.paint(view, None)
    assert "{" not in "".join(said)


def test_an_invalid_answer_that_is_corrected_is_a_step_the_last_an_end():
    _, kept = heard([final({"value": [1]}), final({"value": [TEA]})], list[Row])
    shown = text.draw(page(RunView().extend(kept)))
    assert "The answer has the wrong type" in shown
    assert "No valid answer" not in shown
    _, kept = heard([final({"value": [1]})] * 3, list[Row])
    assert "No valid answer" in text.draw(page(RunView().extend(kept)))


@pytest.mark.parametrize("named", [True, False])
def test_a_saved_notebook_with_sorted_keys_keeps_the_order_of_the_type(named):
    class Place(pydantic.BaseModel):
        town: str
        area: float
        mayor: str | None = None
        bridges: int = 0

    document = {"town": "Ulm", "area": 118.7, "mayor": None, "bridges": 9}
    _, kept = heard([final({"value": [document]})], list[Place])
    saved = json.loads(
        json.dumps([json.loads(encode_event(event)) for event in kept], sort_keys=True)
    )
    if not named:  # as recorded before the names stood in the record
        del saved[0]["settings"]["output"]["fields"]
    shown = text.draw(page(RunView().extend([decode_event(json.dumps(event)) for event in saved])))
    columns = ["town", "area", *(["mayor", "bridges"] if named else ["bridges", "mayor"])]
    assert "  ".join(columns) in re.sub(" {2,}", "  ", shown)


def test_an_object_with_rows_is_shown_in_the_order_of_its_type():
    document = {"note": None, "number": 1, "rows": [TEA]}
    _, kept = heard([final(document)], Order)
    shown = text.draw(page(RunView().extend(kept)))
    assert shown.index("number") < shown.index("note")
