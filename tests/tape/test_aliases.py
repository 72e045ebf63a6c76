"""Variables for a provider's address that some libraries read before the usual one."""

import pytest
from helpers.notebooks import write
from tape.conftest import Provider
from tape.test_notebook import LIBRARY, TAPE, printed, record, taped

from agent_nb.runner.notebook_check import check_notebook

ALIASED = LIBRARY.replace(
    'os.environ["OPENAI_BASE_URL"]',
    '(os.environ.get("OPENAI_API_BASE") or os.environ["OPENAI_BASE_URL"])',
)


@pytest.fixture
def other(monkeypatch):
    """A second server, at the address that an alias names."""
    server = Provider()
    server.words = ["Elsewhere."]
    monkeypatch.setenv("OPENAI_API_BASE", server.server.url)
    yield server
    server.server.close()


@pytest.mark.kernel
def test_a_call_to_the_address_of_an_alias_is_taped(provider, other, tmp_path, monkeypatch):
    assert ALIASED != LIBRARY
    path = write(tmp_path / "n.ipynb", TAPE, ALIASED, "print(ask('hi'))")
    outcome = record(path)
    assert "Elsewhere." in printed(outcome)[-1]
    assert (len(other.asked), len(provider.asked), len(taped(path))) == (1, 0, 1)
    other.server.close()
    monkeypatch.delenv("OPENAI_API_BASE")  # as on another machine
    assert not [p.text for p in check_notebook(path).problems]
    assert not provider.asked


@pytest.mark.kernel
def test_an_alias_leaves_the_address_of_other_libraries(provider, other, tmp_path):
    end = "%agent tape off\nprint(os.environ['OPENAI_API_BASE'])"
    outcome = record(write(tmp_path / "n.ipynb", TAPE, LIBRARY, "print(ask('hi'))", end))
    assert (len(other.asked), len(provider.asked)) == (0, 1)
    assert printed(outcome)[-1].strip().endswith(other.server.url)
