"""The client that the MCP conformance suite tests: `python mcp_conformance.py URL`.

It is agent_nb as people use it: an agent whose model calls the tool of the scenario, and a user who
agrees to every question and takes the defaults.
"""

import builtins
import json
import os
import sys

from agent_nb import Agent, Scripted, mcp_server

CALLS = {
    "tools_call": ("add_numbers", {"a": 5, "b": 3}),
    "elicitation-sep1034-client-defaults": ("test_client_elicitation_defaults", {}),
    "sse-retry": ("test_reconnection", {}),
}


class User:
    """A main thread whose user says yes and then takes every default."""

    async def call(self, function):
        said = iter(["y"])
        builtins.input = lambda _: next(said, "")
        return function()


def main(url):
    name, args = CALLS.get(os.environ.get("MCP_CONFORMANCE_SCENARIO", ""), ("", {}))
    batch = json.dumps([{"name": name, "args": args}])
    turns = [f"<execute>{batch}</execute>", "done"] if name else ["done"]
    server = mcp_server("conformance", url=url)
    run = Agent(Scripted(turns), [server], approve="auto", host=User()).run_sync("go", check=False)
    results = run.log.of("result")
    print(run.status, run.reason, [r.content for r in results])
    return 0 if run.status == "ok" and all(r.status == "ok" for r in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1]))
