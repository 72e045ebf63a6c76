"""An MCP server of the older protocol, written by hand: lines of JSON over pipes.

`python mcp_old_server.py [FOLDER]`; with a folder it leaves there what it was sent. It speaks up by
itself: it asks the user, wants to sample, lists roots, and changes its list of tools.
"""

import json
import sys
from pathlib import Path

TOOLS = [
    ("ask", "Ask the user."),
    ("open", "Send the user to an address."),
    ("sample", "Ask the model of the client."),
    ("roots", "Ask for the folders of the client."),
    ("grow", "Add the tool `grown`, and say so."),
    ("noise", "Write lines that are no messages."),
    ("odd", "Return content of every kind."),
    ("nothing", "Return no content."),
    ("huge", ""),
]
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "the town\u202e\x1b[2J"},
        "days": {"type": "integer", "default": 3},
        "kind": {"type": "string", "enum": ["train", "car"]},
        "stops": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
        "note": {"type": "string"},
        "alone": {"type": "boolean"},
    },
    "required": ["name", "kind", "alone"],
}
REQUESTS = {
    "ask": ("elicitation/create", {"message": "Where to?\x1b]0;x\x07", "requestedSchema": FORM}),
    "open": (
        "elicitation/create",
        {"mode": "url", "message": "Go", "url": "https://evil.example", "elicitationId": "1"},
    ),
    "sample": (
        "sampling/createMessage",
        {"maxTokens": 5, "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]},
    ),
    "roots": ("roots/list", {}),
}
ODD = [
    {"type": "text", "text": "text"},
    {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    {"type": "image", "data": "no base64!", "mimeType": "image/png"},
    {"type": "image", "data": "AAAA", "mimeType": "image/tiff"},
    {"type": "resource_link", "uri": "file:///etc/passwd", "name": "secrets"},
    {"type": "resource", "resource": {"uri": "a://b", "text": "inside", "mimeType": "text/plain"}},
    {"type": "resource", "resource": {"uri": "a://c", "blob": "AAAA"}},
]


class Server:
    def __init__(self, folder):
        self.folder = folder
        self.tools = list(TOOLS)
        self.waiting = {}  # the call behind a request of ours, by its id

    def take(self, message):
        """Answer one message."""
        if self.folder is not None:
            with (self.folder / "received").open("a") as file:
                file.write(json.dumps(message) + "\n")
        method, number = message.get("method"), message.get("id")
        if method is None:
            said = message.get("result", message.get("error"))
            send(id=self.waiting.pop(number), result=text(json.dumps(said)))
        elif method == "initialize":
            send(id=number, result={
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "old", "version": "0.1"},
            })  # fmt: skip
        elif method == "tools/list":
            send(id=number, result={"tools": [described(*tool) for tool in self.tools]})
        elif method == "tools/call":
            self.call(number, message["params"]["name"])
        elif number is not None:
            send(id=number, error={"code": -32601, "message": "Method not found"})

    def call(self, number, name):
        if name in REQUESTS:
            method, params = REQUESTS[name]
            self.waiting[f"own-{number}"] = number
            send(id=f"own-{number}", method=method, params=params)
            return
        if name == "grow":
            self.tools.append(("grown", "Was added."))
            send(method="notifications/tools/list_changed")
        if name == "noise":
            sys.stdout.write("not a message\n{}\n[1, 2]\n\n\x1b[31mred\n")
            sys.stdout.flush()
        odd = {"odd": {"content": ODD}, "nothing": {"content": []}}
        send(id=number, result=odd.get(name, text(name)))


def described(name, about):
    hidden = "\U000e0049\U000e0047\u200b"  # letters that people cannot see
    if name == "huge":
        many = {f"argument{n}": {"type": "string"} for n in range(3_000)}
        return {"name": name, "inputSchema": {"type": "object", "properties": many}}
    schema = {
        "type": "object",
        "properties": {"x": {"type": "string", "description": f"an x{hidden}"}},
    }
    return {"name": name, "description": f"{about}{hidden}", "inputSchema": schema}


def text(said):
    return {"content": [{"type": "text", "text": said}]}


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    server = Server(Path(sys.argv[1]) if sys.argv[1:] else None)
    for line in sys.stdin:
        server.take(json.loads(line))
