"""Calls inside the rows of a map: shown before they are signed, and not run without that."""

import base64
import json
import shutil

import pytest
from helpers.marks import starts
from helpers.notebooks import write

from agent_nb.cli.main import main
from agent_nb.record.agent_cells import source_hash
from agent_nb.record.countersign import Signatures, signed_message
from agent_nb.record.ipynb import load_notebook, save_notebook, source_of
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import METADATA_KEY as OURS
from agent_nb.record.signers import NAMESPACE
from agent_nb.record.ssh_signature import PrivateKey, armor_signature

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
pytestmark = [pytest.mark.kernel, pytest.mark.timeout(300)]
ANN = PrivateKey(ed25519.Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32))
CODE = "open('canary', 'a').write('x')"
SETUP = f"""%load_ext agent_nb
from agent_nb import Scripted
said = [{{"calls": [{{"name": "python", "args": {{"code": {CODE!r}}}}}]}}, "Done."]
script = Scripted(said, dialect="native")
df = [{{"n": 1}}, {{"n": 2}}, {{"n": 3}}]"""
MAP = "%%agent -m script -t python --approve auto --map df --concurrency 1\nGo {{ n }}"


@pytest.fixture(scope="module")
@starts("kernel")
def recorded(tmp_path_factory):
    """Return a notebook whose map called python in each row, recorded by a stranger."""
    folder = tmp_path_factory.mktemp("recorded")
    path = write(folder / "n.ipynb", SETUP, MAP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "jupyter"))
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        assert main(["run", "--live", "--inplace", str(path)]) == 0
    assert (folder / "canary").read_text() == "xxx"
    return path


@pytest.fixture
def notebook(recorded, tmp_path, monkeypatch):
    """Return a copy on another machine."""
    for name in ("JUPYTER_DATA_DIR", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    (tmp_path / "repository").mkdir()
    return shutil.copy(recorded, tmp_path / "repository" / "n.ipynb")


@pytest.fixture
def signers(tmp_path):
    """Return a file that names Ann."""
    file = tmp_path / "signers"
    file.write_text(f"ann ssh-ed25519 {base64.b64encode(ANN.public).decode()}\n")
    return str(file)


def sign(path, tmp_path):
    from cryptography.hazmat.primitives import serialization as s

    private = ed25519.Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
    file = tmp_path / "id_ann"
    how = (s.Encoding.PEM, s.PrivateFormat.OpenSSH, s.NoEncryption())
    file.write_bytes(private.private_bytes(*how))
    return main(["sign", "--yes", "--key", str(file), str(path)])


def sign_in_the_first_form(path):
    nb = load_notebook(path)
    (record,) = NotebookRuns(nb).by_cell()["cell2"]
    text = signed_message(record["hash"], source_hash(source_of(nb["cells"][1])), "")
    nb["metadata"][OURS][Signatures.KEY] = {
        record["hash"]: armor_signature(ANN.sign(text, NAMESPACE))
    }
    save_notebook(nb, path)


def test_sign_lists_equal_calls_of_rows_once_with_their_count(notebook, tmp_path, capsys):
    assert sign(notebook, tmp_path) == 0
    said = capsys.readouterr().out
    assert ": 3 calls\n    python (in rows of the map, 3 times)\n      code = open('canary'" in said
    assert said.count("open(") == 1


@pytest.mark.parametrize(
    "command",
    [
        ["verify"],
        ["git-text"],
        ["events"],
        ["events", "--json"],
        ["events", "--format", "csv"],
        ["export", "--to", "markdown"],
        ["export", "--to", "html"],
        ["export", "--to", "text"],
        ["export", "--to", "loom"],
    ],
    ids=" ".join,
)
def test_calls_of_rows_are_shown_by(command, notebook, capsys):
    """A call stands outside of the text of the map's own events."""
    main([command[0], str(notebook), *command[1:]])
    lines = [line for line in capsys.readouterr().out.splitlines() if '"map.rows"' not in line]
    assert "canary" in "".join(line for line in lines if "said = " not in line)


def test_a_diff_names_the_calls_of_rows(notebook, tmp_path, capsys):
    other = tmp_path / "other.ipynb"
    text = notebook.read_text()
    other.write_text(text.replace("open('canary', 'a')", "open('danger', 'a')"))
    assert main(["diff", str(notebook), str(other)]) == 1
    assert "~ call python in rows" in capsys.readouterr().out


def test_what_was_shown_runs_where_its_signer_is_trusted(notebook, signers, tmp_path):
    assert sign(notebook, tmp_path) == 0
    assert main(["test", "--signers", signers, str(notebook)]) == 0
    assert (notebook.parent / "canary").read_text() == "xxx"


def test_a_signature_that_does_not_say_what_was_shown_runs_no_row(notebook, signers, capsys):
    sign_in_the_first_form(notebook)
    assert main(["test", "--signers", signers, str(notebook)]) == 1
    said = capsys.readouterr().out
    assert "the calls of rows and sub-agents were not shown: sign again" in said
    assert not (notebook.parent / "canary").exists()


def test_signing_again_replaces_the_signature_of_the_first_form(
    notebook, signers, tmp_path, capsys
):
    sign_in_the_first_form(notebook)
    assert sign(notebook, tmp_path) == 0
    (text,) = load_notebook(notebook)["metadata"][OURS][Signatures.KEY].values()
    assert text.count("BEGIN SSH SIGNATURE") == 1
    assert main(["test", "--signers", signers, str(notebook)]) == 0


def test_rows_of_a_foreign_record_wait_for_consent(notebook, capsys):
    assert main(["test", str(notebook)]) == 1
    assert "This code comes from a record that you have not signed" in capsys.readouterr().out
    assert not (notebook.parent / "canary").exists()
    assert "canary" in json.dumps(load_notebook(notebook))
