"""Redirects: a client that follows one stays on the tape as long as it stays at its server."""

import json

import httpx
import pytest
from helpers.model_server import Server
from helpers.notebooks import write
from tape.taped_server import OPENAI
from tape.test_notebook import TAPE, printed, record, taped

from agent_nb.runner.notebook_check import check_notebook
from agent_nb.tape.exchange import Response


@pytest.mark.parametrize(
    "location",
    [
        "other?a=1",
        "/v1/chat/other?a=1",
        "//{host}/v1/chat/other?a=1",
        "http://{host}/v1/chat/other?a=1",
    ],
)
def test_a_redirect_to_the_same_server_stays_on_the_tape(relayed, location):
    one = relayed(lambda peer: peer.reply(307, b"", location=location.format(host=one.server.host)))
    answer, _ = one.ask()
    assert answer.getheader("location") == f"{one.relay.address(OPENAI)}/chat/other?a=1"
    assert one.over.wait(10)
    assert one.sent[0].exchange.response.headers["location"] == "/chat/other?a=1"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/v2/chat", "http://{host}/v2/chat"),
        ("/v1/../admin", "http://{host}/admin"),
        ("https://{host}/v1/chat", "https://{host}/v1/chat"),
        ("http://elsewhere.invalid/v1/chat", "http://elsewhere.invalid/v1/chat"),
        ("http://[", "http://["),
    ],
)
def test_a_redirect_to_another_place_leaves_the_tape(relayed, location, target):
    one = relayed(lambda peer: peer.reply(307, b"", location=location.format(host=one.server.host)))
    answer, _ = one.ask()
    assert answer.getheader("location") == target.format(host=one.server.host)
    assert one.over.wait(10)
    assert "location" not in one.sent[0].exchange.response.headers


def test_a_recorded_redirect_leads_to_the_tape_of_today(relayed):
    redirect = Response(status=307, headers={"location": "/chat/other?a=1"})
    one = relayed(lambda peer: peer.reply(200, b"{}"), lambda *_: redirect)
    answer, _ = one.ask()
    assert answer.getheader("location") == f"{one.relay.address(OPENAI)}/chat/other?a=1"


FOLLOW = """\
import httpx, os
url = os.environ["OPENAI_BASE_URL"]
print(httpx.post(url + "/old?api_key=k-1234567890", json={"model": "m"}, follow_redirects=True).text)
"""


@pytest.mark.long  # the tests around it are of the tape in this process
@pytest.mark.kernel
def test_a_followed_redirect_is_recorded_and_replayed(tmp_path, monkeypatch):
    def behaviour(peer):
        if "/old" in peer.path:
            peer.reply(307, b"", location=peer.path.replace("old", "new"))
        else:
            peer.reply(200, b'{"it": 1}')

    server = Server(behaviour)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    path = write(tmp_path / "n.ipynb", TAPE, FOLLOW)
    assert json.loads(printed(record(path))[-1]) == {"it": 1}
    assert [peer.path.partition("?")[0] for peer in server.asked] == ["/v1/old", "/v1/new"]
    server.close()
    assert len(taped(path)) == 2
    assert "k-1234567890" not in json.dumps(taped(path))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert not [p.text for p in check_notebook(path).problems]


def test_a_redirect_of_a_named_server_leads_to_its_own_address(relayed):
    one = relayed(lambda peer: peer.reply(307, b"", location="/v1/other"))
    base = one.relay.address_of(f"http://{one.server.host}/v1")
    assert base != one.relay.address(OPENAI)
    answer = httpx.post(f"{base}/chat/completions", json={"model": "m"}, trust_env=False)
    assert answer.headers["location"] == f"{base}/other"
