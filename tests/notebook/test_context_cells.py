"""The cells above as a model reads them, and the cell that failed as a question."""

import pytest
from helpers.asked_models import Asked
from helpers.hostile_objects import HITS, hostile

from agent_nb.agent.context import find_context
from agent_nb.notebook.cell import ran_cells
from agent_nb.notebook.cell.failed_cell import stabilize
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.record.record import METADATA_KEY, RECORD_MIME

CELLS = "-m model --context cells"


def shown(model):
    """Return the part of the prompt about cells."""
    return model.prompt().partition("Cells that ran before, newest first:\n\n")[2]


def test_cells_are_shown_newest_first_with_results_and_tracebacks(notebook):
    model = Asked(["ok"])
    notebook.plain("x = 40\nx + 2", "a")
    notebook.plain("print('hi')", "b")
    notebook.plain("x / 0", "c")
    run = notebook.cell("Why?", CELLS, model=model)
    text = shown(model)
    newest, second, oldest = (text.index(code) for code in ("x / 0", "print('hi')", "x = 40"))
    assert newest < second < oldest
    assert "Out[" in text
    assert ":\n42\n" in text
    assert "ZeroDivisionError: division by zero" in text
    assert "\x1b" not in text
    assert text.endswith("\n\nWhy?")
    assert find_context(list(run.log)).payload["cells"] == 3
    assert "3 cells" in notebook.last[0]["text/plain"]


def test_only_the_mode_cells_shows_cells(notebook):
    model = Asked(["1", "2"])
    notebook.plain("x = 40", "a")
    for mode in ("auto", "vars"):
        notebook.cell("Why?", f"-m model -t python --context {mode} --new", model=model)
        assert "x = 40" not in model.prompt()


def test_a_cell_counts_once_as_it_ran_last(notebook):
    model = Asked(["ok"])
    notebook.plain("1 / 0", "a")
    notebook.plain("1 / 1", "a")
    notebook.cell("Why?", CELLS, model=model)
    assert "1 / 0" not in shown(model)
    assert "1.0" in shown(model)


def test_a_cell_that_the_saved_notebook_lacks_is_not_above_itself(notebook):
    model = Asked(["ok"])
    notebook.plain("x = 40", "a")
    notebook.plain("y = 41", "c1")
    notebook.save(("a", "x = 40"))
    notebook.cell("Why?", CELLS, cell="c1", model=model)
    assert "x = 40" in shown(model)
    assert "y = 41" not in shown(model)


def test_agents_have_their_own_conversation_and_are_left_out(notebook):
    model = Asked(["one", "two"])
    notebook.plain("%agent key\nx = 1", "k")
    notebook.plain("%agent tools", "t")
    notebook.cell("first prompt", CELLS, cell="a", model=model)
    notebook.cell("second", f"{CELLS} --new", cell="b")
    assert shown(model).count("In [") == 1
    assert "%agent" not in shown(model)
    assert "first prompt" not in shown(model)


@pytest.mark.parametrize("how", ["sent", "saved by id", "saved by text"])
def test_a_cell_tagged_agent_exclude_is_never_shown(notebook, how):
    model = Asked(["ok"])
    notebook.plain("open_ = 1", "a")
    notebook.plain(
        "hidden = 2",
        "" if how == "saved by text" else "h",
        ["agent-exclude"] if how == "sent" else None,
    )
    if how != "sent":
        notebook.save(("a", "open_ = 1"), ("h", "hidden = 2", "agent-exclude"), ("c1", "%%agent"))
    notebook.cell("Why?", CELLS, model=model)
    assert "open_ = 1" in shown(model)
    assert "hidden" not in shown(model)


def test_a_deleted_cell_is_forgotten(notebook):
    model = Asked(["1", "2"])
    for cell in "abc":
        notebook.plain(f"in_{cell} = 1", cell)
    for deleted in (["a"], []):
        notebook.deleted = deleted
        notebook.cell("Why?", f"{CELLS} --new --live", model=model)
        assert "in_a" not in shown(model)
        assert "in_b" in shown(model)


def test_a_cell_that_holds_no_code_any_more_is_forgotten(notebook):
    model = Asked(["1"])
    notebook.plain("in_a = 1", "a")
    notebook.plain("in_b = 1", "b")
    notebook.plain("%agent status", "a")
    notebook.cell("Why?", f"{CELLS} --new --live", model=model)
    assert "in_a" not in shown(model)
    assert "in_b" in shown(model)


def test_cells_below_are_not_above(notebook):
    model = Asked(["ok"])
    notebook.plain("above = 1", "a")
    notebook.plain("below = 2", "z")
    notebook.save(("a", "above = 1"), ("c1", "%%agent"), ("z", "below = 2"))
    notebook.cell("Why?", CELLS, model=model)
    assert "above = 1" in shown(model)
    assert "below = 2" not in shown(model)


def test_keys_are_hidden_before_texts_are_cut(notebook, monkeypatch):
    key = "sk-proj-" + "aB3" * 12
    monkeypatch.setenv("OPENAI_API_KEY", key)
    model = Asked(["ok"])
    for size in (1_990, 1_970, 1_950):
        notebook.plain(f"y = '{'x' * size}{key}{'z' * 30_000}'", f"c{size}")
    notebook.cell("Why?", CELLS, model=model)
    assert "redacted" in shown(model)
    assert key[:13] not in model.prompt()


def test_all_cells_together_are_bounded(notebook):
    model = Asked(["ok"])
    for number in range(60):
        notebook.plain(f"y = {number}  # {'word ' * 300}", f"p{number}")
    run = notebook.cell("Why?", CELLS, model=model)
    found = find_context(list(run.log)).payload
    assert found["tokens"] <= 4_000
    assert 3 < found["cells"] < 60
    assert f"… and {60 - found['cells']} earlier cells\n" in shown(model)
    assert "y = 59" in shown(model)


def test_no_object_is_asked_again(notebook, tmp_path):
    model = Asked(["ok"])
    notebook.shell.user_ns.update(hostile(tmp_path))
    notebook.plain("quiet = 1\nquiet", "a")
    HITS.clear()
    run = notebook.cell("Why?", CELLS, model=model)
    assert HITS == []
    assert find_context(list(run.log)).payload["tokens"] <= 4_000


def test_what_ran_before_the_extension_was_loaded_comes_from_the_history(notebook):
    ran_cells.uninstall_history(notebook.shell)
    notebook.plain("early = 41\nearly + 1", "a")
    ran_cells.install_history(notebook.shell)
    model = Asked(["ok"])
    notebook.cell("Why?", CELLS, model=model)
    assert "early = 41" in shown(model)
    assert "42" in shown(model)


@pytest.mark.parametrize("cell", ["a", ""])
def test_a_text_without_an_id_counts_once(notebook, cell):
    notebook.shell.user_ns["n"] = 0
    notebook.plain("1 / n")
    notebook.shell.user_ns["n"] = 1
    notebook.plain("1 / n", cell)
    model = Asked(["ok"])
    notebook.cell("Why?", CELLS, model=model)
    assert shown(model).count("1 / n") == 1
    assert "ZeroDivisionError" not in shown(model)


def test_unloading_leaves_no_hook(shell):
    from agent_nb.notebook import magic

    before = len(shell.events.callbacks["post_run_cell"])
    magic.load_magics(shell)
    magic.load_magics(shell)
    assert len(shell.events.callbacks["post_run_cell"]) == before + 1
    magic.unload_magics(shell)
    assert len(shell.events.callbacks["post_run_cell"]) == before


def test_fix_asks_about_the_cell_that_failed_last(notebook):
    model = Asked(["Divide by one."])
    notebook.plain("1 / 0", "a")
    notebook.plain("x = 1\nx + 'text'", "b")
    notebook.plain("fine = 1", "d")
    run = notebook.cell("It worked yesterday.", "-m model --fix --context none", model=model)
    prompt = model.prompt()
    error = "TypeError: unsupported operand type(s) for +: 'int' and 'str'"
    code = "```python\nx = 1\nx + 'text'\n```"
    assert prompt.startswith(f"This cell fails: {error}\n\n{code}\n\n```\n")
    assert f"\n{error}\n```\n\n" in prompt
    assert prompt.endswith("say how to fix it.\n\nIt worked yesterday.")
    assert run.prompt == prompt


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise ValueError('1 fault for Row\\na\\n  an integer')", "ValueError: 1 fault for Row"),
        ("assert 0, 'a\\nAssertionError: b'", "AssertionError: a"),
        ("raise ExceptionGroup('two', [OSError('a')])", "ExceptionGroup: two (1 sub-exception)"),
        (
            "try:\n    {}['a']\nexcept KeyError:\n    raise OSError('x\\nKeyError: y')",
            "OSError: x",
        ),
    ],
)
def test_fix_begins_with_the_first_line_of_a_longer_message(notebook, code, error):
    model = Asked(["ok"])
    notebook.plain(code, "a")
    notebook.cell("", "-m model --fix", model=model)
    assert f"This cell fails: {error}\n\n" in model.prompt()


def test_fix_needs_no_words(notebook):
    model = Asked(["ok"])
    notebook.plain("1 / 0", "a")
    notebook.cell("", "-m model --fix", model=model)
    assert model.prompt().endswith("Find the cause, and say how to fix it.")


def test_fix_without_a_failed_cell_says_so(notebook):
    model = Asked(["ok"])
    notebook.plain("1 / 0", "a")
    notebook.plain("1 / 1", "a")
    with pytest.raises(AgentCellError, match="found no cell that has failed"):
        notebook.cell("", "-m model --fix", model=model)
    assert model.requests == []


def test_a_stopped_cell_has_not_failed(notebook):
    notebook.plain("raise KeyboardInterrupt", "a")
    with pytest.raises(AgentCellError, match="found no cell that has failed"):
        notebook.cell("", "-m model --fix", model=Asked(["ok"]))


@pytest.mark.parametrize("code", ["%agent help\nhidden = 2", "hidden = 2\n" + "x = 1\n" * 5_000])
def test_an_excluded_cell_without_an_id_is_known_by_its_whole_text(notebook, code):
    model = Asked(["ok"])
    notebook.save(("h", code, "agent-exclude"), ("c1", "%%agent"))
    notebook.plain(code)
    notebook.plain("open_ = 1", "a")
    notebook.cell("go", CELLS, model=model)
    assert "hidden" not in shown(model)
    assert "open_ = 1" in shown(model)


def test_fix_never_sends_a_cell_tagged_agent_exclude(notebook):
    notebook.plain("1 / 0  # hidden", "a", ["agent-exclude"])
    with pytest.raises(AgentCellError, match="found no cell that has failed"):
        notebook.cell("", "-m model --fix", model=Asked(["ok"]))


def test_fix_of_the_same_failure_is_replayed_whatever_its_number(notebook):
    model = Asked(["ok", "other"])
    notebook.plain("1 / 0", "a")
    notebook.cell("", "-m model --fix", model=model)
    notebook.plain("y = 1", "b")
    notebook.shell.execution_count += 5
    notebook.plain("1 / 0", "a")
    notebook.cell("", "-m model --fix")
    assert len(model.requests) == 1
    notebook.plain("1 / 0.0", "a")
    notebook.cell("", "-m model --fix")
    assert len(model.requests) == 2


def test_fix_of_a_mended_notebook_plays_the_record_and_says_so(notebook):
    model = Asked(["ok", "other"])
    notebook.plain("1 / 0", "a")
    first = notebook.cell("Hm.", "-m model --fix", model=model)
    notebook.plain("1 / 1", "a")
    again = notebook.cell("Hm.", "-m model --fix")
    assert again.id == first.id
    assert "no cell has failed here" in notebook.last[0]["text/plain"]
    assert RECORD_MIME in notebook.last[0]
    assert notebook.last[1][METADATA_KEY]["replayed"] is True


def test_fix_of_a_mended_notebook_is_played_with_changed_variables(notebook):
    model = Asked(["ok", "other"])
    notebook.plain("def f():\n    return 1 / 0\nf()", "a")
    first = notebook.cell("", "-m model --fix", model=model)
    notebook.plain("f = 1", "a")
    assert notebook.cell("", "-m model --fix").id == first.id
    assert len(model.requests) == 1


def test_fix_takes_no_other_prompt_for_its_own(notebook):
    notebook.cell("Hm.", "-m model", model=Asked(["ok"]))
    with pytest.raises(AgentCellError, match="found no cell that has failed"):
        notebook.cell("Hm.", "-m model --fix")


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("Hm.", "-m model --fix --live"),
        ("Hm.", "-m model --fix --seed 3"),
        ("Oh.", "-m model --fix"),
    ],
)
def test_fix_of_a_mended_notebook_asks_nothing_anew(notebook, body, line):
    model = Asked(["ok", "other"])
    notebook.plain("1 / 0", "a")
    notebook.cell("Hm.", "-m model --fix", model=model)
    notebook.plain("1 / 1", "a")
    with pytest.raises(AgentCellError):
        notebook.cell(body, line)
    assert len(model.requests) == 1


def test_a_traceback_without_what_differs_from_run_to_run():
    text = (
        "Cell In[12], line 3\n<ipython-input-4-abc12f> in f\n"
        '  File "/home/u/.venv/lib/python3.11/site-packages/pandas/core/frame.py:3\n'
        "File C:\\Users\\u\\lib\\site-packages\\x.py\n"
        "/tmp/ipykernel_31/77.py in <module>   \n<object at 0x7f12ab>\n"
    )
    assert stabilize(text) == (
        "Cell, line 3\n<cell> in f\n"
        '  File "…/site-packages/pandas/core/frame.py:3\n'
        "File …/site-packages\\x.py\n"
        "<cell> in <module>\n<object at 0x…>"
    )


def test_the_command_shows_exactly_what_would_be_sent(notebook, capsys):
    model = Asked(["ok"])
    notebook.plain("x = 40", "a")
    notebook.shell.user_ns["model"] = model
    capsys.readouterr()
    notebook.command("context -m model -t python --context cells")
    said = capsys.readouterr().out
    run = notebook.cell("Why?", "-m model -t python --context cells")
    text = find_context(list(run.log)).payload["text"]
    assert text in said
    assert "shares the user's variables" in said
    assert f"about {find_context(list(run.log)).payload['tokens']:,} tokens" in said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("context", "x: int"),
        ("context -t none", "x: int"),
        ("context --context none", "Nothing about the notebook is sent"),
        ("context -t python", "x: int"),
        ("context -t python --map x", "Nothing about the notebook is sent (--map:"),
    ],
)
def test_the_command_says_what_is_sent(notebook, capsys, line, words):
    notebook.shell.user_ns["x"] = 1
    notebook.command(line)
    assert words in capsys.readouterr().out


def test_an_error_is_not_asked_for_its_words():
    """Where the shell has kept no traceback, the error's own `__str__` is not called again."""
    asked = []
    fault = type("Mine", (ValueError,), {"__str__": lambda _: asked.append(1) or "mine"})("why")
    text = ran_cells._format_fault(fault)
    assert text.endswith("Mine: why")
    assert asked == []


@pytest.mark.parametrize("word", ["x", "/", "ipykernel_1", "/python3.", "/site-packages"])
def test_a_traceback_with_an_endless_word_is_read_in_one_pass(word):
    text = word * (1_000_000 // len(word))
    assert len(stabilize(text)) <= len(text)
