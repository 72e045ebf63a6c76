"""The input transformer rewrites exactly the cells that begin with our magic, and nothing of their
text is lost.
"""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import TransformerManager

from agent_nb.notebook import transform


class Shell:
    """As much of an IPython shell as the transformer needs."""

    def __init__(self):
        self.manager = TransformerManager()
        self.post = []

    @property
    def input_transformers_cleanup(self):
        return self.manager.cleanup_transforms

    input_transformers_post = property(lambda self: self.post)


@pytest.fixture
def shell():
    shell = Shell()
    transform.install_transformer(shell)
    return shell


def call_of(code):
    """Return the arguments of the one awaited call in `code`."""
    [statement] = ast.parse(code, mode="exec").body
    call = statement.value.value
    assert isinstance(statement.value, ast.Await)
    assert ast.unparse(call.func) == "get_ipython().run_cell_magic"
    return [ast.literal_eval(a) for a in call.args]


@pytest.mark.parametrize("above", ["%%time", "%%capture out", "%%timeit -n1", "%%prun"])
def test_a_magic_above_an_agent_cell_is_an_error_in_words(shell, above):
    with pytest.raises(UsageError, match=f"first line of its cell, not below '{above}'"):
        shell.manager.transform_cell(f"\n{above}\n# note\n\n%%agent -m work\nHi\n")


@pytest.mark.parametrize("above", ["%%writefile a.txt", "%%bash", "%%timed", "%%time\nx"])
def test_an_agent_cell_below_other_text_is_left_to_ipython(shell, above):
    assert "%%agent -m work" in shell.manager.transform_cell(f"{above}\n%%agent -m work\nHi\n")


@pytest.mark.parametrize("above", ["# why", "x = 1", "if x:\n    pass", "%matplotlib inline"])
def test_lines_above_an_agent_cell_are_an_error_in_words(shell, above):
    code = shell.manager.transform_cell(f"{above}\n\n%%agent -m work\nHi\n")
    with pytest.raises(UsageError, match=r"first line of its cell\. Move what is above it"):
        transform.await_attach(code.splitlines(keepends=True))


BODIES = [
    "hello",
    "hello\n",
    "\n\nhello\n\n",
    "quotes \" ' \"\"\" ''' and \\ and \\n",
    "braces {x} {{ y }} $z ${HOME}",
    "unicode § … 中文 \U0001f9ee and \u2028 and \x85",
    "windows\r\nline ends\r\n",
    "%timeit x\n!ls\n?help\nx?",
    ">>> 1 + 1\n2",
    "    indented\n\tand tabbed",
]


@pytest.mark.parametrize("body", BODIES)
def test_the_body_arrives_as_it_was_typed(shell, body):
    cell = "%%agent -m scripted/x.yaml\n" + body
    # IPython itself ends every cell with a newline
    expected = body if body.endswith("\n") else body + "\n"
    assert call_of(shell.manager.transform_cell(cell)) == ["agent", "-m scripted/x.yaml", expected]


@given(st.text())
def test_any_body_survives_the_rewriting(body):
    [line] = transform.rewrite(["%%agent\n", body])
    assert call_of(line) == ["agent", "", body]


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("%%agent\nx", ""),
        ("%%agent   -t list,read  \nx", "-t list,read"),
        ("%%agent\t--new\nx", "--new"),
        ("\n  \n%%agent -c why?\nx", "-c why?"),
        ("%%agent --new\r\nx", "--new"),
        ("In [3]: %%agent --new\n   ...: x", "--new"),
    ],
)
def test_the_options_are_the_rest_of_the_first_line(shell, cell, line):
    assert call_of(shell.manager.transform_cell(cell)) == ["agent", line, "x\n"]


def test_an_indented_cell_is_dedented_as_ipython_does(shell):
    assert call_of(shell.manager.transform_cell("  %%agent\n  a\n    b")) == [
        "agent",
        "",
        "a\n  b\n",
    ]


@pytest.mark.parametrize("cell", ["%%agent?", "%%agent??"])
def test_help_stays_help(shell, cell):
    assert shell.manager.transform_cell(cell).startswith("get_ipython().run_line_magic('pinfo")


OTHERS = [
    "x = 1\n",
    "# %%agent\nx\n",
    "%%agentic\nx\n",
    "%%agent-x\nx\n",
    "%agent help\n",
    "#1\n%%agent\nx\n",
    "\n",
]


@pytest.mark.parametrize("cell", OTHERS)
def test_other_cells_are_left_to_ipython(shell, cell):
    plain = TransformerManager().transform_cell(cell)
    assert shell.manager.transform_cell(cell) == plain


def test_a_cell_being_typed_in_a_terminal_is_complete_at_a_blank_line_only(shell):
    assert shell.manager.check_complete("%%agent")[0] == "incomplete"
    assert shell.manager.check_complete("%%agent\nhello")[0] == "incomplete"
    assert shell.manager.check_complete("%%agent\nhello\n\n")[0] == "complete"


def test_installing_twice_and_uninstalling_leaves_the_shell_as_it_was():
    shell = Shell()
    before = list(shell.input_transformers_cleanup)
    transform.install_transformer(shell)
    transform.install_transformer(shell)
    assert shell.input_transformers_cleanup.count(transform.rewrite) == 2
    transform.uninstall_transformer(shell)
    assert shell.input_transformers_cleanup == before


# Lines that follow a run.


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (
            "%agent attach http://h/runs/r -o x",
            "await get_ipython().run_line_magic('agent', 'attach http://h/runs/r -o x');\n",
        ),
        ("run = %agent attach", "run = await get_ipython().run_line_magic('agent', 'attach')\n"),
        (
            "%agent attach 'http://h/runs/r'",
            "await get_ipython().run_line_magic('agent', \"attach 'http://h/runs/r'\");\n",
        ),
        (
            "run = %agent attach 'r'",
            "run = await get_ipython().run_line_magic('agent', \"attach 'r'\")\n",
        ),
        (
            "runs[0].of['x'] = %agent attach r",
            "runs[0].of['x'] = await get_ipython().run_line_magic('agent', 'attach r')\n",
        ),
        ("%agent attached", "get_ipython().run_line_magic('agent', 'attached')\n"),
        ("%agent status", "get_ipython().run_line_magic('agent', 'status')\n"),
        ("text = '%agent attach x'", "text = '%agent attach x'\n"),
    ],
)
def test_a_line_that_follows_a_run_is_awaited_and_no_other(line, code, shell):
    manager = shell.manager
    assert (
        "".join(transform.await_attach(manager.transform_cell(line).splitlines(keepends=True)))
        == code
    )


def test_texts_that_look_like_it_stay_as_they_are(shell):
    cell = "text = '''\n%agent attach x\n%%agent\n'''\n"
    assert transform.await_attach(
        shell.manager.transform_cell(cell).splitlines(keepends=True)
    ) == cell.splitlines(keepends=True)


def test_the_post_transformer_comes_once_and_goes(shell):
    transform.install_transformer(shell)
    assert shell.post == [transform.await_attach]
    transform.uninstall_transformer(shell)
    assert shell.post == []
