"""The cards on the pages of the book: each is what JupyterLab shows, on light and on dark ground.

`AGENT_NB_SHOTS=examples/book/cards pytest tests/browser/test_book_cards.py` makes the
pictures of the book again; do so when the look of cards changes. Else they are made in a temporary
folder, so that a scene that no longer works is a failure.
"""

import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers.paths import EXAMPLES
from helpers.pictures import opened as opened_picture
from helpers.scripts import calling

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(400)]
CARDS = EXAMPLES / "book" / "cards"
LARGEST = 60_000  # bytes of a picture
ALL = 1_400_000  # bytes of all
COLOURS = 128
MARGIN = 6  # pixels beside a card
SETUP = f"""
%load_ext agent_nb
from typing import Literal
import matplotlib.pyplot as plt
import pandas as pd
from pydantic import BaseModel
from agent_nb import Agent, Scripted, compare, tool
from agent_nb.models.script_turn import Case, read_turn

readings = pd.read_csv("greenhouse/readings.csv", index_col="time", parse_dates=True)
notes = pd.read_csv("feedback/notes.csv", parse_dates=["day"]).head(12)

class Note(BaseModel):
    topic: str
    mood: Literal["glad", "neutral", "annoyed"]
    wish: str | None

class Visit(BaseModel):
    city: str
    year: int
    thousands: int

def shown(args, context):
    return f"#{{args['channel']}}: {{args['text']}}"

@tool(effect="outside", preview=shown)
def post(channel: str, text: str) -> str:
    "Post a message to a channel of the office."
    return f"posted to #{{channel}}"

asking = Scripted([{calling("post", channel="office", text="The lift works again.")!r}, "Posted."])
offering = Scripted([{calling("add_cell", code="print(6 * 7)")!r}, "The cell prints the product."])
slow = Scripted([{{"text": "One after the other: " + "word " * 400, "chunk": 5, "delay": 0.05}}])
typed = Scripted(['[{{"city": "Lisbon", "year": 2025, "thousands": 4600}}, {{"city": "Porto", "year": 2024, "thousands": 2900}}]'])
four = Scripted([{{"text": "Four.", "usage": {{"input": 120, "output": 2, "cost": 0.0003}}}}])
buyer = Agent(Scripted([{{"text": "Oak costs **61** a metre, pine 24."}}]), name="buyer")
ask_buyer = buyer.as_tool("ask_buyer", "Ask the buyer about prices.")
lead = Scripted([{calling("ask_buyer", prompt="What does oak cost?")!r}, "A shelf of two metres of oak costs **122**."])
reviews = pd.DataFrame({{"text": [f"review {{n:02}}" for n in range(40)], "label": ["good", "bad"] * 20}})

def labeler(name, wrong):
    said = lambda n, row: row.label if n % wrong else {{"good": "bad", "bad": "good"}}[row.label]
    cases = [Case(when=row.text, turns=(read_turn({{"text": said(n, row)}}, name),)) for n, row in enumerate(reviews.itertuples())]
    return Agent(Scripted([], name, cases=cases), name=name)
"""
COMPARED = """\
a = await labeler('short', 3).eval(reviews, 'Good or bad? {{ text }}', score='label', repeats=1, name='short', view=None, store=False)
b = await labeler('careful', 20).eval(reviews, 'Read it twice. Good or bad? {{ text }}', score='label', repeats=1, name='careful', view=None, store=False)
compare(a, b)"""


class Scene(NamedTuple):
    """A cell, and a text that its output shows when the picture is taken.

    `press`: a button that is pressed before. `ask`: buttons that answer afterwards. `again`: the
    cell is run a second time. `opened`: a fold that is opened.
    """

    cell: str
    shows: str
    press: str = ""
    ask: tuple[str, ...] = ()
    again: bool = False
    opened: str = ""


SCENES = {
    "question": Scene("%%agent -m asking --context none -t post\nTell the office that the lift works again.", "#office: The lift", ask=("Deny", "Deny")),
    "offered-cell": Scene("%%agent -m offering --context none -t add_cell\nGive me a cell that multiplies six by seven.", "print(6 * 7)"),
    "stopped": Scene("%%agent -m slow --context none\nCount.", "stopped", press="■ Stop"),
    "typed": Scene("%%agent -m typed --context none --output list[Visit] -o busy\nWhich cities had the most visitors in a year?", "Lisbon"),
    "cost": Scene("%%agent -m four --context none\nWhat is two and two?", "$0.0003"),
    "replayed": Scene("%%agent -m four --context none\nWhat is two and two?", "replayed", again=True),
    "sub-agent": Scene("%%agent -m lead --context none -t ask_buyer\nWhat does a shelf of oak cost?", "122", opened="ask_buyer"),
    "figure": Scene("%%agent -m scripted/scripts/which_sensor.yaml -t python,add_cell --approve auto\nWhich sensor of `readings` is wrong, and since when? Look at a plot.", "Sensor b"),
    "map": Scene("%%agent -m scripted/scripts/feedback.yaml --map notes --output Note -o labels --store cards.db\nA note of a visitor: {{ note }}", "12 of 12 rows answered"),
    "comparison": Scene(COMPARED, "careful scores higher than short"),
}  # fmt: skip


@pytest.fixture(scope="module")
def notebook(opened, server):
    for folder in ("greenhouse", "feedback", "scripts"):
        shutil.copytree(EXAMPLES / folder, server.root / folder, dirs_exist_ok=True)
    notebook = opened("lab", name="cards", cells=(SETUP,))
    notebook.page.set_viewport_size({"width": 860, "height": 1100})
    notebook.command("application:toggle-left-area")
    notebook.start(0)
    notebook.wait(0)
    return notebook


def photograph(notebook, cell, path):
    """Write a small picture of what a cell shows."""
    notebook.page.mouse.move(0, 0)
    outputs = notebook.output(cell).locator(".jp-OutputArea-output").all()
    shown = max(outputs, key=lambda output: (output.bounding_box() or {"height": 0})["height"])
    shown.scroll_into_view_if_needed()
    box = shown.bounding_box()
    clip = {
        "x": box["x"] - MARGIN,
        "y": box["y"],
        "width": box["width"] + 2 * MARGIN,
        "height": box["height"],
    }
    picture = opened_picture(notebook.page.screenshot(clip=clip, caret="hide"))
    picture.convert("RGB").quantize(COLOURS, dither=0).save(path, optimize=True)


@pytest.mark.parametrize("name", SCENES)
def test_the_card_is_shown_and_its_picture_is_small(notebook, name, tmp_path):
    folder, scene = Path(os.environ.get("AGENT_NB_SHOTS") or tmp_path), SCENES[name]
    cell = notebook.begin(scene.cell)
    if scene.press:
        notebook.sees(cell, "word word")
        notebook.button(cell, scene.press).click()
    if not scene.ask:
        notebook.wait(cell)
    if scene.again:
        notebook.start(cell)
        notebook.wait(cell)
    notebook.sees(cell, scene.shows)
    if scene.opened:
        notebook.unfold(cell, scene.opened)
    if name == "figure":
        notebook.output(cell).locator("img").first.wait_for()
    for theme in ("Light", "Dark"):
        notebook.theme(f"JupyterLab {theme}")
        path = folder / f"{name}-{theme.lower()}.png"
        photograph(notebook, cell, path)
        assert path.stat().st_size < LARGEST
    notebook.theme("JupyterLab Light")
    if scene.ask:
        notebook.press(cell, *scene.ask)
        notebook.wait(cell)


def test_the_book_shows_each_card_once():
    pages = "".join(page.read_text() for page in (EXAMPLES / "book").rglob("*.md"))
    shown = re.findall(r"^```\{card\} ([\w-]+)$", pages, re.MULTILINE)
    files = {f"{name}-{theme}.png" for name in SCENES for theme in ("light", "dark")}
    assert sorted(shown) == sorted(SCENES)
    assert {path.name for path in CARDS.iterdir()} == files
    assert sum(path.stat().st_size for path in CARDS.iterdir()) < ALL
