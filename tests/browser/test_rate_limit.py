"""A server behind OPENAI_BASE_URL that refuses twice: its first model in the header, one row that
counts down, and Stop ends the wait.
"""

import re

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PREPARE = """
import json, os, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
%load_ext agent_nb

WAITS = [3, 5]  # seconds that the next refusals ask for

class Handler(BaseHTTPRequestHandler):
    def reply(self, status, body, kind="application/json", **headers):
        data = body.encode()
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.reply(200, json.dumps({"data": [{"id": "nomic-embed-text"}, {"id": "qwen3:4b"}, {"id": "llama3.2:1b"}]}))

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        if WAITS:
            words = "Rate limit reached for qwen3:4b on requests per min: Limit 3, Used 3, Requested 1."
            return self.reply(429, json.dumps({"error": {"message": words}}), **{"retry-after": str(WAITS.pop(0))})
        frames = [{"choices": [{"delta": {"content": piece}}]} for piece in ("It is ", "**42**", ".")]
        end = {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1200, "completion_tokens": 4}}
        self.reply(200, "".join(f"data: {json.dumps(f)}\\n\\n" for f in (*frames, end)) + "data: [DONE]\\n\\n", "text/event-stream")

    def log_message(self, *_): pass

lab = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=lab.serve_forever, daemon=True).start()
os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{lab.server_port}/v1"
os.environ["OPENAI_API_KEY"] = "test-key-for-loopback"
print(lab.server_port)
"""
# Notes each different text of the row that says when the request is made again.
WATCH = """index => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[index].node;
    window.rows_seen = [];
    const look = () => {
        const output = cell.querySelector('.jp-Cell-outputWrapper')?.innerText || '';
        const rows = output.split('\\n').filter(line => line.includes('trying again in'));
        if (rows.length > 1) window.rows_seen.push('several rows');
        else if (rows.length && rows[0] !== window.rows_seen.at(-1)) window.rows_seen.push(rows[0]);
        window.requestAnimationFrame(look);
    };
    look();
}"""


@pytest.fixture
def front(opened):
    front = opened("lab", name="rate-limit")
    front.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    front.run(PREPARE)
    yield front
    front.close()


def test_one_row_counts_down_and_says_afterwards_how_long_it_took(front):
    cell = front.add("%%agent\nWhat is six times seven?")
    front.page.evaluate(WATCH, cell)
    front.start(cell)
    front.sees(cell, " s · try 2")
    front.sees(cell, "waiting to try again")
    front.sees(cell, "try 3")
    front.shots("rate-limit-wait")
    front.wait(cell)
    front.sees(cell, "ℹ")
    rows = front.page.evaluate("() => window.rows_seen")
    print(f"the row read {rows}")
    assert "several rows" not in rows
    read = [re.search(r"trying again in (\d+) s · try (\d)", row).groups() for row in rows]
    seconds = [int(second) for second, number in read if number == "2"]
    more = [int(second) for second, number in read if number == "3"]
    # a busy machine draws fewer than one a second
    assert seconds == sorted(seconds, reverse=True)
    assert more == sorted(more, reverse=True)
    assert seconds[0] <= 3
    assert more[0] <= 5
    assert len(read) >= 4
    port = front.value("lab.server_port")
    text = " ".join(front.output(cell).inner_text().split())
    assert f"openai/qwen3:4b first model of http://127.0.0.1:{port}/v1" in text
    assert re.search(
        rf"Rate limit at 127.0.0.1:{port} \(429\) waited [89](\.\d)? s, 3 tries It is 42\.", text
    )
    assert [e["code"] for e in front.events() if e["type"] == "error"] == ["retry", "retry"]
    front.output(cell).get_by_text("Rate limit at").click()
    front.sees(cell, "Limit 3, Used 3, Requested 1")
    front.shots("rate-limit-open")


def test_stop_ends_the_wait(front):
    front.run("WAITS[:] = [100]")
    cell = front.begin("%%agent\nAnd now?")
    front.sees(cell, "trying again in 1 min 3")
    front.button(cell, "■ Stop").click()
    front.wait(cell)
    front.sees(cell, "Stopped")
    assert [e["type"] for e in front.events()][-2:] == ["interrupt", "end"]
    assert "1 try" in front.output(cell).inner_text()
    front.shots("rate-limit-stopped")
