"""The path of the notebook, from runners that do not know this package."""

import socket
import threading
import time
from contextlib import suppress

import pytest

from agent_nb.host.launch import Launch
from agent_nb.notebook.files import notebook_path
from agent_nb.notebook.files.notebook_finder import NotebookFinder


@pytest.fixture
def there(tmp_path, monkeypatch):
    """Return a notebook below the runner's folder; the kernel runs in the notebook's folder."""
    path = tmp_path / "below" / "n.ipynb"
    path.parent.mkdir()
    path.write_text("{}")
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.chdir(path.parent)
    return path


@pytest.mark.parametrize("named", ["n.ipynb", "below/n.ipynb"])
def test_a_relative_path_is_looked_up_at_the_kernel_and_at_its_runner(there, monkeypatch, named):
    monkeypatch.setenv(Launch.NOTEBOOK, named)
    assert NotebookFinder({}).path().resolve() == there


def test_a_path_without_a_file_is_none(there, monkeypatch):
    monkeypatch.setenv(Launch.NOTEBOOK, "other.ipynb")
    assert NotebookFinder({}).path() is None


def test_the_runner_wins_over_the_variable(there, monkeypatch, tmp_path):
    monkeypatch.setenv(Launch.NOTEBOOK, str(there))
    (tmp_path / "sent.ipynb").write_text("{}")
    assert (
        NotebookFinder({}).path({"notebook": str(tmp_path / "sent.ipynb")})
        == tmp_path / "sent.ipynb"
    )


def test_a_server_that_never_ends_its_answer_is_left_in_time(monkeypatch):
    monkeypatch.setattr(notebook_path, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        monkeypatch.setattr(notebook_path, "_list_servers", lambda: [{"url": url}])
        threading.Thread(target=send_for_ever, args=[server], daemon=True).start()
        assert list(notebook_path.ask_servers("k1")) == []  # else this would not end


def send_for_ever(server):
    """Answer one request with a byte now and then, for 3 s, unless the test has ended before."""
    with suppress(OSError):
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(60):
                connection.sendall(b" ")
                time.sleep(0.05)


def test_the_server_that_started_this_kernel_may_take_its_time(monkeypatch):
    def fetch(server, seconds, sessions):
        time.sleep(0.3)
        sessions.append({"kernel": {"id": "k1"}, "path": server["path"]})

    servers = [{"pid": pid, "root_dir": "/home", "path": f"{pid}.ipynb"} for pid in (1, 2)]
    monkeypatch.setattr(notebook_path, "PATIENCE", 0.05)
    monkeypatch.setattr(notebook_path, "_list_servers", lambda: servers)
    monkeypatch.setattr(notebook_path, "_fetch_sessions", fetch)
    monkeypatch.setenv("JPY_PARENT_PID", "2")
    assert next(notebook_path.ask_servers("k1"), "") == "/home/2.ipynb"


def test_a_strange_answer_of_another_program_names_no_notebook(monkeypatch):
    answer = [None, {"kernel": "k1"}, {"kernel": {"id": "k1"}, "path": "n.ipynb"}]
    monkeypatch.setattr(notebook_path, "_list_servers", lambda: [{"root_dir": "/home"}])
    monkeypatch.setattr(notebook_path, "_fetch_sessions", lambda *given: given[-1].extend(answer))
    assert list(notebook_path.ask_servers("k1")) == ["/home/n.ipynb"]
