"""Two prompts compared in a real JupyterLab: the summary and the plots, also in a reloaded page."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = """
%load_ext agent_nb
from agent_nb import Agent, Scripted, compare
from agent_nb.models.script_turn import Case, read_turn
reviews = [{"text": f"review {n:02}: the kettle {['boils fast', 'leaks <b>everywhere</b>', 'is loud, and boils'][n % 3]}",
            "label": ["good", "bad", "mixed"][n % 3]} for n in range(48)]
def agent(name, answer, cost):
    said = lambda row: {"text": answer(row), "usage": {"input": 40, "output": 4, "cost": cost}}
    cases = [Case(when=row["text"][:9], turns=(read_turn(said(row), name),)) for row in reviews]
    return Agent(Scripted([], name, cases=cases), name=name)
def number(row):
    return int(row["text"][7:9])
short = agent("short", lambda row: "good" if row["label"] == "mixed" or number(row) % 10 == 1 else row["label"], 0.00012)
careful = agent("careful", lambda row: "mixed" if number(row) % 16 == 3 else row["label"], 0.0004)
def close(answer, row):
    if number(row) == 7:
        raise KeyError("no rating")
    return 1.0 if answer == row["label"] else 0.5 if "mixed" in (answer, row["label"]) else 0.0
labels = {"score": "label", "repeats": 1, "view": None}
a = await short.eval(reviews, 'Good, bad or mixed? {{ text }}', **labels)
b = await careful.eval(reviews, 'Read twice. Good, bad or mixed? {{ text }}', **labels)
c = compare(a, b)
"""


@pytest.fixture(scope="module")
def notebook(opened):
    notebook = opened("lab", name="evaluation", cells=(SETUP,))
    notebook.start(0)
    notebook.wait(0)
    return notebook


def both(notebook, name):
    """Take a picture in each theme."""
    notebook.shot(name)
    notebook.theme("JupyterLab Dark")
    notebook.shot(f"{name}-dark")
    notebook.theme("JupyterLab Light")


def test_an_evaluation_shows_its_figures_and_the_rows_to_look_at(notebook):
    index = notebook.run("a")
    notebook.sees(index, "95 % interval")
    notebook.output(index).locator("summary").first.click()
    both(notebook, "evaluation")
    assert "leaks <b>everywhere</b>" in notebook.output(index).inner_text()


def test_a_comparison_shows_difference_verdict_and_changed_rows(notebook):
    index = notebook.run("c")
    notebook.sees(index, "careful scores higher than short")
    for fold in notebook.output(index).locator("summary").all():
        fold.click()
    both(notebook, "comparison")
    notebook.save()
    notebook.close()
    notebook.open()
    notebook.sees(index, "careful scores higher than short")
    notebook.theme("JupyterLab Light")


def test_the_plots_are_readable(notebook):
    index = notebook.run("b.plot(); c.plot();")
    notebook.output(index).locator("img").nth(1).wait_for()
    both(notebook, "evaluation-plots")


def test_scores_between_0_and_1_have_a_t_interval_and_their_errors_show(notebook):
    notebook.run(
        "close_a = await short.eval(reviews, 'Good, bad or mixed? {{ text }}', score=close, repeats=2, view=None)\n"
        "close_b = await careful.eval(reviews, 'Read twice. Good, bad or mixed? {{ text }}', score=close, repeats=2, view=None)\n"
        "close_c = compare(close_a, close_b)"
    )
    index = notebook.run("display(close_a, close_c); close_a.plot(); close_c.plot();")
    notebook.sees(index, "2 answers without a score")
    notebook.output(index).locator("img").nth(1).wait_for()
    both(notebook, "evaluation-means")
