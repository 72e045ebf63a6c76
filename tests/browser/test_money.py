"""What a run costs, which model took over, what a request waits for, and a budget without a price:
as a person sees them.
"""

import re

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PREPARE = """
import json, os, pathlib, tempfile, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
%load_ext agent_nb

class Handler(BaseHTTPRequestHandler):
    held = threading.Event()

    def reply(self, status, body, kind="application/json"):
        data = body.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if asked["model"] == "large":
            return self.reply(529, json.dumps({"error": {"type": "overloaded_error", "message": "Overloaded"}}))
        if asked["model"] == "slow":
            self.held.wait(600)
        frames = [{"choices": [{"delta": {"content": piece}}]} for piece in ("It is ", "**42**", ".")]
        usage = {"prompt_tokens": 5200, "completion_tokens": 40, "prompt_tokens_details": {"cached_tokens": 4096, "cache_write_tokens": 900}}
        end = {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage}
        self.reply(200, "".join(f"data: {json.dumps(f)}\\n\\n" for f in (*frames, end)) + "data: [DONE]\\n\\n", "text/event-stream")

    def log_message(self, *_): pass

lab = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=lab.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{lab.server_port}/v1"
config = pathlib.Path(tempfile.mkdtemp()) / "config.toml"
config.write_text(f'''
[endpoints.lab]
base_url = "{url}"

[endpoints.spare]
base_url = "{url}"
concurrency = 1
prices = {{ input = 3.0, output = 15.0, cached = 0.3, cache_written = 3.75 }}
''')
os.environ["AGENT_NB_CONFIG"] = str(config)
print(lab.server_port)
"""
HOLD = """
from agent_nb import Agent
waiting = Agent("spare/slow")("hold", view=None).start()
while not waiting.log.of("node"): await __import__("asyncio").sleep(0.05)
print("held")
"""


@pytest.fixture
def front(opened):
    front = opened("lab", name="money")
    front.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    front.run(PREPARE)
    yield front
    front.close()


def test_the_model_that_took_over_and_the_cost_are_in_the_header(front):
    cell = front.add("%%agent -m lab/large,spare/small\nWhat is six times seven?")
    front.start(cell)
    front.wait(cell)
    front.sees(cell, "ℹ")
    text = " ".join(front.output(cell).inner_text().split())
    assert "spare/small instead of lab/large" in text
    assert "going on with spare/small lab is overloaded (529)" in text
    assert re.search(r"5\.2k in · 40 out · \$0\.0058", text)
    assert "4.1k cached · 900 written to the cache" in text
    front.shots("money-fallback")
    broke = front.add("%%agent -m lab/large --budget 0.10\nAnd eight times nine?")
    front.start(broke)
    front.wait(broke)
    front.sees(broke, "the price of lab/large is unknown")
    front.sees(broke, "[prices]")
    front.shots("money-budget")


def test_the_header_says_what_a_request_waits_for(front):
    front.run(HOLD)
    cell = front.add("%%agent -m spare/small\nWhat is six times seven?")
    front.start(cell)
    front.sees(cell, "waiting for a free place at 127.0.0.1:")
    front.sees(cell, "(concurrency 1)")
    front.shots("money-waiting")
    front.button(cell, "■ Stop").click()
    front.wait(cell)
    front.sees(cell, "Stopped")
    assert [e["type"] for e in front.events()][-2:] == ["interrupt", "end"]
