"""Evaluations in notebooks: recorded as maps, replayed offline with the same figures."""

import json

import pytest
from helpers import notebooks

from agent_nb.cli.main import main

pytestmark = pytest.mark.kernel
SETUP = """%load_ext agent_nb
from agent_nb import Agent, compare
from agent_nb.models.parts import Text, Usage
class Model:
    "Answers by the number in the prompt, and counts its requests in a file."
    dialect, grammar, shots, context = "xml", False, False, 0
    def __init__(self, name, answer):
        self.name, self.answer = name, answer
    async def stream(self, request):
        with open("asked.txt", "a") as file:
            file.write(self.name + "\\n")
        yield [Text(self.answer(request.messages[-1].text)), Usage(input=9, output=2)]
    async def aclose(self):
        pass
rows = [{"text": f"number {n:02}", "odd": "yes" if n % 2 else "no"} for n in range(24)]
def number(prompt):
    return int(prompt.split("number ")[1][:2])
guess = Agent(Model("guess", lambda said: "yes"), name="guess")
think = Agent(Model("think", lambda said: "yes" if number(said) % 2 or number(said) == 4 else "no"), name="think")
judge = Agent(Model("judge", lambda said: '{"reason": "so", "score": %.2f}' % (number(said) / 24)), name="judge")"""
A = "a = await guess.eval(rows, 'Odd? {{ text }}', score='odd', repeats=2)\na"
B = "b = await think.eval(rows, 'Think. Odd? {{ text }}', score='odd', repeats=2)\nc = compare(a, b)\nc"
JUDGED = "j = await think.eval(rows, 'Odd? {{ text }}', score=judge, limit=12, repeats=1)\nprint(j, j.tokens)\nj"
FIGURES = "print(a.mean, a.interval, c.difference, c.interval, c.changes, c.tokens)"


@pytest.fixture
def write(tmp_path):
    return lambda *cells: notebooks.write(tmp_path / "n.ipynb", SETUP, *cells)


def asked(path):
    return path.with_name("asked.txt").read_text().splitlines()


def outputs(path):
    """Return what the cells show, without the cards of runs."""
    cells = json.loads(path.read_text())["cells"]
    return [
        "".join(o.get("text") or o["data"]["text/plain"])
        for cell in cells
        for o in cell["outputs"]
        if o["output_type"] in ("stream", "execute_result")
    ]


@pytest.mark.long
def test_an_evaluation_and_a_comparison_replay_with_the_same_figures(write, capsys):
    path = write(A, B, FIGURES)
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    live, requests = outputs(path), asked(path)
    assert requests.count("guess") == requests.count("think") == 48
    assert any("think scores higher than guess" in text for text in live)
    capsys.readouterr()
    assert main(["test", str(path)]) == 0
    assert "2 runs replayed" in capsys.readouterr().out
    assert main(["run", "--inplace", str(path)]) == 0
    assert outputs(path) == live
    assert asked(path) == requests


@pytest.mark.long
def test_a_judge_is_recorded_and_replayed_like_the_answers(write, capsys):
    path = write(JUDGED)
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    live, requests = outputs(path), asked(path)
    assert (requests.count("think"), requests.count("judge")) == (12, 12)
    runs = json.loads(path.read_text())["metadata"]["agent_nb"]["runs"]
    assert [len(listed) for listed in runs.values()] == [2]
    assert main(["run", "--inplace", str(path)]) == 0
    assert outputs(path) == live
    assert asked(path) == requests


@pytest.mark.long
def test_a_changed_prompt_is_not_replayed_with_the_old_answers(write, capsys):
    path = write(A)
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    path.write_text(path.read_text().replace("Odd? {{ text }}", "Is it odd? {{ text }}"))
    requests = asked(path)
    capsys.readouterr()
    assert main(["test", str(path)]) == 1
    assert asked(path) == requests
    assert "48 of 48 rows have no record: rows 0, 1, 2, 3, 4" in capsys.readouterr().out


@pytest.mark.long
def test_a_row_that_an_evaluation_lacks_is_named_once(write, capsys):
    path = write(A)
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    path.write_text(path.read_text().replace("range(24)", "range(1, 25)"))
    capsys.readouterr()
    assert main(["test", str(path)]) == 1
    out = capsys.readouterr().out
    assert "2 of 48 rows have no record: row 23 (row 23 asks" in out
    assert "did not begin" not in out


SCORED = """def score(answer, row):
    return answer == row["odd"]
e = await think.eval(rows, 'Odd? {{ text }}', score=score, limit=6)
e"""
BY_COLUMN = "e = await think.eval(rows, 'Odd? {{ text }}', score='odd', limit=6)\ne"
CHANGES = {
    "a score function": (SCORED, 'row["odd"]', '"yes"', "first of row 0 (1 → 0)"),
    "the code of a score function": (
        SCORED,
        "return answer",
        "return (answer)",
        "its code, but no",
    ),
    "an expected value": (
        BY_COLUMN,
        "score='odd'",
        "score='odd'",
        "first of row 1 (1 → 0)",
    ),
}


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("name", CHANGES)
def test_another_score_than_in_the_record_is_noticed(name, write, capsys):
    cell, old, new, words = CHANGES[name]
    path = write(cell)
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    assert main(["test", str(path)]) == 0
    capsys.readouterr()
    nb = json.loads(path.read_text())
    (setup, scored) = nb["cells"]
    scored["source"] = "".join(scored["source"]).replace(old, new)
    if name == "an expected value":
        setup["source"] = "".join(setup["source"]).replace('"yes" if n % 2', '"yes" if n % 4 == 2')
    path.write_text(json.dumps(nb))
    warned = name == "the code of a score function"
    assert main(["test", str(path)]) == (0 if warned else 1)
    assert words in capsys.readouterr().out


@pytest.mark.long
def test_an_evaluation_recorded_without_scores_replays_and_says_so(write, capsys):
    patch = "import agent_nb.rows.map.driver as d\nasync def none(self): pass\nd.MapDriver._write_final_state = none"
    path = write(f"{patch}\n{SCORED}")
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    capsys.readouterr()
    assert main(["test", "-v", str(path)]) == 0
    assert "the scores of an evaluation are not compared" in capsys.readouterr().out
