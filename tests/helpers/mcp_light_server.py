"""An MCP server that starts at once, written by hand: `python tests/helpers/mcp_light_server.py`.

For tests of what a server is to the client (when it starts and ends, its name, its environment):
the small server of `mcp_servers` imports the SDK first, which takes a second.
"""

import json
import os
import sys
import time

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING = {"type": "object", "properties": {}}
#: name -> (description, schema of its arguments, what it says to them)
TOOLS = {
    "echo": ("Return the text.", TEXT, lambda args: args["text"]),
    "fail": ("Fail with the text.", TEXT, lambda args: args["text"]),
    "environment": ("Return the environment.", NOTHING, lambda args: json.dumps(dict(os.environ))),
    "process": ("Return the id of the process.", NOTHING, lambda args: str(os.getpid())),
}


def answer(method, params):
    """Return the result of a request, or None if the server does not know the method."""
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "light", "version": "0.1"},
        }
    if method == "tools/list":
        listed = [(name, about, schema) for name, (about, schema, _) in TOOLS.items()]
        return {"tools": [{"name": n, "description": a, "inputSchema": s} for n, a, s in listed]}
    if method == "tools/call":
        said = TOOLS[params["name"]][2](params["arguments"])
        content = [{"type": "text", "text": said}]
        return {"content": content, "isError": params["name"] == "fail"}
    return None


def reply(message):
    """Return the reply to a message; "" to a notification."""
    if "id" not in message:
        return ""
    result = answer(message["method"], message.get("params"))
    unknown = {"error": {"code": -32601, "message": "Method not found"}}
    said = unknown if result is None else {"result": result}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}) + "\n"


if __name__ == "__main__":
    time.sleep(float(os.environ.get("SLOW", "0")))
    for line in sys.stdin:
        sys.stdout.write(reply(json.loads(line)))
        sys.stdout.flush()
