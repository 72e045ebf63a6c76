"""A tool: `-t clock`. Its place is `agent_nb/tools/clock.py`."""

from datetime import datetime

from agent_nb.tools.decorator import as_tool, tool


@tool
def clock() -> str:
    """Return the time of day."""
    return f"{datetime.now():%H:%M}"


tools = (as_tool(clock),)
