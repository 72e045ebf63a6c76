"""Agents as tools of others."""

from .making import Recipe

PURE = """
@tool
def price(wood: str) -> int:
    "Say a price."
    return {"oak": 61, "pine": 24}[wood]
"""
BUYER = """
child = Scripted([call("price", wood="oak"), "Oak costs 61."])
buyer = Agent(child, [price], name="buyer").as_tool(description="Ask for prices.")
lead = Scripted([call("buyer", prompt="What is oak?"), "It is 61."])
"""

RECIPES = [
    Recipe("sub_agent", "an agent as a tool, with a pure tool of its own", f"""{PURE}{BUYER}
# %%
%%agent -m lead -t buyer -o shelf --new
What does oak cost?
# %%
assert shelf.answer == "It is 61."
"""),
    Recipe("sub_agent_data", "a sub-agent whose tool reads a variable of the notebook", f"""
prices = {{"oak": 61, "pine": 24}}

def price(wood: str) -> int:
    "Say a price."
    return prices[wood]
{BUYER}
# %%
%%agent -m lead -t buyer --new
What does oak cost?
"""),
    Recipe("as_tool", "as_tool in a run of Python code", f"""{PURE}{BUYER}
# %%
run = await Agent(lead, [buyer])("What does oak cost?")
run.answer
"""),
    Recipe("inner_run", "a tool of the notebook that runs an agent itself, and runs again", """
count = 3

async def ask(word: str) -> str:
    "Ask somebody."
    run = await Agent(Scripted(["Somebody says hello."]))(f"{word} {count}", view=None)
    return run.answer

m = Scripted([call("ask", word="hello"), "They say hello."])
# %%
%%agent -m m -t ask --new
Ask them.
""", runs=2),
]  # fmt: skip
