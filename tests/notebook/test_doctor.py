"""`jupyter agent-nb doctor`: what it finds, what it advises, and when it fails."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent_nb.cli.main import main
from agent_nb.notebook import doctor
from agent_nb.notebook.doctor import (
    Finding,
    Findings,
    collect_findings,
    environment,
)
from agent_nb.notebook.doctor.environment import HOOK, KernelPython


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """Make separate folders, one kernel (this Python), and a server with the hook enabled."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "path"))
    monkeypatch.setenv("PYTHONPATH", str(Path(doctor.__file__).parents[3]))
    monkeypatch.chdir(tmp_path)
    enable(tmp_path)
    return tmp_path


def enable(folder, on=True):
    place = folder / "config" / "jupyter_server_config.d"
    place.mkdir(parents=True, exist_ok=True)
    (place / "x.json").write_text(json.dumps({"ServerApp": {"jpserver_extensions": {HOOK: on}}}))


def kernel(folder, name, *argv, language="python"):
    place = folder / "path" / "kernels" / name
    place.mkdir(parents=True)
    (place / "kernel.json").write_text(
        json.dumps({"argv": [*argv, "-m", "x"], "display_name": name, "language": language})
    )


def found(topic, **options):
    (finding,) = [f for f in collect_findings(**options) if f.topic == topic]
    return finding


def test_a_sound_installation_passes_and_says_versions(capsys):
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert f"Python {sys.version.split()[0]}, ipykernel" in told
    assert "records are signed" in told or "the first run makes" in told


def test_json_for_programs(capsys):
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is True
    assert {"topic", "state", "said", "todo"} == set(answer["findings"][0])


def test_the_value_of_a_key_is_never_said(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-very-secret-value")
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "openai/gpt-5-mini (because of the key from OPENAI_API_KEY)" in told
    assert "key openai" in told
    assert "very-secret" not in told


@pytest.mark.parametrize(
    ("variables", "state", "words"),
    [
        ({"AGENT_NB_MODEL": "anthropic/claude-x"}, "broken", "it has no key"),
        ({"AGENT_NB_MODEL": "nowhere/x"}, "broken", "no provider 'nowhere'"),
        ({"AGENT_NB_MODEL": "anthropic/x", "ANTHROPIC_API_KEY": "a b"}, "broken", "cannot be one"),
        (
            {"AGENT_NB_MODEL": "anthropic/x", "ANTHROPIC_API_KEY": "sk-ant-12345678"},
            "ok",
            "from AGENT_NB_MODEL",
        ),
    ],
)
def test_the_model_that_would_be_chosen(monkeypatch, variables, state, words):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    finding = found("model")
    assert finding.state == state
    assert words in finding.text


def test_a_key_of_the_folder_is_reported_as_unused_with_a_remedy(surroundings, capsys):
    (surroundings / ".env").write_text("OPENAI_API_KEY=sk-0123456789abcdef")
    finding = found("keys of the folder")
    assert (finding.state, finding.text) == (
        "missing",
        f".env in {surroundings} has OPENAI_API_KEY; not used",
    )
    assert "jupyter agent-nb trust-folder" in finding.todo


def test_a_missing_model_is_not_broken(monkeypatch):
    monkeypatch.setattr("agent_nb.models.choose.is_local_installed", lambda: False)
    finding = found("model")
    assert finding.state == "missing"
    assert "AGENT_NB_MODEL" in finding.todo


def test_what_the_notebook_configures_counts():
    assert "from %config" in found("model", model="ollama/qwen3").text


def test_a_hook_that_is_off_is_a_fault_that_says_how_to_enable_it(
    surroundings, monkeypatch, capsys
):
    real = environment.find_version
    monkeypatch.setattr(
        environment, "find_version", lambda name: "2.0" if name == "jupyter_server" else real(name)
    )
    enable(surroundings, on=False)
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "✗ server hook" in told
    assert f"jupyter server extension enable {HOOK}" in told


def test_without_a_server_the_hook_is_not_missed(surroundings, monkeypatch):
    real = environment.find_version
    monkeypatch.setattr(
        environment, "find_version", lambda name: "" if name == "jupyter_server" else real(name)
    )
    enable(surroundings, on=False)
    assert found("server hook").state == "missing"


@pytest.mark.slow
def test_every_python_kernel_is_asked_and_others_are_not(surroundings):
    kernel(surroundings, "own", sys.executable)
    kernel(surroundings, "gone", "/no/such/python")
    kernel(surroundings, "julia", "julia", language="julia")
    topics = {f.topic: f for f in collect_findings()}
    assert topics["kernel own"].state == "ok"
    assert topics["kernel gone"].state == "missing"
    assert "jupyter kernelspec remove gone" in topics["kernel gone"].todo
    assert "kernel julia" not in topics


def test_a_kernel_without_the_package_says_where_to_install_it(surroundings, monkeypatch):
    answer = KernelPython("3.12.0", "7.4.0", "not installed")
    monkeypatch.setattr(environment, "_probe", lambda python: answer)
    kernel(surroundings, "bare", "/opt/bare/python")
    assert "/opt/bare/python -m pip install jupyter-agent-nb" in found("kernel bare").todo
    assert not collect_findings().sound


@pytest.mark.parametrize("output", ["", "Welcome!", "[]", "{}", '{"python": "3.12.0"}'])
def test_a_kernel_whose_program_is_no_python_says_so(surroundings, monkeypatch, output):
    monkeypatch.setattr(
        environment.subprocess,
        "run",
        lambda command, **_: subprocess.CompletedProcess(command, 0, stdout=output),
    )
    kernel(surroundings, "odd", "/opt/odd/program")
    assert found("kernel odd").text == "/opt/odd/program: is not a working Python"


@pytest.mark.slow
def test_a_kernel_that_is_asked_imports_nothing_from_the_temporary_folder(
    surroundings, monkeypatch
):
    shared = surroundings / "shared"
    shared.mkdir()
    (shared / "json.py").write_text("raise SystemExit('a stranger put this here')")
    monkeypatch.setattr(environment.tempfile, "tempdir", str(shared))
    kernel(surroundings, "own", sys.executable)
    assert found("kernel own").state == "ok"


@pytest.mark.parametrize("line", ["no-such-package-at-all>=1.0", "msgspec>=9999"])
def test_a_requirement_that_is_not_met_is_a_fault(monkeypatch, line):
    monkeypatch.setattr(environment, "requires", lambda _: [line])
    # our own is there
    monkeypatch.setattr(
        environment, "find_version", lambda name: "" if name.startswith("no-") else "1.0"
    )
    assert found("requirements").state == "broken"


def test_folders_that_cannot_be_written_are_faults(surroundings, monkeypatch):
    (surroundings / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(surroundings / "file" / "below"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(surroundings / "file"))
    findings = {f.topic: f for f in collect_findings()}
    assert findings["journals"].state == findings["signatures"].state == "broken"
    assert "XDG_STATE_HOME" in findings["journals"].todo


def test_nothing_is_written_by_looking(surroundings):
    before = sorted(surroundings.rglob("*"))
    collect_findings()
    assert sorted(surroundings.rglob("*")) == before


def test_a_check_that_fails_is_a_finding(monkeypatch):
    def broken():
        raise RuntimeError("worse")

    monkeypatch.setitem(doctor.CHECKS, "state", broken)
    shown = Findings(f for f in collect_findings() if f.topic == "state").render()
    assert "RuntimeError: worse" in shown


def test_findings_are_aligned_with_the_remedy_below():
    findings = Findings([Finding("a", "ok", "fine"), Finding("long", "broken", "bad", "mend it")])
    assert findings.render() == "✓ a     fine\n✗ long  bad\n        → mend it"


@pytest.mark.slow
def test_it_does_not_import_what_takes_long():
    code = "import sys, agent_nb.notebook.doctor; print([m for m in ('pandas', 'IPython', 'nbclient') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
