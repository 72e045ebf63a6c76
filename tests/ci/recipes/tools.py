"""Tools whose results come from the record, and who approved them."""

from .making import Recipe

SEND = """
@tool(effect="outside")
def send(text: str) -> str:
    "Send a message."
    return "sent " + text

base = 1
"""
POLICY = """default: ask
rules:
  - allow: send
    args: {text: "hello*"}
  - allow: python
"""

RECIPES = [
    Recipe(
        "pure_tools",
        "a decorated function, a plain one, and what they call",
        '''
def twice(n):
    return 2 * n

@tool
def double(x: int) -> int:
    """Double a number.

    x: the number
    """
    return twice(x)

def shout(text: str) -> str:
    "Say it louder."
    return text.upper() + "!"

m = Scripted([calls(("double", {"x": 21}), ("shout", {"text": "hm"})), "Both are done."])
# %%
%%agent -m m -t double,shout --new
Double 21 and shout.
''',
    ),
    Recipe(
        "closures",
        "a tool that a function made, and a wrapped one",
        """
import functools

def loud(function):
    @functools.wraps(function)
    def inner(*args, **named):
        return str(function(*args, **named)) + "!"
    return inner

def times(factor):
    def multiply(x: int) -> int:
        "Multiply a number."
        return factor * x
    return multiply

triple = tool(times(3))

@tool(effect="none")
@loud
def greet(name: str) -> str:
    "Greet somebody."
    return "Hello " + name
# %%
m = Scripted([calls(("multiply", {"x": 5}), ("greet", {"name": "Ann"})), "Fifteen, and hello."])
run = await Agent(m, [triple, greet])("Multiply and greet.")
run.answer
""",
    ),
    Recipe(
        "helpers",
        "a tool of a module of the folder, which calls its functions",
        """
import helpers
price = tool(helpers.price)
m = Scripted([call("price", wood="oak"), "Oak is 122."])
# %%
%%agent -m m -t price --new
What do two metres of oak cost?
""",
        {
            "helpers.py": """
PRICES = {"oak": 61, "pine": 24}

def metres(n):
    return n * 2

def price(wood: str) -> int:
    "Say a price."
    return metres(PRICES[wood])
"""
        },
    ),
    Recipe(
        "shop",
        "a method of an object of the notebook, and a function of a package below src/",
        """
import sys
sys.path.insert(0, "src")
from shop_of_corpus.prices import Shop, charge
shop = Shop({"oak": 61})
price = shop.price
m = Scripted([calls(("price", {"wood": "oak"}), ("charge", {"metres": 2})), "It is 61, and 6."])
# %%
%%agent -m m -t price,charge --new
What does oak cost?
""",
        {
            "pyproject.toml": "",
            "src/shop_of_corpus/__init__.py": "",
            "src/shop_of_corpus/settings.py": "RATE = 3\n",
            "src/shop_of_corpus/prices.py": """
from .settings import RATE

def charge(metres: int) -> int:
    "Say what a delivery costs."
    return metres * RATE

class Shop:
    def __init__(self, prices):
        self.prices = prices

    def price(self, wood: str) -> int:
        "Say a price."
        return self.prices[wood]
""",
        },
    ),
    Recipe(
        "failures",
        "a tool that raises, and a request that is sent again",
        """
@tool
def broken(x: int) -> int:
    "Fail."
    raise ValueError(f"{x} is too much")

m = Scripted([call("broken", x=3), "It failed."])
again = Scripted([{"error": {"status": 503, "message": "busy", "retry_after": 0.01}}, "At last."])
# %%
%%agent -m m -t broken --new
Try it.
# %%
%%agent -m again --new
Try again.
""",
        runs=2,
    ),
    Recipe(
        "progress",
        "a tool that prints, and reports progress",
        """
@tool
def count(n: int) -> int:
    "Count."
    for i in range(n):
        print("at", i)
        yield (i + 1) / n
    return n

m = Scripted([call("count", n=3), "Three."])
# %%
%%agent -m m -t count --new
Count to three.
""",
    ),
    Recipe(
        "allowed",
        "--approve auto, for a tool with effects",
        f"""{SEND}
m = Scripted([call("send", text="hello"), "It is sent."])
# %%
%%agent -m m -t send --approve auto --new
Send hello.
""",
    ),
    Recipe(
        "denied",
        "--approve deny",
        f"""{SEND}
m = Scripted([call("send", text="hello"), "It was not allowed."])
# %%
%%agent -m m -t send --approve deny --new
Send hello.
""",
    ),
    Recipe(
        "policy",
        "a policy file of a folder that is trusted, for the tool python too",
        f"""{SEND}
m = Scripted([call("send", text="hello you"), call("python", code="base + 1"), "Both are done."])
# %%
%%agent -m m -t send,python --approve policy.yaml --new
Send hello and add.
""",
        {"policy.yaml": POLICY},
        trusts=True,
    ),
]
