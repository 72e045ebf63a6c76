"""The yes to what the notebook's folder offers: asked for when a cell starts, given by a command,
never where nobody is.
"""

import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from IPython.core.error import StdinNotImplementedError

from agent_nb.cli.main import main
from agent_nb.errors import NotAllowed, UsageError
from agent_nb.host import trust
from agent_nb.host.trust import Offer
from agent_nb.notebook.cell import trusting
from agent_nb.notebook.cell.trusting import ask_permissions, describe_offer, trust_folder

KEY = "sk-0123456789abcdef"
POLICY = "rules: [{allow: [shell, python]}, {deny: write}]"


@pytest.fixture(autouse=True)
def new_process(monkeypatch):
    """Nothing was allowed in this process yet."""
    monkeypatch.setattr(trust, "_allowed_here", set())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with something of each kind to be allowed, and other files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(f"OPENAI_API_KEY={KEY}\nPATH=/evil\n")
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "strict.yml").write_text("default: deny")
    (tmp_path / "other.yaml").write_text("model: x\n")
    (tmp_path / "agent.toml").write_text('model = "lab/x"')
    return tmp_path


def waiting(*offers):
    """What a folder offers and was not allowed."""
    return lambda: [offer for offer in offers if not offer.is_allowed()]


def offers(folder):
    return [
        Offer.of("keys", folder / ".env", "has OPENAI_API_KEY"),
        Offer.of("policy", folder / "p.yaml", "allows shell", b"x"),
    ]


def test_each_offer_is_asked_about_once_and_remembered(tmp_path, answer):
    asked, declined = answer("y", "n"), set()
    for _ in range(3):
        ask_permissions(waiting(*offers(tmp_path)), declined, stdin=True)
    keys, policy = offers(tmp_path)
    assert len(asked) == 2
    assert (keys.is_allowed(), policy.is_allowed()) == (True, False)
    assert declined == {policy}


@pytest.mark.parametrize(
    "said", [["n"], [""], ["perhaps", "hm", "yep"], [EOFError()], [StdinNotImplementedError("no")]]
)
def test_what_is_not_clearly_a_yes_is_a_no(tmp_path, answer, said):
    answer(*said)
    ask_permissions(waiting(offers(tmp_path)[0]), set(), stdin=True)
    assert not offers(tmp_path)[0].is_allowed()


def test_where_nobody_can_be_asked_nobody_is_and_nothing_is_allowed(tmp_path, answer):
    asked, declined = answer(), set()
    ask_permissions(waiting(*offers(tmp_path)), declined, stdin=False)
    assert (asked, declined) == ([], set())
    assert not any(map(trust.Offer.is_allowed, offers(tmp_path)))


@pytest.mark.parametrize("said", [["y"], ["n"]])
def test_what_a_run_cannot_do_without_is_asked_about_and_its_lack_an_error(tmp_path, answer, said):
    answer(*said)
    offer = Offer.of("configuration", tmp_path / "agent.toml", "chooses the model lab/x", b"x")

    def needed():
        if not offer.is_allowed():
            raise NotAllowed("no", offer)
        return []

    if said == ["y"]:
        ask_permissions(needed, set(), stdin=True)
        return
    with pytest.raises(NotAllowed):
        ask_permissions(needed, set(), stdin=True)


def test_the_question_names_file_folder_and_all_that_a_yes_allows(tmp_path):
    text = describe_offer(
        Offer.of("policy", tmp_path / "p\x1b[2J.yaml", "allows \u202e" + "x" * 1500, b"x")
    )
    assert f"in {tmp_path} allows" in text
    assert "x" * 1500 in text
    assert "\\x1b[2J" in text
    assert "\\u202e" in text
    assert all(c.isprintable() or c == "\n" for c in text)
    assert describe_offer(Offer.of("keys", tmp_path / ".env", "has OPENAI_API_KEY")).endswith(
        "A yes counts in this folder, from now on."
    )


def test_the_command_allows_what_the_folder_offers_now(folder, monkeypatch):
    monkeypatch.setenv("AGENT_NB_CONFIG", "agent.toml")
    said = trust_folder([]).splitlines()
    assert [line.partition(" ")[2].removeprefix(str(folder)) for line in said] == [
        "/.env has OPENAI_API_KEY",
        "/policy.yaml allows shell, python",
        "/agent.toml chooses the model lab/x",
    ]
    assert KEY not in "".join(said)
    assert (
        trusting.list_permissions()
        == f"{folder} may give keys (.env), be obeyed in agent.toml, be obeyed in policy.yaml"
    )
    assert trust_folder(["--list"]) == trusting.list_permissions()
    assert trust_folder(["--revoke"]) == ".: nothing is allowed any more"
    assert trust_folder(["--revoke", str(folder)]) == f"{folder}: nothing was allowed"
    assert (
        trusting.list_permissions()
        == "no folder may give keys (.env) or allow anything in a policy"
    )


def test_the_command_allows_a_single_file(folder):
    assert trust_folder(["policy.yaml"]) == f"allowed: {folder}/policy.yaml allows shell, python"
    assert trusting.list_permissions() == f"{folder} may be obeyed in policy.yaml"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "File or folder not found"),
        (["--all"], "no option"),
        (["other.yaml"], "line 1"),
    ],
)
def test_the_command_refuses_what_is_nothing(folder, words, said):
    with pytest.raises(UsageError, match=said):
        trust_folder(words)


def test_a_folder_that_offers_nothing_is_said_to(folder):
    (folder / "sub" / ".git").mkdir(parents=True)
    assert trust_folder(["sub"]).startswith("There is nothing to allow in sub")
    assert not trust.locate_permissions().exists()


def test_the_terminal_has_the_same_command(folder, capsys):
    assert main(["trust-folder", str(folder)]) == 0
    assert f"allowed: {folder}/.env has OPENAI_API_KEY" in capsys.readouterr().out
    assert main(["trust-folder", "--list"]) == 0
    assert "may give keys (.env), be obeyed in policy.yaml" in capsys.readouterr().out
    assert main(["trust-folder", "--revoke", str(folder)]) == 0
    assert main(["trust-folder", "nowhere"]) == 2


def test_the_cell_has_the_same_command_and_the_configuration_lists_it(folder, loaded, capsys):
    loaded.run_line_magic("agent", "key")
    assert (
        f".env in {folder} has OPENAI_API_KEY. It counts only when you allow it"
        in capsys.readouterr().out
    )
    loaded.run_line_magic("agent", "trust-folder")
    loaded.run_line_magic("agent", "config")
    loaded.run_line_magic("agent", "key")
    out = capsys.readouterr().out
    assert f"Folders: {folder} may give keys (.env), be obeyed in policy.yaml" in out
    assert re.search(r"^openai +OPENAI_API_KEY in \.env$", out, re.MULTILINE)
    assert KEY not in out


def test_a_cell_where_nobody_can_be_asked_runs_by_the_restricting_rules(agent, folder):
    from agent_nb import Scripted

    calls = '[{"name": "python", "args": {"code": "made = 1"}}, {"name": "write", "args": {"file": "x", "content": "y"}}]'
    run = agent(
        "-m model -t python,write --approve policy.yaml",
        model=Scripted([f"<execute>{calls}</execute>", "done"]),
    )
    results = run.events.of("result")
    assert [r.status for r in results] == ["denied", "denied"]
    assert (
        "python needs approval and there is nobody to ask. policy.yaml, line 1 would allow it, but policy.yaml in"
        in results[0].content
    )
    assert "jupyter agent-nb trust-folder" in results[0].content
    trust_folder(["policy.yaml"])
    run = agent(
        "-m model -t python,write --approve policy.yaml --live",
        model=Scripted([f"<execute>{calls}</execute>", "done"]),
    )
    assert [r.status for r in run.events.of("result")] == ["ok", "denied"]


def test_tools_that_a_later_cell_makes_are_known_to_a_policy(agent, folder, monkeypatch):
    from agent_nb import Scripted
    from agent_nb.notebook.cell.failure import AgentCellError

    (folder / "names.yaml").write_text("rules: [{deny: [send, mail, fetch]}]")
    sources = [
        "def send(x): ...",
        "@tool(name='mail')\ndef m(): ...",
        "%%agent -t fetch\ngo",
        "%%writefile names.yaml\nsned = 1",
        "# sned",
    ]
    cells = [
        {"cell_type": "code", "id": str(n), "source": s, "metadata": {}, "outputs": []}
        for n, s in enumerate(sources)
    ]
    (folder / "n.ipynb").write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    monkeypatch.setenv("AGENT_NB_NOTEBOOK", str(folder / "n.ipynb"))
    assert agent("-m model --approve names.yaml --live", model=Scripted(["done"])).status == "ok"
    (folder / "names.yaml").write_text("rules: [{deny: sned}]")
    with pytest.raises(
        AgentCellError, match=r"names.yaml, line 1: there is no tool 'sned'.* Did you mean 'send'"
    ):
        agent("-m model --approve names.yaml --live", model=Scripted(["done"]))


def test_a_path_that_cannot_be_read_is_named(folder, monkeypatch):
    with pytest.raises(UsageError, match="xxx cannot be read: File name too long"):
        trust_folder(["x" * 300])

    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(UsageError, match=r"^\. cannot be read: Permission denied"):
        trust_folder(["."])


# --- in a kernel


class Provider(ThreadingHTTPServer):
    """A model's server on loopback that counts its requests."""

    def __init__(self):
        self.asked = asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                asked.append(self.headers.get("authorization"))
                body = b'data: {"choices":[{"delta":{"content":"hello"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


@pytest.fixture
def provider():
    server = Provider()
    yield server
    server.shutdown()
    server.server_close()


def asked(kernel, cell, said):
    """Run a cell that asks at its start; return the question and what came of the cell."""
    request = kernel.send(cell, cell="asked", stdin=True)
    prompt = kernel.client.get_stdin_msg(timeout=60)["content"]["prompt"]
    kernel.client.input(said)
    return prompt, kernel.finish(request)


@pytest.mark.kernel
def test_a_cell_asks_for_a_key_of_the_folder_before_it_calls_the_model(kernel, provider):
    place = Path(kernel.mark).parent
    (place / ".env").write_text(f"OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL=http://evil.example")
    try:
        kernel.run(
            f"%load_ext agent_nb\nimport os\nos.environ['OPENAI_BASE_URL'] = {provider.url!r}"
        )
        prompt, _ = asked(kernel, "%%agent -m openai/x --live\nhi", "n")
        assert (
            f".env in {place.resolve()} has OPENAI_API_KEY. A yes counts in this folder"
            in prompt.replace("~", str(Path.home()))
        )
        # it is not asked again
        assert kernel.run("%%agent -m openai/x --live\nhi", cell="again", stdin=True)[0] == "ok"
        assert provider.asked == [None, None]
        kernel.run("get_ipython().magics_manager.registry['AgentMagics'].session.declined.clear()")
        assert asked(kernel, "%%agent -m openai/x --live\nhi", "y")[1][0] == "ok"
        assert provider.asked[2:] == [f"Bearer {KEY}"]
    finally:
        (place / ".env").unlink()
        kernel.run("%agent trust-folder --revoke\ndel os.environ['OPENAI_BASE_URL']")


SCRIPT = """from agent_nb import Scripted
call = '<execute>[{"name": "python", "args": {"code": "made = 1"}}]</execute>'
script = Scripted([call, "done"])"""
STATUSES = "print(*[(e.status, e.name) for e in _agent.log.of('result')])"


@pytest.mark.kernel
def test_a_cell_asks_whether_a_policy_may_allow_and_again_after_a_change(kernel):
    place = Path(kernel.mark).parent
    (place / "p.yaml").write_text("rules: [{allow: python}]")
    cell = "%%agent -m script -t python --approve p.yaml --live\ngo"
    kernel.run(f"%load_ext agent_nb\n{SCRIPT}")
    prompt, _ = asked(kernel, cell, "y")
    assert "p.yaml in" in prompt
    assert "allows python. A yes counts as long as the file stays as it is." in prompt
    assert kernel.run(STATUSES)[1].strip() == "('ok', 'python')"
    kernel.run(cell, cell="asked")
    assert kernel.run(STATUSES)[1].strip() == "('ok', 'python')"
    (place / "p.yaml").write_text("default: allow")
    prompt, _ = asked(kernel, cell, "y")
    assert "allows everything that no rule names." in prompt
    kernel.run("%agent trust-folder --revoke")
    kernel.run(cell)  # without a keyboard
    assert kernel.run(STATUSES)[1].strip() == "('denied', 'python')"


@pytest.mark.kernel
def test_a_replay_that_runs_nothing_again_asks_nothing(kernel):
    (Path(kernel.mark).parent / "q.yaml").write_text("default: allow")
    cell = "%%agent -m quiet --approve q.yaml -c replayed\nhello"
    kernel.run("%load_ext agent_nb\nfrom agent_nb import Scripted\nquiet = Scripted(['hello'])")
    asked(kernel, cell, "n")
    kernel.run("get_ipython().magics_manager.registry['AgentMagics'].session.declined.clear()")
    assert kernel.finish(kernel.send(cell, cell="asked", stdin=True), seconds=60)[0] == "ok"


@pytest.mark.few(1)
@pytest.mark.kernel
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("command", ["run", "test", "pytest"])
def test_a_runner_says_yes_for_one_run(tmp_path, monkeypatch, command, given):
    monkeypatch.delenv("AGENT_NB_TRUST_FOLDER", raising=False)
    source = f"import os\nopen({str(tmp_path / 'said')!r}, 'w').write(os.environ.get('AGENT_NB_TRUST_FOLDER', 'no'))"
    cell = {
        "cell_type": "code",
        "id": "a",
        "source": source,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    path = tmp_path / "n.ipynb"
    path.write_text(
        json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    if command == "pytest":
        flags = ["--agent-nb-trust-folder"] if given else []
        arguments = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--agent-nb",
            *flags,
            str(path),
        ]
        assert (
            subprocess.run(
                arguments, cwd=tmp_path, check=False, capture_output=True, timeout=300
            ).returncode
            == 0
        )
    else:
        assert main([command, *(["--trust-folder"] if given else []), str(path)]) == 0
    assert (tmp_path / "said").read_text() == ("--trust-folder" if given else "no")
    assert not trust.locate_permissions().exists()
