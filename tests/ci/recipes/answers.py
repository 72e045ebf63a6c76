"""Agent cells without effects: prompts and options."""

from .making import Recipe, png

RECIPES = [
    Recipe(
        "answers",
        "settings, an output variable, a thought",
        """
one = Scripted(["Forty-two."])
two = Scripted([{"text": "<think>Short.</think>Really.", "chunk": 4}])
# %%
%%agent -m one --new
What is the answer?
# %%
%%agent -m two -o second --system 'Be short.' --temperature 0.2 --seed 7
Really?
# %%
assert second.answer == "Really."
""",
        runs=2,
    ),
    Recipe(
        "conversation",
        "two conversations, their cells mixed",
        """
a = Scripted(["Paris."])
b = Scripted(["Two million."])
c = Scripted(["In French."])
d = Scripted(["Hello to you."])
# %%
%%agent -m a -c france --new
What is the capital?
# %%
%%agent -m b -c france
How many live there?
# %%
%%agent -m d -c other --new
Hello.
# %%
%%agent -m c -c france
How do they speak?
""",
        runs=4,
    ),
    Recipe(
        "templates",
        "{{ }} of values and of a DataFrame",
        """
import pandas as pd
word = "blue"
table = pd.DataFrame({"x": [1, 2, 3], "y": ["a", "b", "c"]})
m = Scripted(["A fine colour."])
n = Scripted(["Three rows."])
# %%
%%agent -m m --new
What about {{ word }} and {{ 6 * 7 }}?
# %%
%%agent -m n --new
How long is this?
{{ table }}
""",
        runs=2,
    ),
    Recipe(
        "picture",
        "an attached file, an attached variable, and the turn after it",
        """
from pathlib import Path
shade = Path("shade.png").read_bytes()
m = Scripted(["Red."])
n = Scripted(["Still red."])
o = Scripted(["Darker."])
# %%
%%agent -m m --attach shade --new
Which colour?
# %%
%%agent -m n
And what now?
# %%
%%agent -m o --attach dark.png --new
And this?
""",
        {"shade.png": png(), "dark.png": png(90)},
        runs=3,
    ),
    Recipe(
        "script_file",
        "a script beside the notebook",
        """
%%agent -m scripted/lines --new
Say your line.
""",
        {"lines.yaml": "turns:\n  - To be, or not to be.\n"},
    ),
    Recipe(
        "dialects",
        "native calls, text calls in pieces, sections",
        """
@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

called = {"thought": "I add.", "calls": [{"name": "add", "args": {"a": 1, "b": 2}, "id": "c1"}]}
native = Scripted([called, {"text": "Three.", "usage": {"input": 10, "output": 2}}], dialect="native")
xml = Scripted([{"text": call("add", a=3, b=4), "chunk": 5}, "Seven."])
section = Scripted(["Nothing to add."], dialect="section")
# %%
%%agent -m native -t add --new
Add 1 and 2.
# %%
%%agent -m xml -t add --new
Add 3 and 4.
# %%
%%agent -m section --new
Say something.
""",
        runs=3,
    ),
    Recipe(
        "limits",
        "runs that end at a limit",
        """
@tool
def step(n: int) -> int:
    "Take a step."
    return n + 1

m = Scripted([call("step", n=1), call("step", n=2), call("step", n=3), "Done."])
# %%
%%agent -m m -t step --max-calls 2 --new
Go on.
# %%
%%agent -m m -t step --max-turns 1 --new
Go on again.
""",
        runs=2,
    ),
    Recipe(
        "routed",
        "a model of a provider, in an agent cell and in code",
        """
%%agent -m openai/small --new
Say hello.
# %%
run = await Agent("openai/small")("Say it in code.")
run.answer
""",
        runs=2,
    ),
]
