"""Terminal IPython on a pseudo-terminal: a cell runs, Ctrl-C ends it, a question is answered on the
keyboard.
"""

import time

import pytest
from helpers.scripts import calling

pytestmark = pytest.mark.kernel

BOUND = 2.0  # s, generous; the test prints what it took (wanted: 0.3 s)


def test_a_run_is_printed_and_left_in_the_namespace(terminal):
    terminal.cell("model = Scripted(['Hello from the script.'])")
    assert "Hello from the script." in terminal.cell("%%agent -m model", "hi", "", "")
    assert "'ok'" in terminal.cell("_agent.status")


def test_ctrl_c_ends_the_run_and_the_next_cell_works(terminal):
    terminal.cell("model = Scripted([{'chunks': ['I am ', 'waiting'], 'delay': 0.01}, ])")
    terminal.cell("slow = Scripted([{'text': 'x', 'delay': 60}])")
    terminal.cell("%%agent -m model", "warm up", "", "")
    for line in ("%%agent -m slow", "hi", "", ""):
        terminal.type(line + "\n")
    terminal.expect("● ")  # the run has begun; before, Ctrl-C is the prompt's
    start = time.monotonic()
    terminal.type("\x03")
    said = terminal.expect(r"\nIn \[\d+\]: ")
    assert "agent: stopped (kernel interrupt)" in said
    assert "Traceback" not in said
    took = time.monotonic() - start
    print(f"the prompt was back {1000 * took:.0f} ms after Ctrl-C")
    assert took < BOUND
    assert "['interrupt', 'end']" in terminal.cell("[e.type for e in _agent.events][-2:]")
    assert "42" in terminal.cell("6 * 7")


@pytest.mark.long
def test_ctrl_c_ends_an_awaited_run_with_one_line_and_the_next_cell_works(terminal):
    terminal.cell("from agent_nb import Agent")
    terminal.cell("stream = Agent(Scripted([{'text': 'x', 'delay': 60}]))('hi')")
    terminal.cell("_ = stream.log.subscribe(lambda event: print('begun:', event.type))")
    terminal.type("await stream\n")
    terminal.expect("begun: node")  # the model is asked
    terminal.type("\x03")
    said = terminal.expect(r"\nIn \[\d+\]: ")
    assert "agent: stopped (kernel interrupt)" in said
    assert "Traceback" not in said
    assert "interrupted" in terminal.cell("stream.run.status")
    assert "42" in terminal.cell("await __import__('asyncio').sleep(0, 42)")


@pytest.mark.long
def test_a_question_is_answered_on_the_keyboard(terminal):
    call = calling("python", code="answered = 6 * 7")
    terminal.cell(f"model = Scripted([{call!r}, 'done'])")
    terminal.type("%%agent -m model -t python\n")
    terminal.expect(r"\.\.\.: ")
    terminal.type("hi\n\n\n")
    assert "answered = 6 * 7" in terminal.expect(r"Allow it\?.*: ")
    terminal.cell("y")
    assert "42" in terminal.cell("answered")


@pytest.mark.long
def test_the_code_of_a_call_that_ran_unasked_is_printed(terminal):
    call = calling("python", code="total = 0\nfor n in range(10):\n    total += n")
    terminal.cell(f"model = Scripted([{call!r}, 'done'])")
    said = terminal.cell("%%agent -m model -t python --approve auto", "hi", "", "")
    assert "    │ total = 0\n    │ for n in range(10):\n    │     total += n\n" in said


@pytest.mark.long
def test_what_a_tool_prints_is_in_the_text_once_and_its_bar_is_a_few_lines(terminal):
    body = r"print('loading'); [print(f'\r{n}%| | {n}/100 [00:01<00:01, 1.0it/s]', end='', flush=True) for n in range(101)]; return 7"
    terminal.cell("def train() -> int:", "    'Train.'", f"    {body}", "")
    call = calling("train")
    terminal.cell(f"model = Scripted([{call!r}, 'done'])")
    said = terminal.cell("%%agent -m model -t train", "hi", "", "")
    assert said.count("loading") == 1
    assert said.count("it/s") <= 3
    assert "\r" not in said


MARKDOWN = "# Result\n\nSome **bold** and `code`.\n\n| a | b |\n|---|--:|\n| x | 12 |\n\n- one\n\n&#27;[2J\x9b2J"


@pytest.mark.long
def test_an_answer_is_drawn_as_markdown(terminal):
    terminal.cell(f"model = Scripted([{{'text': {MARKDOWN!r}, 'chunk': 3}}])")
    terminal.cell("import os; os.environ['TERM'] = 'xterm'; os.environ.pop('NO_COLOR', 0)")
    said = terminal.cell("%%agent -m model", "hi", "", "")
    assert "Some **bold**" not in said
    assert "\x1b[1mResult\x1b[0m" in said
    assert "Some \x1b[1mbold\x1b[0m and \x1b[36mcode\x1b[0m." in said
    assert "x  12" in said
    assert "\x9b" not in said
    assert "\ufffd[2J\ufffd2J" in said


@pytest.mark.long
def test_without_colours_the_marks_stay(terminal):
    terminal.cell("import os; os.environ['NO_COLOR'] = '1'")
    terminal.cell(f"model = Scripted([{MARKDOWN!r}])")
    said = terminal.cell("%%agent -m model", "hi", "", "")
    assert "# Result" in said
    assert "Some **bold** and `code`." in said


@pytest.mark.long
def test_the_figures_of_a_call_are_kept_and_named_with_their_size(terminal):
    pytest.importorskip("matplotlib")
    code = "import matplotlib; matplotlib.use('agg')\nimport matplotlib.pyplot as plt\nplt.figure(figsize=(4, 2)); plt.plot([1, 2])\nplt.figure(); plt.plot([3])"
    terminal.cell(f"model = Scripted([{calling('python', code=code)!r}, 'done'])")
    said = terminal.cell("%%agent -m model -t python --approve auto", "hi", "", "")
    assert said.count("[figure 1: ") == 1
    assert said.count("[figure 2: ") == 1
    assert "pixels]" in said
    kept = "[len(e.attachments) for e in _agent.log if e.type == 'result']"
    assert "[2]" in terminal.cell(kept)
    assert "figure 1" in terminal.cell("[e.content for e in _agent.log if e.type == 'result']")
    assert "[]" in terminal.cell("plt.get_fignums()")
