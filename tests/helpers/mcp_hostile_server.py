"""An MCP server that says what a client must not pass on: `python mcp_hostile_server.py MODE`.

Without the SDK, which would refuse to send it. `MODE`: `start` fails to start, `list` lists its
tools unreadably, `call` fails each call; else calls succeed.
"""

import json
import sys

SAID = "\x1b[31m\u202eevil\x07\U000e0041"
LONG = 300_000


def answer(mode, message):
    """Return the result or the error of a request."""
    method = message["method"]
    if method == "initialize":
        if mode == "start":
            return {"error": {"code": -1, "message": SAID + "S" * LONG}}
        version = message["params"]["protocolVersion"]
        info = {"name": SAID + "N" * LONG, "version": "1"}
        made = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        return {"result": made}
    if method == "tools/list":
        names = ["a", "B" * LONG, SAID, "<img src=x>", *(["\ud800"] if mode == "list" else [])]
        return {"result": {"tools": [tool(name) for name in names]}}
    if method != "tools/call":
        return {"error": {"code": -32601, "message": "no"}}
    if mode == "call":
        return {"error": {"code": -1, "message": SAID + "C" * LONG}}
    return {"result": {"content": [{"type": "text", "text": "ok"}]}}


def tool(name):
    """Return a tool of this name."""
    schema = {
        "type": "object",
        "$comment": SAID,
        "properties": {"v": {"type": "string", "enum": [SAID, "\t"], "description": SAID}},
    }
    return {"name": name, "description": SAID, "inputSchema": schema}


def progress(message):
    """Return the progress of a call."""
    token = message["params"].get("_meta", {}).get("progressToken")
    said = {"progressToken": token, "progress": 1, "message": SAID + "P" * LONG}
    return {"method": "notifications/progress", "params": said}


def send(message):
    """Write a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            if asked["method"] == "tools/call":
                send(progress(asked))
            send({"id": asked["id"], **answer(sys.argv[1], asked)})
