"""A cell is known by the id its front end sends, else by its inputs and its occurrence."""

import pytest

from agent_nb.host import launch
from agent_nb.notebook.identity import Cells
from agent_nb.record.agent_cells import content_hash

SECRET = "5e" * launch.SIZE


class Kernel:
    def __init__(self, request):
        self.request = request

    def get_parent(self):
        if isinstance(self.request, Exception):
            raise self.request
        return self.request


class Shell:
    def __init__(self, request):
        self.kernel = Kernel(request)


def test_the_front_ends_id_is_the_key():
    request = {"metadata": {"cellId": "7a83"}, "content": {"allow_stdin": True}}
    cell = Cells().current(Shell(request), "-m x", "hello")
    assert (cell.key, cell.id, cell.stdin, cell.kernel) == ("7a83", "7a83", True, True)


@pytest.fixture
def asked(monkeypatch):
    """Return what counts of what a request asks for, in a kernel that was started with a secret
    ("": without): `asked(told, secret)`.
    """

    def ask(told, secret=SECRET):
        monkeypatch.setattr(launch, "LAUNCH", launch.Launch({launch.Launch.PROOF: secret}))
        return (
            Cells()
            .current(Shell({"metadata": {"cellId": "7a83", "agent_nb": told}}), "", "x")
            .runner_options
        )

    return ask


EVERYTHING = {
    "trust": True,
    "runs": [{"id": "r"}],
    "stream": "/tmp/x",
    "model": "openai/x",
    "notebook": "x.ipynb",
    "headless": True,
    "later": 1,
}


@pytest.mark.parametrize("rerun", ["live", "auto", "replay", ""])
def test_a_request_with_the_kernels_secret_asks_for_anything(asked, rerun):
    assert asked({**EVERYTHING, "rerun": rerun, "proof": SECRET}) == {**EVERYTHING, "rerun": rerun}


@pytest.mark.parametrize("rerun", ["live", "auto", "replay", ["replay"], True, None])
@pytest.mark.parametrize(
    "proof",
    [
        None,
        "",
        SECRET[:-1],
        SECRET.upper(),
        SECRET + "0",
        SECRET.encode(),
        True,
        [SECRET],
        "ü" * 64,
        "\ud800",
    ],
)
def test_without_it_only_what_restricts_counts(asked, proof, rerun):
    kept = {"headless": True, **({"rerun": "replay"} if rerun == "replay" else {})}
    assert asked({**EVERYTHING, "rerun": rerun, "proof": proof}) == kept
    assert "headless" not in asked({"headless": 1, "proof": proof})


@pytest.mark.parametrize("secret", ["", "5e", SECRET[:-1], SECRET + "0"])
def test_a_kernel_without_a_whole_secret_believes_nobody(asked, secret):
    assert asked({"trust": True, "proof": secret}, secret) == {}


@pytest.mark.parametrize("told", [None, 7, "trust", [], [["trust", True]]])
def test_what_is_no_object_asks_for_nothing(asked, told):
    assert asked(told) == {}


def test_the_secret_leaves_the_environment_and_strictness_stays():
    environment = {launch.Launch.PROOF: SECRET, launch.Launch.STRICT: "1", "HOME": "/"}
    started = launch.Launch(environment)
    assert environment == {launch.Launch.STRICT: "1", "HOME": "/"}
    environment.clear()
    assert started.strict
    assert started.proves(SECRET)
    assert SECRET not in repr(started)


def test_secrets_are_whole_and_each_its_own():
    made = {launch.Launch.make_secret() for _ in range(20)}
    assert len(made) == 20
    assert all(len(bytes.fromhex(text)) == 32 for text in made)


def test_without_an_id_equal_cells_are_told_apart_by_their_occurrence():
    cells, shell = Cells(), Shell({"metadata": {}})
    first, second = cells.current(shell, "", "x"), cells.current(shell, "", "x")
    assert first.key != second.key
    assert Cells().current(shell, "", "x").key == first.key


@pytest.mark.parametrize(
    "request_",
    [{}, None, {"metadata": None}, {"metadata": {"cellId": 7}}, RuntimeError("no parent")],
)
def test_whatever_a_kernel_sends_a_cell_has_a_key(request_):
    cell = Cells().current(Shell(request_), "", "x")
    assert cell.id == ""
    assert cell.key.startswith("sha256:")
    assert not cell.stdin


def test_a_shell_without_kernel_is_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    cell = Cells().current(object(), "", "x")
    assert not cell.kernel
    assert not cell.stdin


def test_the_hash_ignores_space_at_line_ends_only():
    assert content_hash(" -m x ", "a  \r\nb\n\n") == content_hash("-m x", "a\nb")
    assert content_hash("-m x", "a b") != content_hash("-m x", "ab")
