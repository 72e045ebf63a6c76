"""The option line of `%%agent` says what the run should be, or is refused with words that help."""

import pytest

from agent_nb.errors import UsageError
from agent_nb.notebook.option_table import OPTIONS, add_options
from agent_nb.notebook.options import Options, parse, split_words


@pytest.fixture(scope="module")
def parser():
    def agent(line, cell):
        """Run an agent."""

    return add_options(agent).parser


@pytest.fixture
def options(parser):
    return lambda line, **defaults: parse(parser, line, defaults)


def test_an_empty_line_leaves_everything_to_the_defaults(options):
    assert options("") == Options()


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("-m openai/gpt-5", "model", "openai/gpt-5"),
        ("--model=openai/gpt-5", "model", "openai/gpt-5"),
        ("-t list,read -t python", "tools", ("list", "read", "python")),
        ("-t 'list, read,,list'", "tools", ("list", "read")),
        ("-d xml", "dialect", "xml"),
        ("-o answer", "output", "answer"),
        ("-c research", "conversation", "research"),
        ("--new", "new", True),
        ("--live", "live", True),
        ("--approve auto", "approve", "auto"),
        (r"--approve C:\policies\mine.yaml", "approve", r"C:\policies\mine.yaml"),
        ("--no-record", "record", False),
        ("--view text", "view", "text"),
        ("--thoughts hide", "thoughts", "hide"),
        ("--system 'be brief'", "system", "be brief"),
        ("--system \"say 'no' # twice {x} $y\"", "system", "say 'no' # twice {x} $y"),
        (
            "--max-turns 3 --max-tokens 1000 --time 2.5",
            "limits",
            {"turns": 3, "tokens": 1000, "seconds": 2.5},
        ),
        (
            "--max-calls 1 --max-failures 2 --cost .5",
            "limits",
            {"tool_calls": 1, "failures": 2, "cost": 0.5},
        ),
        ("--temperature 0 --seed 7", "settings", {"temperature": 0.0, "seed": 7}),
        ("--budget 2", "limits", {"cost": 2.0}),
        (
            "--max-output 90 --stop END --stop '# '",
            "settings",
            {"max_tokens": 90, "stop": ["END", "# "]},
        ),
        ("--extra '{\"top_k\": 5}'", "settings", {"extra_body": {"top_k": 5}}),
        ("--thought-tags analysis,plan", "thought_tags", ("analysis", "plan")),
        ("--memory summary", "memory", "summary"),
        ("--attach a.png --attach fig", "attach", ("a.png", "fig")),
        ("--reasoning high", "settings", {"reasoning": "high"}),
        ("--reasoning 2048", "settings", {"reasoning": 2048}),
    ],
)
def test_each_option_has_its_effect(options, line, field, value):
    assert getattr(options(line), field) == value


def test_the_line_wins_over_the_configuration(options):
    said = options(
        "-m a/b", model="c/d", tools=["list"], max_turns=None, thoughts="show", approve=""
    )
    assert (said.model, said.tools, said.limits, said.thoughts, said.approve) == (
        "a/b",
        ("list",),
        {},
        "show",
        None,
    )


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("--modl x", "Did you mean --model"),
        ("--frobnicate", "no option --frobnicate"),
        ("explain this", "below the first line"),
        ("-m", "expected one argument"),
        ("--system=--", "cannot be --"),
        ("--stop x --stop=--", "cannot be --"),
        ("--max-turns three", "invalid int"),
        ("--view hologram", "invalid choice"),
        ("--thoughts", "expected one argument"),
        ("-o 2x", "name of a variable"),
        ("--system 'no end", "Unclosed quotation"),
        ("--mod x", "no option --mod"),
        ("--extra '[1]'", r"'\[1\]' is not a JSON object"),
        ("--extra '" + '{"a":' * 2000 + "1" + "}" * 2000 + "'", "nested too deeply"),
    ],
)
def test_what_is_wrong_is_refused_with_a_hint(options, line, named):
    with pytest.raises(UsageError, match=named):
        options(line)


def test_words_keep_backslashes_and_lose_quotes():
    assert split_words(r"""a\b "c d" 'e "f"' #g""") == [r"a\b", "c d", 'e "f"', "#g"]


def test_the_help_names_every_option(parser):
    text = parser.format_help()
    assert all(flag in text for flags, _ in OPTIONS for flag in flags)


def test_a_digit_that_is_no_number_of_tokens_stays_text(options):
    assert options("--reasoning ²").settings == {"reasoning": "²"}
    assert options(f"--reasoning {'9' * 5000}").settings == {"reasoning": "9" * 5000}
