"""Clients that nobody here wrote, with reconnects: curl, a browser's EventSource, the npm package
`eventsource`.

What is missing is a skip with its reason; with CI=true it is a failure.
"""

import importlib.util
import json
import shutil
import subprocess
import threading

import httpx
import pytest
from helpers.lacking import lacking
from helpers.marks import starts
from helpers.ports import take_port

from agent_nb import events as ev
from agent_nb.events.log import EventLog
from agent_nb.server.app import Server, Settings
from agent_nb.server.hub import Hub

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Restarting:
    """One run served by a server that is stopped and started again at the same port."""

    def __init__(self, token):
        self.log = EventLog("r")
        self._token = token
        self._epoch = 0
        self.server = self._serve(take_port())
        self.url = self.server.url

    def _serve(self, port):
        self._epoch += 1
        hub = Hub(epoch=self._epoch)
        hub.attach(self.log)
        return Server(hub, port=port, token=self._token, settings=Settings(keepalive=0.2)).start()

    def feed(self, *events):
        for event in events:
            self.log.append(event)

    def restart(self):
        port = self.server.port
        self.server.stop()
        self.server = self._serve(port)


@pytest.fixture
@starts("slow")
def served(token):
    served = Restarting(token)
    yield served
    served.server.stop()


def first_half(served):
    served.feed(
        ev.User(content="hi \u2028 é"),
        *(ev.Delta(of="respond", block="b", text=t) for t in ("one ", "two")),
    )


def second_half(served):
    served.feed(ev.Respond(content="one two", block="b"), ev.End())


EXPECTED = ["1", "1.1.1", "1.1.2", "2", "3"]


def test_curl_shows_events_as_they_happen_and_resumes(served, token):
    curl = shutil.which("curl") or lacking("curl is not here")
    command = [
        curl,
        "-sN",
        "--noproxy",
        "*",
        "-H",
        f"Authorization: Bearer {token}",
        f"{served.url}/runs/r/events",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        ids = []
        first_half(served)
        for line in process.stdout:
            if not line.startswith("id: "):
                continue
            ids.append(line[4:].strip())
            if ids == EXPECTED[:3]:
                second_half(served)  # what follows is printed because curl is told at once
        assert ids == EXPECTED
        assert process.wait(20) == 0
    again = subprocess.run(
        [*command, "-H", "Last-Event-ID: 1.1.1"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert [line[4:] for line in again.stdout.splitlines() if line.startswith("id: ")] == EXPECTED[
        2:
    ]


def test_curl_gets_json_lines_where_it_asks_for_them(served, token):
    curl = shutil.which("curl") or lacking("curl is not here")
    first_half(served)
    second_half(served)
    command = [
        curl,
        "-sN",
        "--noproxy",
        "*",
        "-H",
        f"Authorization: Bearer {token}",
        "-H",
        "Accept: application/x-ndjson",
    ]
    done = subprocess.run(
        [*command, f"{served.url}/runs/r/events"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert [json.loads(line)["type"] for line in done.stdout.split("\n") if line] == [
        "user",
        "delta",
        "delta",
        "respond",
        "end",
    ]


PAGE = """async token => {
    await fetch('/login', {method: 'POST', headers: {Authorization: 'Bearer ' + token}});
    window.seen = [];
    window.source = new EventSource('/runs/r/events');
    window.source.onmessage = e => window.seen.push([e.lastEventId, JSON.parse(e.data).type]);
}"""


@pytest.mark.browser
def test_a_browsers_event_source_reconnects_where_it_was_and_stops(served, token):
    if importlib.util.find_spec("playwright") is None:
        lacking("Playwright is not here")
    from playwright import sync_api as playwright

    browser_path = next(
        (path for name in BROWSERS if (path := shutil.which(name))), None
    ) or lacking("a browser is not here")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=browser_path,
            args=["--no-sandbox", "--disable-gpu", "--no-proxy-server"],
        )
        page = browser.new_page()
        page.goto(f"{served.url}/health")
        first_half(served)
        page.evaluate(PAGE, token)
        page.wait_for_function("window.seen.length === 3")
        served.restart()
        second_half(served)
        page.wait_for_function("window.source.readyState === EventSource.CLOSED", timeout=60_000)
        seen = page.evaluate("window.seen")
        browser.close()
    types = ["user", "delta", "delta", "respond", "end"]
    # deltas are live only: a server that was restarted has none of the old ones, and repeats
    # nothing
    assert [tuple(pair) for pair in seen] == list(zip(EXPECTED, types, strict=True))


NODE = """
import { EventSource } from 'eventsource'
const [url, token] = process.argv.slice(2)
const source = new EventSource(url, {
  fetch: (input, init) => fetch(input, {...init, headers: {...init.headers, Authorization: 'Bearer ' + token}}),
})
source.onmessage = e => console.log(e.lastEventId + ' ' + JSON.parse(e.data).type)
source.onerror = e => { if (e.code === 204 || source.readyState === source.CLOSED) { source.close(); console.log('closed') } }
"""


@pytest.fixture(scope="session")
def node_package(tmp_path_factory):
    """A folder in which the npm package `eventsource` is installed."""
    if not (shutil.which("npm") and shutil.which("node")):
        lacking("npm is not here")
    folder = tmp_path_factory.mktemp("node")
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    (folder / "client.mjs").write_text(NODE)
    command = [
        shutil.which("npm"),
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--fetch-timeout=20000",
        "eventsource@4",
    ]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=110, check=False
    )
    if done.returncode:
        lacking(f"the npm registry ({done.stderr.strip()[-200:]}) is not here")
    return folder


def test_a_client_that_comes_back_to_a_restarted_server_gets_nothing_twice(served, token):
    with httpx.Client(headers={"Authorization": f"Bearer {token}"}, trust_env=False) as client:
        first_half(served)
        served.restart()
        second_half(served)
        found = client.get(f"{served.url}/runs/r/events", headers={"Last-Event-ID": "1.1.2"}).text
    assert [line[4:] for line in found.splitlines() if line.startswith("id: ")] == ["2", "3"]


@pytest.mark.long
def test_the_npm_event_source_reconnects_where_it_was(served, token, node_package):
    command = [shutil.which("node"), "client.mjs", f"{served.url}/runs/r/events", token]
    seen = []
    with subprocess.Popen(command, cwd=node_package, stdout=subprocess.PIPE, text=True) as process:
        threading.Timer(60, process.kill).start()
        first_half(served)
        for line in process.stdout:
            seen.append(line.strip())
            if len(seen) == 3:
                served.restart()
                second_half(served)
            if line.startswith("closed"):
                process.kill()
                break
    assert seen == ["1 user", "1.1.1 delta", "1.1.2 delta", "2 respond", "3 end", "closed"]
