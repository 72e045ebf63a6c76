"""Seeded changes of the corpus, each with the start of the first line that `test` must print.

`file`: the change is in this file beside the notebook, else in its cells. `old` occurs there once;
if it is empty, `new` is the whole content. `warned`: `test` passes, and a line contains `expected`.
"""

from dataclasses import dataclass

from ci.recipes import png


@dataclass(frozen=True)
class Change:
    """One change."""

    recipe: str
    old: str
    new: str | bytes
    expected: str
    file: str = ""
    options: tuple[str, ...] = ()
    warned: bool = False


ANSWER, REALLY = 'cell 3 (cell3) "What is the answer?": ', 'cell 4 (cell4) "Really?": '
STALE = "Nothing to replay: this cell is stale ({} changed)"
DRIFT = 'cell 3 (cell3) "Run it.": python gave another result when it ran again'
RUN = "Nothing to replay: the run differs from its record ({})"
PRICE = 'cell 3 (cell3) "What do oak and elm cost?": price gave another result when it ran again'
LIVE = 'cell 4 (cell4) "How many live there?": '
UNKNOWN = "cell 5 (cell5): Nothing to replay: this cell has no record of the run."
REFUSED = "cell 5 (cell5), line 4: RunFailed: The run failed: {} is not asked."
KEPT = 'assert said.stdout == "kept\\n", said.stdout'
WELL = 'm = Scripted(["All is well."])'
SHELF = 'cell 3 (cell3) "What does oak cost?": '

INPUTS = [
    Change(
        "answers",
        "What is the answer?",
        "What is the question?",
        'cell 3 (cell3) "What is the question?": ' + STALE.format("prompt"),
    ),
    Change("answers", "Forty-two.", "Forty-three.", ANSWER + STALE.format("model")),
    Change("answers", "-m one --new", "-m two --new", ANSWER + STALE.format("model")),
    Change("answers", "-m one --new", "-m one -t python --new", ANSWER + STALE.format("tools")),
    Change("answers", "-m one --new", "-m one -d section --new", ANSWER + STALE.format("settings")),
    Change("answers", "Be short.", "Be long.", REALLY + STALE.format("settings")),
    Change("answers", "--temperature 0.2", "--temperature 0.3", REALLY + STALE.format("settings")),
    Change("answers", "--seed 7", "--seed 8", REALLY + STALE.format("settings")),
    Change(
        "answers",
        "-o second",
        "-o third",
        "cell 5 (cell5), line 1: NameError: name 'second' is not defined",
    ),
    Change("answers", "Really?", "Truly?", 'cell 4 (cell4) "Truly?": ' + STALE.format("prompt")),
    Change(
        "conversation",
        "Paris.",
        "Lyon.",
        'cell 3 (cell3) "What is the capital?": ' + STALE.format("model"),
    ),
    Change(
        "conversation",
        "-m b -c france",
        "-m b -c france --new",
        LIVE + STALE.format("conversation"),
    ),
    Change(
        "conversation",
        "-m c -c france",
        "-m c -c other",
        'cell 6 (cell6) "How do they speak?": ' + STALE.format("conversation"),
    ),
    Change(
        "conversation",
        "How many live",
        "How few live",
        'cell 4 (cell4) "How few live there?": ' + STALE.format("prompt"),
    ),
    Change(
        "templates",
        '"blue"',
        '"red"',
        'cell 3 (cell3) "What about {{ word }} and {{ 6 * 7 }}?": ' + STALE.format("prompt"),
    ),
    Change(
        "templates",
        "[1, 2, 3]",
        "[1, 2, 4]",
        'cell 4 (cell4) "How long is this?": ' + STALE.format("prompt"),
    ),
    Change(
        "templates",
        "6 * 7",
        "6 * 8",
        'cell 3 (cell3) "What about {{ word }} and {{ 6 * 8 }}?": ' + STALE.format("prompt"),
    ),
    Change(
        "script_file",
        "To be, or",
        "To go, or",
        'cell 2 (cell2) "Say your line.": ' + STALE.format("model"),
        "lines.yaml",
    ),
    Change(
        "dialects", '"a": 1', '"a": 2', 'cell 3 (cell3) "Add 1 and 2.": ' + STALE.format("model")
    ),
    Change(
        "dialects",
        "-m xml -t add",
        "-m xml",
        'cell 4 (cell4) "Add 3 and 4.": ' + STALE.format("tools"),
    ),
    Change(
        "limits",
        "Go on again.",
        "Go on and on.",
        'cell 4 (cell4) "Go on and on.": ' + STALE.format("prompt"),
    ),
    Change(
        "routed",
        "-m openai/small",
        "-m openai/large",
        'cell 2 (cell2) "Say hello.": ' + STALE.format("model"),
    ),
    Change(
        "routed",
        'Agent("openai/small")',
        'Agent("openai/large")',
        "cell 3 (cell3): " + RUN.format("model"),
    ),
    Change(
        "routed", "Say it in code.", "Say it in words.", "cell 3 (cell3): " + RUN.format("prompt")
    ),
    Change(
        "routed",
        "Say hello.",
        "Say goodbye.",
        'cell 2 (cell2) "Say goodbye.": ' + STALE.format("prompt"),
    ),
    Change(
        "pure_tools",
        "-t double,shout",
        "-t double",
        'cell 3 (cell3) "Double 21 and shout.": ' + STALE.format("tools"),
    ),
    Change("failures", '"busy"', '"away"', 'cell 4 (cell4) "Try again.": ' + STALE.format("model")),
    Change(
        "allowed",
        'text="hello"',
        'text="bye"',
        'cell 3 (cell3) "Send hello.": ' + STALE.format("model"),
    ),
]
CODE = [
    Change("awaited", "Double 4.", "Double 5.", "cell 3 (cell3): " + RUN.format("prompt")),
    Change("awaited", "Eight.", "Nine.", "cell 3 (cell3): " + RUN.format("model")),
    Change("awaited", "Agent(m, [double])", "Agent(m)", "cell 3 (cell3): " + RUN.format("tools")),
    Change(
        "awaited",
        "Agent(m, [double])",
        "Agent(m, [double], system='Be short.')",
        "cell 3 (cell3): " + RUN.format("settings"),
    ),
    Change(
        "awaited",
        'Scripted(["Two."])',
        'Scripted(["Three."])',
        "cell 4 (cell4): " + RUN.format("model"),
    ),
    Change(
        "awaited",
        'await Agent(Scripted(["Two."]))("Say two.")',
        "None",
        "cell 4 (cell4): 1 of 2 recorded runs did not begin",
    ),
    Change("loop", "range(5)", "range(4)", "cell 3 (cell3): 1 of 5 recorded runs did not begin"),
    Change(
        "loop",
        "range(5)",
        "range(6)",
        "cell 3 (cell3): Nothing to replay: all 5 recorded runs of this cell are played already",
    ),
    Change("loop", "n % 3", "n % 2", "cell 3 (cell3): " + RUN.format("prompt")),
    Change("gathered", '"B."', '"X."', "cell 3 (cell3): " + RUN.format("model")),
    Change("gathered", "Say it.", "Say that.", "cell 3 (cell3): " + RUN.format("prompt")),
    Change("synced", "Double 4.", "Double 5.", "cell 3 (cell3): " + RUN.format("prompt")),
    Change("thread", "Double 4.", "Double 5.", "cell 3 (cell3): " + RUN.format("prompt")),
    Change("iterated", "Double 4.", "Double 5.", "cell 3 (cell3): " + RUN.format("prompt")),
    Change("unseen", "Double 4.", "Double 5.", "cell 3 (cell3): " + RUN.format("prompt")),
    Change("unseen", '"Eight."])', '"Nine."])', "cell 3 (cell3): " + RUN.format("model")),
    Change(
        "module",
        "Say {word}.",
        "Tell {word}.",
        "cell 3 (cell3): " + RUN.format("prompt"),
        "asking.py",
    ),
    Change("module", "Here is", "There is", "cell 3 (cell3): " + RUN.format("model"), "asking.py"),
    Change(
        "module",
        '("one", "two")',
        '("one", "three")',
        "cell 3 (cell3): " + RUN.format("prompt, model"),
    ),
    Change("as_tool", "It is 61.", "It is 62.", "cell 3 (cell3): " + RUN.format("model")),
    Change("sub_agent", 'It is 61."])\n', 'It is 62."])\n', SHELF + STALE.format("model")),
    Change("inner_run", "count = 3", "count = 4", 'cell 3 (cell3) "Ask them.": '),
    Change("inner_run", "Somebody says", "Nobody says", 'cell 3 (cell3) "Ask them.": '),
    Change(
        "widgets",
        "display(out)",
        "display(outer)",
        "cell 2 (cell2), line 4: NameError: name 'outer' is not defined",
    ),
    Change(
        "widgets",
        "IntSlider(3)",
        "IntSlider(three)",
        "cell 3 (cell3), line 4: NameError: name 'three' is not defined",
    ),
    Change(
        "plain", 'print("kept")', 'print("lost")', "cell 4 (cell4), line 1: AssertionError: lost"
    ),
]
NEW = [  # runs without a record; each would find its provider
    Change("plain", WELL, f'await Agent("openai/small")("New?")\n{WELL}', UNKNOWN),
    Change("plain", WELL, f'await Agent("anthropic/small")("New?", view=None)\n{WELL}', UNKNOWN),
    Change(
        "plain", WELL, f'async for _ in Agent("openai/small")("New?"):\n    pass\n{WELL}', UNKNOWN
    ),
    Change(
        "plain",
        WELL,
        f'import asyncio\nawait asyncio.to_thread(Agent("openai/small").run_sync, "New?")\n{WELL}',
        UNKNOWN,
    ),
    Change(
        "plain",
        WELL,
        f'class Other(Scripted):\n    pass\n\nawait Agent(Other(["No."]))("New?")\n{WELL}',
        UNKNOWN,
    ),
    Change(
        "plain",
        WELL,
        f'await Agent("openai/small")("New?", record=False)\n{WELL}',
        REFUSED.format("openai/small"),
    ),
    Change(
        "plain",
        WELL,
        f'await watch("http://127.0.0.1:9/runs")\n{WELL}',
        "cell 5 (cell5), line 4: UsageError: 127.0.0.1 is not asked.",
    ),
    Change(
        "plain",
        KEPT,
        "%%agent -m openai/small --new\nNew?",
        'cell 4 (cell4) "New?": there is no record',
    ),
]
KERNEL = [
    Change("python", "base = 40", "base = 41", DRIFT),
    Change("python", "base = 40", "bass = 40", DRIFT),
    Change("python", "base + 2", "base + 3", 'cell 3 (cell3) "Run it.": ' + STALE.format("model")),
    Change("python", "--approve auto", "--approve deny", 'cell 3 (cell3) "Run it.": '),
    Change("variables", '"oak": 61', '"oak": 62', PRICE),
    Change("variables", '"pine": 24', '"elm": 24', PRICE),
    Change("variables", "return prices[wood]", "return prices[wood] + 1", PRICE),
    Change(
        "variables",
        "found.append(wood)",
        "found.append(wood[0])",
        "cell 4 (cell4), line 1: AssertionError: ['o', 'e']",
    ),
    Change("sets", '"ash"', '"fir"', DRIFT),
    Change("addresses", "thing = Thing()", "thing = str(Thing)", DRIFT),
    Change("addresses", "thing = Thing()", "Other = type('Other', (), {})\nthing = Other()", DRIFT),
    Change("clock", "timedelta(0)", "timedelta(hours=5)", DRIFT),
    Change("timings", "range(1000)", "[2]", DRIFT),
    Change(
        "tracebacks",
        "base = 3",
        "base = 4",
        'cell 3 (cell3) "Try both.": python gave another result when it ran again',
    ),
    Change(
        "tracebacks",
        "is above",
        "exceeds",
        'cell 3 (cell3) "Try both.": check gave another result when it ran again',
    ),
    Change(
        "tracebacks",
        "ValueError",
        "KeyError",
        'cell 3 (cell3) "Try both.": check gave another result when it ran again',
    ),
    Change("folders", '"x.txt"', '"y.txt"', DRIFT),
    Change("threads", 'name="other"', 'name="another"', DRIFT),
    Change("frames", "63.5", "64.5", DRIFT),
    Change("frames", '"pine", "oak"', '"pine", "elm"', DRIFT),
    Change("randomness", "seed(7)", "seed(8)", DRIFT),
    Change("numbers", '"limit"', '"least"', DRIFT),
    Change("numbers", "2024-05-01", "2024-05-02", DRIFT),
    Change("loading", "pine,24", "pine,25", DRIFT, "wood.csv"),
    Change("loading", "pine,24\n", "", DRIFT, "wood.csv"),
    Change(
        "mixed",
        "base = 40",
        "base = 41",
        'cell 3 (cell3) "Do all three.": python gave another result when it ran again',
    ),
    Change(
        "policy",
        "base = 1",
        "base = 2",
        'cell 3 (cell3) "Send hello and add.": python gave another result when it ran again',
    ),
    Change(
        "policy",
        "allow: python",
        "deny: python",
        'cell 3 (cell3) "Send hello and add.": ',
        "policy.yaml",
    ),
    Change(
        "environment",
        '"nowhere"',
        '"somewhere"',
        'cell 3 (cell3) "Run it.": ' + STALE.format("model"),
    ),
]

SEEN = "`{}` changed since the recording"
BEHIND = "src/shop_of_corpus"


def _tool(recipe, old, new, name, file=""):
    """Two changes: a changed tool is a warning, and an error with `--strict-tools`."""
    for options in ((), ("--strict-tools",)):
        yield Change(recipe, old, new, SEEN.format(name), file, options, warned=not options)


LOOKED = [
    Change("answers", '== "Really."', '== "Never."', "cell 5 (cell5), line 1: AssertionError"),
    Change(
        "awaited",
        '"Double 4."',
        '"Double 4.", history=[first]',
        "cell 3 (cell3), line 1: NameError: name 'first' is not defined",
    ),
    Change(
        "picture",
        "",
        png(91),
        'cell 5 (cell5) "And this?": ' + STALE.format("attachment"),
        "dark.png",
    ),
    Change(
        "picture",
        "",
        png(201),
        'cell 3 (cell3) "Which colour?": ' + STALE.format("attachment"),
        "shade.png",
    ),
    Change(
        "picture",
        "--attach dark.png",
        "",
        'cell 5 (cell5) "And this?": ' + STALE.format("attachment"),
    ),
    *_tool("pure_tools", "return twice(x)", "return 3 * x", "double"),
    *_tool("pure_tools", "2 * n", "n + n + 1", "double"),
    *_tool("pure_tools", "Double a number.", "Double any number.", "double"),
    *_tool("pure_tools", "double(x: int)", "double(x: float)", "double"),
    *_tool("pure_tools", "text.upper()", "text.lower()", "shout"),
    Change(
        "closures",
        "factor * x",
        "factor + x",
        "cell 3 (cell3): multiply gave another result when it ran again",
    ),
    *_tool("closures", "'!'".replace("'", '"'), '"?"', "greet"),
    *_tool("closures", '"Hello "', '"Good day "', "greet"),
    *_tool("helpers", "n * 2", "n * 3", "price", "helpers.py"),
    *_tool("failures", "too much", "too many", "broken"),
    *_tool("progress", '"at"', '"near"', "count"),
    *_tool("limits", "n + 1", "n + 2", "step"),
    *_tool("allowed", '"sent "', '"gone "', "send"),
    *_tool("awaited", "2 * x", "3 * x", "double"),
    *_tool("sub_agent", '"oak": 61', '"oak": 62', "price` of the agent `buyer"),
    *_tool("mixed", "2 * x", "3 * x", "double"),
    Change("sub_agent", "Oak costs 61.", "Oak costs 62.", SHELF),
    Change(
        "sub_agent", "Ask for prices.", "Ask for all prices.", SEEN.format("buyer"), warned=True
    ),
    Change("sub_agent_data", '"oak": 61', '"oak": 62', SHELF),
    Change("sub_agent_data", "Oak costs 61.", "Oak costs 62.", SHELF),
    Change("as_tool", "Oak costs 61.", "Oak costs 62.", "cell 3 (cell3): "),
    Change(
        "reading",
        "Oak is 61.",
        "Oak is 62.",
        'cell 3 (cell3) "What do the notes say?": ',
        "notes.txt",
    ),
    Change("mixed", "7\n", "8\n", 'cell 3 (cell3) "Do all three.": ', "n.txt"),
    Change(
        "figure",
        "",
        png(90, side=8),
        DRIFT,
        "shade.png",
    ),
    Change(
        "figure",
        "",
        png(side=9),
        DRIFT,
        "shade.png",
    ),
    Change("plotted", "[1, 3, 2]", "[1, 2, 3]", DRIFT),
    Change("allowed", "--approve auto", "--approve deny", 'cell 3 (cell3) "Send hello.": '),
    Change(
        "policy",
        "allow: send",
        "deny: send",
        'cell 3 (cell3) "Send hello and add.": ',
        "policy.yaml",
    ),
    Change("numbers", "12 ms", "999 ms", DRIFT),
    Change("numbers", "3.5 s", "350.5 s", DRIFT),
    Change("numbers", "0x1F", "0xDEAD", DRIFT),
    Change("numbers", "/data/2024/x.csv", "/data/2025/x.csv", DRIFT),
    Change("numbers", "10:15:00.5", "11:15:00.5", DRIFT),
    Change("answers", "--seed 7", "--seed 7 --expect error", REALLY),
]

EDGES = [
    *_tool("shop", "RATE = 3", "RATE = 4", "charge", f"{BEHIND}/settings.py"),
    *_tool("shop", "metres * RATE", "metres + RATE", "charge", f"{BEHIND}/prices.py"),
    Change(
        "shop",
        '"oak": 61',
        '"oak": 62',
        'cell 3 (cell3) "What does oak cost?": price gave another result when it ran again',
    ),
    Change(
        "measured",
        "extra = 2.0",
        "extra = 4.0",
        "masked: cell 3, duration: '2.0 s' = '4.0 s'",
        options=("-v",),
        warned=True,
    ),
    Change("measured", "extra = 2.0", "extra = 40.0", DRIFT),
    Change("exact", "extra = 2.0", "extra = 4.0", DRIFT),
]
CHANGES = [*INPUTS, *CODE, *NEW, *KERNEL, *LOOKED, *EDGES]
