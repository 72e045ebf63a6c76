"""A person signs records; `test` trusts them where that person is a signer."""

import base64
import io
import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import nbformat
import pytest
from helpers.marks import starts
from helpers.notebooks import code_cell
from helpers.paths import python_path
from helpers.scripts import calling

from agent_nb.cli.main import main
from agent_nb.notebook.cell.rerun import trusted_records
from agent_nb.notebook.files import git
from agent_nb.notebook.files.review import review_records
from agent_nb.record.agent_cells import source_hash
from agent_nb.record.countersign import Signatures, signed_message
from agent_nb.record.ipynb import load_notebook, save_notebook, source_of
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.ranking import CellRecords
from agent_nb.record.record import METADATA_KEY as OURS
from agent_nb.record.record import record_hash
from agent_nb.record.recorded_calls import RecordedCall
from agent_nb.record.signers import NAMESPACE, signers_file
from agent_nb.record.signing import UserKey
from agent_nb.record.ssh_signature import Signature, armor_signature

pytest.importorskip("cryptography")
pytestmark = pytest.mark.timeout(300)
SETUP = "%load_ext agent_nb\nfrom agent_nb import Agent, Scripted, tool\nbase = 40"
CALL = calling("python", code="base + 2")
MODELS = f"one = Scripted([{CALL!r}, 'It is 42.'])"
FIRST = "%%agent -m one -t python --approve auto\nWhat is base + 2?"
API = "run = await Agent(one, ['python'], approve='auto')('Once more?')"
FOREIGN = "a record that you have not signed"


def key(seed):
    from cryptography.hazmat.primitives.asymmetric import ed25519

    from agent_nb.record.ssh_signature import PrivateKey

    return PrivateKey(ed25519.Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


ANN, BOB = key(1), key(2)


def public(one):
    return f"ssh-ed25519 {base64.b64encode(one.public).decode()}"


def private(folder, seed=1, passphrase=None, kind=None):
    """Write a private key file and return its path."""
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

    made = (
        rsa.generate_private_key(65537, 2048)
        if kind == "rsa"
        else ed25519.Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
    )
    how = s.BestAvailableEncryption(passphrase) if passphrase else s.NoEncryption()
    file = folder / f"id_{seed}_{kind}"
    file.write_bytes(made.private_bytes(s.Encoding.PEM, s.PrivateFormat.OpenSSH, how))
    return str(file)


@pytest.fixture(scope="module")
@starts("kernel")
def made(tmp_path_factory):
    """Return a notebook that a colleague recorded and Ann signed, made once."""
    folder = tmp_path_factory.mktemp("made")
    file = folder / "n.ipynb"
    cells = [code_cell(n, source) for n, source in enumerate((SETUP, MODELS, FIRST, API), 1)]
    file.write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "jupyter"))
        assert main(["run", "--live", "--inplace", str(file)]) == 0
    shutil.copy(file, folder / "unsigned.ipynb")
    assert main(["sign", "--yes", "--key", private(folder), str(file)]) == 0
    return file


@pytest.fixture
def notebook(made, tmp_path, monkeypatch):
    """Return the signed notebook on the machine of another user, such as CI."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "ci"))
    (tmp_path / "repository").mkdir()
    return Path(shutil.copy(made, tmp_path / "repository" / "n.ipynb"))


@pytest.fixture
def unsigned(made, notebook):
    """Return the same notebook before signing."""
    return Path(shutil.copy(made.with_name("unsigned.ipynb"), notebook))


def ours(file):
    return load_notebook(file)["metadata"][OURS]


def change(file, work):
    """Change a notebook: `work(notebook, our metadata, first agent cell, its record)`."""
    nb = load_notebook(file)
    metadata = nb["metadata"][OURS]
    work(nb, metadata, nb["cells"][2], metadata["runs"]["cell3"][0])
    save_notebook(nb, file)


class TestTesting:
    @pytest.mark.long
    def test_a_signed_notebook_is_foreign_where_its_signer_is_not_trusted(self, notebook, capsys):
        assert main(["test", str(notebook)]) == 1
        said = capsys.readouterr().out
        assert FOREIGN in said
        assert "signed with SHA256:" in said
        assert "which is not the key of a signer" in said

    def test_it_passes_where_the_signer_is_listed_and_removal_revokes_at_once(
        self, notebook, capsys
    ):
        assert main(["trust", "add", "ann", public(ANN)]) == 0
        assert main(["test", str(notebook)]) == 0
        assert "ok, 2 runs replayed" in capsys.readouterr().out
        assert main(["trust", "remove", "ann"]) == 0
        assert main(["test", str(notebook)]) == 1
        assert FOREIGN in capsys.readouterr().out

    def test_it_passes_with_a_file_of_signers_on_the_command_line(self, notebook, tmp_path):
        (tmp_path / "signers").write_text(f"bob {public(BOB)}\nann@work {public(ANN)}\n")
        assert main(["test", "--signers", str(tmp_path / "signers"), str(notebook)]) == 0

    @pytest.mark.long
    def test_it_passes_in_pytest_with_a_file_of_signers(self, notebook, tmp_path):
        (tmp_path / "signers").write_text(f"ann@work {public(ANN)}\n")
        installed = entry_points(group="pytest11", name="agent_nb")
        options = (
            *(() if installed else ("-p", "agent_nb.runner.pytest_plugin")),
            *("-p", "no:cacheprovider", "--agent-nb", str(notebook)),
        )
        command = [sys.executable, "-m", "pytest", "-q", *options]
        environment = {**os.environ, "PYTHONPATH": python_path()}
        for signers, code in (("", 1), (str(tmp_path / "signers"), 0)):
            done = subprocess.run(
                [*command, "--agent-nb-signers", signers],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == code, done.stdout

    @pytest.mark.long
    def test_files_in_the_repository_have_no_effect(self, notebook, monkeypatch, capsys):
        folder = notebook.parent
        monkeypatch.chdir(folder)
        for name in (
            "allowed_signers",
            ".agent_nb/allowed_signers",
            "agent_nb/allowed_signers",
            ".config/agent_nb/allowed_signers",
            ".ssh/allowed_signers",
            "signers",
        ):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"ann {public(ANN)}\n")
        (folder / "pyproject.toml").write_text(
            f"[tool.agent_nb]\nsigners = ['ann {public(ANN)}']\n"
        )
        (folder / ".env").write_text("XDG_CONFIG_HOME=.config\nAGENT_NB_SIGNERS=signers\n")
        change(notebook, lambda nb, mine, cell, record: mine.update(signers={"ann": public(ANN)}))
        assert main(["test", "n.ipynb"]) == 1
        assert FOREIGN in capsys.readouterr().out

    @pytest.mark.long
    def test_a_signer_counts_in_test_only(self, notebook, capsys):
        main(["trust", "add", "ann", public(ANN)])
        for how in ([], ["--rerun", "replay"]):
            assert main(["run", *how, "-o", str(notebook) + ".out", str(notebook)]) == 1
            assert FOREIGN in capsys.readouterr().err

    @pytest.mark.long
    def test_what_the_cell_metadata_says_of_signatures_counts_for_nothing(self, notebook, capsys):
        def forged(nb, mine, cell, record):
            cell["metadata"] = {OURS: {"signed": [record["hash"]], "trust": True}}

        change(notebook, forged)
        assert main(["run", "--rerun", "replay", "-o", str(notebook) + ".out", str(notebook)]) == 1
        assert main(["test", str(notebook)]) == 1
        assert FOREIGN in capsys.readouterr().out

    @pytest.mark.long
    def test_without_the_extra_it_is_named(self, notebook, monkeypatch, capsys):
        main(["trust", "add", "ann", public(ANN)])
        monkeypatch.setitem(sys.modules, "cryptography", None)
        assert main(["test", str(notebook)]) == 1
        assert "pip install 'jupyter-agent-nb[sign]'" in capsys.readouterr().out

    @pytest.mark.long
    def test_a_strangers_newer_record_does_not_come_before_the_signed_one(self, notebook, capsys):
        main(["trust", "add", "ann", public(ANN)])

        def forged(nb, mine, cell, record):
            other = json.loads(
                json.dumps({**record, "id": "forged", "started": record["started"] + 60}).replace(
                    "It is 42.", "It is 666."
                )
            )
            del other["signature"]
            other["hash"] = record_hash(other)
            # names the hash that is signed
            copied = {**other, "id": "copied", "hash": record["hash"]}
            mine["runs"]["cell3"][:0] = [copied, other]

        change(notebook, forged)
        assert main(["test", str(notebook)]) == 0
        listed = ours(notebook)["runs"]["cell3"]
        assert CellRecords(listed).rank(UserKey(), [listed[2]["hash"]])[0]["id"] == listed[2]["id"]


def signed_text(record, cell):
    return signed_message(
        record["hash"], source_hash(source_of(cell)), RecordedCall.digest_all(record)[0]
    )


def another_record(nb, mine, cell, record):
    other = mine["runs"]["cell4"][0]["hash"]
    mine[Signatures.KEY][record["hash"]] = mine[Signatures.KEY][other]


def another_source(nb, mine, cell, record):
    cell["source"] = "".join(cell["source"]).replace(
        "--approve auto", "--approve auto --max-turns 9"
    )


def another_namespace(nb, mine, cell, record):
    said = signed_text(record, cell)
    mine[Signatures.KEY][record["hash"]] = armor_signature(ANN.sign(said, "git"))


def a_namespace_written_over(nb, mine, cell, record):
    made = ANN.sign(signed_text(record, cell), "git")
    mine[Signatures.KEY][record["hash"]] = armor_signature(
        Signature(made.key, NAMESPACE, made.algorithm, made.value)
    )


def cut_off(nb, mine, cell, record):
    lines = mine[Signatures.KEY][record["hash"]].splitlines()
    mine[Signatures.KEY][record["hash"]] = "\n".join([*lines[:-2], lines[-1]])


def somebody_elses_in_her_name(nb, mine, cell, record):
    made = BOB.sign(signed_text(record, cell), NAMESPACE)
    mine[Signatures.KEY][record["hash"]] = armor_signature(
        Signature(ANN.public, NAMESPACE, made.algorithm, made.value)
    )


def another_content(nb, mine, cell, record):
    record["events"] = json.loads(json.dumps(record["events"]).replace("base + 2", "base + 3"))


def another_content_and_hash(nb, mine, cell, record):
    signature = mine[Signatures.KEY][record["hash"]]
    another_content(nb, mine, cell, record)
    record["hash"] = record_hash(record)
    mine[Signatures.KEY][record["hash"]] = signature


def no_text(nb, mine, cell, record):
    mine[Signatures.KEY] = {record["hash"]: {"ann": True}, "x": None}


def no_object(nb, mine, cell, record):
    mine[Signatures.KEY] = [mine[Signatures.KEY][record["hash"]]]


HOSTILE = [
    another_record,
    another_source,
    another_namespace,
    a_namespace_written_over,
    cut_off,
    somebody_elses_in_her_name,
    another_content,
    another_content_and_hash,
    no_text,
    no_object,
]


@pytest.mark.few(1)
@pytest.mark.parametrize("forged", HOSTILE, ids=lambda f: f.__name__)
def test_only_a_signature_of_this_record_in_this_cell_counts(notebook, capsys, forged):
    main(["trust", "add", "ann", public(ANN)])
    change(notebook, forged)
    capsys.readouterr()
    assert main(["test", str(notebook)]) == 1
    said = capsys.readouterr().out
    assert "cell 3" in said
    assert FOREIGN in said or "changed after it was" in said
    if forged is another_source:
        assert "the signature by ann is not one of this record for this text of the cell" in said


class TestSigning:
    @pytest.fixture
    def terminal(self, monkeypatch):
        """Answer questions as in a terminal; return the questions."""

        def terminal(*answers):
            asked, left = [], list(answers)
            monkeypatch.setattr(
                "sys.stdin", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})()
            )
            monkeypatch.setattr("builtins.input", lambda text: (asked.append(text), left.pop(0))[1])
            return asked

        return terminal

    def test_the_calls_are_read_before_the_question(self, unsigned, tmp_path, terminal, capsys):
        asked = terminal("maybe", "y")
        before = ours(unsigned)["runs"]
        assert main(["sign", "--key", private(tmp_path), str(unsigned)]) == 0
        said = capsys.readouterr().out
        assert 'cell 3 (cell3) "What is base + 2?"\n  run ' in said
        assert "not recorded by you: 1 call\n    python\n      code = base + 2\n" in said
        assert asked[0] == "Sign 2 runs with 2 calls? [y]es, [n]o: "
        assert "2 records signed with SHA256:" in said
        assert ours(unsigned)["runs"] == before, "the records themselves do not change"
        main(["trust", "add", "ann", public(ANN)])
        assert main(["test", str(unsigned)]) == 0

    @pytest.mark.parametrize("answers", [["n"], ["what", "?", "perhaps"]])
    def test_whatever_is_not_a_yes_signs_nothing(self, unsigned, tmp_path, terminal, answers):
        terminal(*answers)
        before = unsigned.read_bytes()
        assert main(["sign", "--key", private(tmp_path), str(unsigned)]) == 1
        assert unsigned.read_bytes() == before

    def test_without_a_terminal_it_is_refused_in_words(
        self, unsigned, tmp_path, monkeypatch, capsys
    ):
        monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
        before = unsigned.read_bytes()
        assert main(["sign", "--key", private(tmp_path), str(unsigned)]) == 2
        assert "There is nobody to ask" in capsys.readouterr().err
        assert unsigned.read_bytes() == before

    @pytest.mark.long
    def test_signing_again_changes_nothing_and_a_second_person_adds(self, notebook, tmp_path):
        before = notebook.read_bytes()
        assert main(["sign", "--yes", "--key", private(tmp_path), str(notebook)]) == 0
        assert notebook.read_bytes() == before
        assert main(["sign", "--yes", "--key", private(tmp_path, 2), str(notebook)]) == 0
        for text in ours(notebook)[Signatures.KEY].values():
            assert text.count("BEGIN SSH SIGNATURE") == 2
        for name, one in (("ann", ANN), ("bob", BOB)):
            main(["trust", "add", name, public(one)])
            assert main(["test", str(notebook)]) == 0
            main(["trust", "remove", name])

    def test_signing_leaves_the_keys_in_the_order_of_jupyter(self, unsigned, tmp_path):
        nb = nbformat.read(unsigned, 4)
        nb.metadata[OURS]["payloads"] = {}  # sorts before the runs
        nbformat.write(nb, unsigned)
        assert main(["sign", "--key", private(tmp_path), "--yes", str(unsigned)]) == 0
        signed = load_notebook(unsigned)["metadata"][OURS]
        assert list(signed) == sorted(signed)
        assert Signatures.KEY in signed

    def test_records_of_a_newer_version_are_not_signed(self, unsigned, tmp_path, capsys):
        change(unsigned, lambda nb, mine, cell, record: mine.update(version=2))
        before = unsigned.read_bytes()
        assert main(["sign", "--yes", "--key", private(tmp_path), str(unsigned)]) == 2
        assert "a newer agent_nb wrote its records (version 2" in capsys.readouterr().err
        assert unsigned.read_bytes() == before

    def test_a_record_that_was_changed_is_not_signed(self, unsigned, tmp_path, capsys):
        change(unsigned, another_content)
        assert main(["sign", "--yes", "--key", private(tmp_path), str(unsigned)]) == 1
        assert "it was changed after it was made and is not signed" in capsys.readouterr().out
        assert list(ours(unsigned)[Signatures.KEY]) == [ours(unsigned)["runs"]["cell4"][0]["hash"]]

    def test_hostile_arguments_are_shown_as_plain_bounded_text(
        self, unsigned, tmp_path, terminal, capsys
    ):
        def forged(nb, mine, cell, record):
            evil = "\x1b[2Jx\u202ey\ncell 9 (safe)\n" + "#" * 9000
            text = json.dumps(record["events"]).replace(
                json.dumps("base + 2")[1:-1], json.dumps(evil)[1:-1]
            )
            record["events"] = json.loads(text)
            record["id"] = "x\ncell 8 (safe)"
            record["hash"] = record_hash(record)

        change(unsigned, forged)
        asked = terminal("n")
        main(["sign", "--key", private(tmp_path), str(unsigned)])
        said = capsys.readouterr().out
        assert "\x1b" not in said
        assert "\u202e" not in said
        assert "\ncell 9" not in said
        assert "\ncell 8" not in said
        assert "more characters]" in said
        assert len(said) < 6000
        assert "1 argument is not shown in full." in asked[0]

    def test_calls_of_built_in_tools_that_look_are_left_out_unless_redefined(
        self,
    ):
        from agent_nb.notebook.files.review import list_quiet_tools

        assert list_quiet_tools(iter(["x = 1"])) >= {"read", "list"}
        assert not {"python", "shell", "write"} & list_quiet_tools(iter([]))
        assert "read" not in list_quiet_tools(iter(["def read(path):\n    return eval(path)"]))
        for source in ("from helpers import *", "%run helpers.py", "exec(text)"):
            assert not list_quiet_tools(iter([source]))

    def test_a_cell_that_ipython_gives_up_on_is_read_all_the_same(self, monkeypatch):
        from agent_nb.notebook.files.review import list_quiet_tools

        monkeypatch.setattr("IPython.core.inputtransformer2.TRANSFORM_LOOP_LIMIT", 3)
        cell = "!ls\n" * 5 + "def read(path):\n    return open(path)"
        assert "read" not in list_quiet_tools(iter([cell]))

    def test_they_are_counted(self):
        from agent_nb.notebook.files.review import Item

        assert (
            str(Item(1, "cell 1", "run x", {}, "s", ["    python"], 1, 0, 2))
            == "  run x: 1 call (and 2 that only look)\n    python"
        )

    def test_an_rsa_key_is_refused_in_words(self, unsigned, tmp_path, capsys):
        assert main(["sign", "--yes", "--key", private(tmp_path, kind="rsa"), str(unsigned)]) == 2
        assert "a key of another kind (RSA); only Ed25519 keys sign" in capsys.readouterr().err

    def test_a_key_that_is_not_there_is_named_with_what_to_do(self, unsigned, tmp_path, capsys):
        assert main(["sign", "--yes", "--key", str(tmp_path / "none"), str(unsigned)]) == 2
        assert "ssh-keygen -t ed25519" in capsys.readouterr().err

    @pytest.mark.long
    def test_an_encrypted_key_asks_for_its_passphrase(
        self, unsigned, tmp_path, terminal, monkeypatch, capsys
    ):
        pytest.importorskip("bcrypt")
        file = private(tmp_path, passphrase=b"open")
        monkeypatch.setattr("sys.stdin", io.StringIO())
        assert main(["sign", "--yes", "--key", file, str(unsigned)]) == 2
        assert "encrypted" in capsys.readouterr().err
        terminal("y")
        monkeypatch.setattr("agent_nb.cli.main.signing.getpass", lambda text: "open")
        assert main(["sign", "--key", file, str(unsigned)]) == 0

    @pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")
    def test_openssh_verifies_a_signature_with_the_users_list(self, notebook, tmp_path):
        main(["trust", "add", "ann", public(ANN)])
        metadata, cell = ours(notebook), load_notebook(notebook)["cells"][2]
        record = metadata["runs"]["cell3"][0]
        named, shown = record["hash"], RecordedCall.digest_all(record)[0]
        (tmp_path / "signature").write_text(metadata[Signatures.KEY][named])
        command = [
            "ssh-keygen",
            "-Y",
            "verify",
            "-f",
            str(signers_file()),
            "-I",
            "ann",
            "-n",
            NAMESPACE,
            "-s",
            str(tmp_path / "signature"),
        ]
        lines = ("agent_nb signed record 2", named, source_hash(source_of(cell)), shown)
        said = "".join(f"{line}\n" for line in lines).encode()
        done = subprocess.run(command, input=said, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert subprocess.run(
            command, input=said[:-2], capture_output=True, timeout=60, check=False
        ).returncode

    def test_verify_lists_and_counts_the_calls_that_sign_does(self, notebook, capsys):
        def looks_only(nb, mine, cell, record):
            text = json.dumps(record["events"]).replace('"python"', '"read"')
            record["events"] = json.loads(text)
            record["hash"] = record_hash(record)

        change(notebook, looks_only)
        main(["verify", str(notebook)])
        said = capsys.readouterr().out
        assert "can run again: read" not in said
        assert said.count("can run again: 1 call that only looks") == 1
        assert said.count("can run again: python: ") == 1
        assert "(and 1 that only looks)" in review_records(load_notebook(notebook)).render()

    def test_verify_names_the_signers(self, notebook, capsys):
        main(["trust", "add", "ann", public(ANN)])
        assert main(["verify", str(notebook)]) == 0
        assert capsys.readouterr().out.count(": signed by ann\n") == 2


class TestKeeping:
    """Saving keeps the signatures of the records that stay."""

    def test_a_front_end_that_loaded_the_notebook_before_does_not_erase_them(self, made):
        loaded, signed = (
            load_notebook(made.with_name("unsigned.ipynb")),
            load_notebook(made)["metadata"][OURS],
        )
        assert NotebookRuns(loaded).lift(signed)
        assert loaded["metadata"][OURS][Signatures.KEY] == signed[Signatures.KEY]

    def test_a_front_end_that_has_them_keeps_them_where_the_file_is_new(self, made):
        loaded = load_notebook(made)
        before = loaded["metadata"][OURS][Signatures.KEY]
        assert NotebookRuns(loaded).lift(None)
        assert loaded["metadata"][OURS][Signatures.KEY] == before

    def test_signatures_of_missing_records_and_invalid_ones_are_dropped(self, made):
        nb = load_notebook(made)
        mine = nb["metadata"][OURS]
        kept, gone = (mine["runs"][cell][0]["hash"] for cell in ("cell3", "cell4"))
        del mine["runs"]["cell4"]
        mine[Signatures.KEY] |= {
            "sha256:2:unknown": mine[Signatures.KEY][gone],
            kept: "junk" + mine[Signatures.KEY][kept] + "junk",
        }
        before = load_notebook(made)["metadata"][OURS][Signatures.KEY][kept]
        NotebookRuns(nb).lift(None)
        assert nb["metadata"][OURS][Signatures.KEY] == {kept: before}

    def test_the_last_one_leaves_no_empty_place(self, made):
        nb = load_notebook(made)
        nb["metadata"][OURS]["runs"] = {}
        NotebookRuns(nb).lift(None)
        assert Signatures.KEY not in nb["metadata"][OURS]

    def test_clearing_outputs_keeps_them_and_strip_removes_them(self, made):
        nb = load_notebook(made)
        for cell in nb["cells"]:
            cell["outputs"] = []
        NotebookRuns(nb).lift(load_notebook(made)["metadata"][OURS])
        assert len(nb["metadata"][OURS][Signatures.KEY]) == 2
        NotebookRuns(nb).strip()
        assert OURS not in nb["metadata"]

    def test_a_merge_keeps_those_of_both_sides(self, made, tmp_path):
        for name in ("base", "ours", "theirs"):
            shutil.copy(made.with_name("unsigned.ipynb"), tmp_path / f"{name}.ipynb")
        for seed, name in ((1, "ours"), (2, "theirs")):
            assert (
                main(
                    [
                        "sign",
                        "--yes",
                        "--key",
                        private(tmp_path, seed),
                        str(tmp_path / f"{name}.ipynb"),
                    ]
                )
                == 0
            )
        assert git.merge_files(*(tmp_path / f"{name}.ipynb" for name in ("base", "ours", "theirs")))
        texts = ours(tmp_path / "ours.ipynb")[Signatures.KEY].values()
        assert [text.count("BEGIN") for text in texts] == [2, 2]

    def test_a_replay_in_place_keeps_them(self, notebook, made, monkeypatch):
        monkeypatch.setenv("JUPYTER_DATA_DIR", str(made.parent / "jupyter"))
        before = ours(notebook)[Signatures.KEY]
        assert main(["run", "--inplace", "--rerun", "replay", str(notebook)]) == 0
        assert ours(notebook)[Signatures.KEY] == before

    def test_a_flood_of_signatures_is_bounded(self):
        many = "".join(
            armor_signature(Signature(ANN.public, NAMESPACE, "sha512", bytes([n]) * 64))
            for n in range(99)
        )
        found = Signatures.merge({Signatures.KEY: {"sha256:2:x": many}})["sha256:2:x"]
        assert found.count("BEGIN") == 16


def test_a_request_without_proof_names_no_signed_records():
    from agent_nb.notebook.identity import Cell
    from agent_nb.notebook.runner_options import read_options

    assert (
        trusted_records(
            Cell(key="c", runner_options=read_options({"agent_nb": {"signed": ["sha256:2:x"]}}))
        )
        == frozenset()
    )
    assert trusted_records(Cell(key="c", runner_options={"signed": ["sha256:2:x"]})) == {
        "sha256:2:x"
    }
    assert trusted_records(Cell(key="c", runner_options={"signed": "sha256:2:x"})) == frozenset()


@pytest.mark.parametrize(
    "source",
    [
        "from tools import (\n    x,\n    variables,\n)",
        "variables, other = make()",
        "class variables: pass",
        "for variables in (1, 2): pass",
        "with open('x') as variables: pass",
        "%load_ext x\nvariables, other = !ls",
        "%%time\ndef variables(): pass",
        "%%timeit -n1\nimport os\nasync def variables(): pass",
        "for f in !ls:\n    variables = f",
        "def variables(:",
        "def f(:\n    a = variables = f",
        "def f(:\n    (a, variables) = f()",
        "def f(:\nfrom tools import (\n    x,\n    variables,\n)",
        "%time variables = lambda: 1",
        "time variables = lambda: 1",
        "for _ in '1':\n    %prun -q variables = lambda: 1",
        "%%time\n%%capture\nx = 1\nvariables = f",
        "%%timeit global variables; variables = f\npass",
        "%time %run helpers.py",
        "run helpers.py",
        "%store -r",
        "%rerun 3-4",
        "rerun -l 2",
        "  recall",
        "%recall 1",
        "%rep 1",
        "%macro again 1-3",
        "from numpy import array\n%pylab",
        "%alias_magic bash capture",
        "%%time\nalias_magic --cell bash capture",
        "from IPython.core.magic import register_cell_magic\nregister_cell_magic(run, 'bash')",
        "get_ipython().user_ns['vari' + 'ables'] = f",
        "setattr(module, 'vari' + 'ables', f)",
        "get_ipython().push({'vari' + 'ables': f})",
        "eval('ex' + 'ec')('def vari' + 'ables(): ...')",
        "vars()['vari' + 'ables'] = f",
        "%%debug\ndef variables(): pass",
        "%%memit -r 1\ndef variables(): pass",
        "%config AgentMagics.tools = []; variables = f",
        "%config AgentMagics.tools = ['{variables}']",
        "%time ｖariables = f",
        "import __main__\n__main__.variables = f",
        "%%agent\nGo on. {{ globals().update({'vari' + 'ables': f}) }}",
        "%%agent --map \"setattr(module, 'vari' + 'ables', f)\"\nGo on.",
    ],
)
def test_a_built_in_tool_that_any_statement_redefines_is_listed(source):
    from agent_nb.notebook.files.review import list_quiet_tools

    assert "variables" in list_quiet_tools(iter(["x = 1"]))
    assert "variables" not in list_quiet_tools(iter([source]))


def test_a_built_in_tool_that_a_setting_names_is_counted():
    from agent_nb.notebook.files.review import list_quiet_tools

    source = """%load_ext agent_nb\n%config AgentMagics.tools = ["python", 'variables']"""
    assert "variables" in list_quiet_tools(iter([source]))


PROMPTS = ("", "  ", ">>> ", "... ", "In [1]: ", "   ...: ", "[ins]In [1]: ")


def test_cells_of_many_magics_take_bounded_time_and_hide_no_tool(monkeypatch):
    """IPython reads a cell again for each magic in it: many long cells would take hours."""
    from IPython.core.inputtransformer2 import TransformerManager

    from agent_nb.notebook.files.review import list_quiet_tools

    read, transform_cell = [], TransformerManager.transform_cell

    def transform(manager, code):
        read.append(len(code) * len(code.splitlines()))
        assert sum(read) < 1_000_000
        return transform_cell(manager, code)

    monkeypatch.setattr(TransformerManager, "transform_cell", transform)
    hostile = [f"x = 1{end}!ls\n" * 2000 for end in ("\n", "\r", "\x0b", "\u2028")]
    hostile += [f"{prompt}{sign}f x\n" * 2000 for prompt in PROMPTS for sign in ",;/?!%"]
    honest = ["!pip install x", *["!ls\n" * 20] * 20]
    assert "variables" in list_quiet_tools(iter([*honest, *hostile]))
    assert read
    assert "variables" not in list_quiet_tools(iter([*hostile, "!ls\nvariables = f"]))
    assert "variables" not in list_quiet_tools(
        iter([*hostile, *(f"{h}variables = f" for h in hostile)])
    )


@pytest.mark.parametrize("source", ["%%bash\nvariables=1", "%%agent\nWhat does exec do?"])
def test_a_cell_that_runs_no_python_here_redefines_no_tool(source):
    from agent_nb.notebook.files.review import list_quiet_tools

    assert "variables" in list_quiet_tools(iter([source]))
