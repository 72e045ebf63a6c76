"""A small server of this machine that answers as the chat API and the messages API do; the notebook
`tape.ipynb` calls it in place of a provider.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = {
    "chat": ["Warm", " air", " rises", "."],
    "tool": ["It", " is", " 21", " degrees", " in", " the", " greenhouse", "."],
}
ARGUMENTS = ('{"sensor":', ' "a"}')


def start_server():
    """Start the server; return its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


class Model(BaseHTTPRequestHandler):
    """Calls the first tool that it is offered, once, and then answers in words."""

    def do_POST(self):
        """Answer a request of either API."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        called = any(m["role"] == "tool" or "tool_result" in str(m) for m in body["messages"])
        tool = "" if called or not body.get("tools") else find_name(body["tools"][0])
        words = WORDS["tool" if called else "chat"]
        messages = self.path.endswith("/messages")
        stream, whole = (answer_messages if messages else answer_chat)(body["model"], words, tool)
        self.send_response(200)
        if not body.get("stream"):
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(whole).encode())
            return
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for chunk in stream:
            name = f"event: {chunk['type']}\n" if messages else ""
            self.wfile.write(f"{name}data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"" if messages else b"data: [DONE]\n\n")

    def log_message(self, *_):
        """Print nothing below the cell."""


def find_name(tool):
    """Return the name of a tool, as either API describes it."""
    return tool["name"] if "name" in tool else tool["function"]["name"]


def answer_chat(model, words, tool):
    """Return the chunks and the whole of a chat completion."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    call = {"id": "call_1", "type": "function"}
    if tool:
        calls = [{**call, "function": {"name": tool, "arguments": "".join(ARGUMENTS)}}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        deltas = [{"index": 0, **call, "function": {"name": tool, "arguments": ""}}]
        deltas += [{"index": 0, "function": {"arguments": piece}} for piece in ARGUMENTS]
        deltas = [{"tool_calls": [delta]} for delta in deltas]
    else:
        message = {"role": "assistant", "content": "".join(words)}
        deltas = [{"content": word} for word in words]
    reason = "tool_calls" if tool else "stop"
    usage = {"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    stream = [{**base, "choices": [choice]} for choice in choices]
    stream.append({**base, "choices": [], "usage": usage})
    whole = {"index": 0, "message": message, "finish_reason": reason}
    return stream, {**base, "object": "chat.completion", "choices": [whole], "usage": usage}


def answer_messages(model, words, tool):
    """Return the events and the whole of a message."""
    if tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
        whole = {**block, "input": json.loads("".join(ARGUMENTS))}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ARGUMENTS]
    else:
        block = {"type": "text", "text": ""}
        whole = {**block, "text": "".join(words)}
        deltas = [{"type": "text_delta", "text": word} for word in words]
    end = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    usage = {"input_tokens": 40, "output_tokens": 8}
    begun = {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}
    stream = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 8}},
        {"type": "message_stop"},
    ]
    return stream, {**message, **end, "content": [whole], "usage": usage}
