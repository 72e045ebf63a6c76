"""The line below a cell whose code calls a model itself: while it runs, at its end, replayed."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PREPARE = """
import json, os, threading, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
%load_ext agent_nb
os.environ["OPENAI_API_KEY"] = "not needed"

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        prompt = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"][0]["content"]
        for _ in range(600):
            if prompt == "Quick?" or os.path.exists("tape-goes-on"):
                break
            threading.Event().wait(0.1)
        message = {"role": "assistant", "content": f"An answer to *{prompt}*"}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-5-mini",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1200, "completion_tokens": 40, "total_tokens": 1240}}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_): pass

lab = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=lab.serve_forever, daemon=True).start()
os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{lab.server_port}/v1"

def ask(prompt):
    body = json.dumps({"model": "gpt-5-mini", "messages": [{"role": "user", "content": prompt}]}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
"""
CALLS = "print(ask('Quick?'))\nprint(ask('Why is it warmer under the roof?'))\nprint('The end.')"


@pytest.fixture
def front(opened):
    front = opened("lab", name="tape_line")
    (front.server.root / "tape-goes-on").unlink(missing_ok=True)  # of an earlier try
    front.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    front.run(PREPARE)
    front.run("%agent tape")
    yield front
    front.close()


def test_the_line_counts_calls_while_the_cell_runs_and_stands_last(front):
    cell = front.add(CALLS)
    front.start(cell)
    front.sees(cell, "2 model calls · gpt-5-mini · 1.2k in, 40 out · 1 running")
    front.shots("tape-live")
    front.unfold(cell, "1 running")
    front.sees(cell, "An answer to Quick?")
    front.shots("tape-live-open")
    (front.server.root / "tape-goes-on").touch()
    front.wait(cell)
    front.sees(cell, "2 model calls · gpt-5-mini · 2.4k in, 80 out")
    front.shots("tape-ended")
    text = front.output(cell).inner_text()
    assert not any(word in text for word in ("running", "not from a record"))
    assert text.count("model call") == 1
    assert text.index("The end.") < text.index("model call")
    outputs = front.save()["cells"][cell]["outputs"]
    assert all(output.get("data", True) for output in outputs)
    again = front.run(CALLS)
    front.sees(again, "2 model calls · gpt-5-mini · 2.4k in, 80 out · replayed")
    front.unfold(again, "replayed")
    front.shots("tape-replayed")
    missed = front.run("ask('Quick?'), ask('Another?')")
    front.sees(missed, "1 not from a record")
    front.unfold(missed, "1 not from a record")
    front.shots("tape-missed")
    assert not front.errors()
