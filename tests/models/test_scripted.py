"""The scripted model."""

import json

import anyio
import pytest

from agent_nb import Agent
from agent_nb.errors import ModelError, UsageError
from agent_nb.models import parts
from agent_nb.models.offline import is_script
from agent_nb.models.script_turn import Case, ScriptedCall, Turn
from agent_nb.models.scripted import Scripted, provider


def batches(model, request):
    async def main():
        return [list(batch) async for batch in model.stream(request)]

    return anyio.run(main)


def test_turns_are_handed_out_in_order(collect):
    model = Scripted(["one", {"text": "two"}])
    assert [collect(model).text, collect(model).text] == ["one", "two"]


def test_every_run_begins_with_the_first_turn(collect):
    model = Scripted(["one", "two"])
    assert collect(model.start()).text == "one"
    assert collect(model.start()).text == "one"


def test_two_runs_at_once_each_get_their_own_turns(request_of):
    script = Scripted([{"text": "abcd", "chunk": 1}, "rest"])

    async def play(model, out):
        async for batch in model.stream(request_of("hi")):
            out.extend(p.text for p in batch if isinstance(p, parts.Text))
            await anyio.sleep(0)

    async def main():
        first, second = [], []
        async with anyio.create_task_group() as group:
            group.start_soon(play, script.start(), first)
            group.start_soon(play, script.start(), second)
        return first, second

    assert anyio.run(main) == (list("abcd"), list("abcd"))


def test_running_out_of_turns_is_an_error_that_says_so(collect):
    model = Scripted(["one"], name="demo")
    collect(model)
    with pytest.raises(ModelError, match="demo has 1 turn, and this is request 2") as caught:
        collect(model)
    assert caught.value.code == "script"
    assert not caught.value.retryable


def test_chunk_cuts_the_text_into_pieces_of_that_size(request_of):
    got = batches(Scripted([{"text": "abcde", "chunk": 2}]), request_of("hi"))
    assert [p.text for b in got for p in b if isinstance(p, parts.Text)] == ["ab", "cd", "e"]


def test_chunks_come_as_they_are_written(request_of):
    got = batches(Scripted([{"chunks": ["<thi", "nk>", "x"]}]), request_of("hi"))
    assert [p.text for b in got for p in b if isinstance(p, parts.Text)] == ["<thi", "nk>", "x"]


def test_thoughts_calls_usage_and_finish_of_the_native_dialect(collect):
    turn = {
        "reasoning": ["hm", "m"],
        "text": "ok",
        "calls": [{"name": "list", "args": {"path": "."}, "id": "c1"}, {"name": "now"}],
        "usage": {"input": 3, "output": 4, "reasoning": 1},
    }
    got = collect(Scripted([turn]))
    assert (got.reasoning, got.text, got.finish) == ("hmm", "ok", "tool_calls")
    assert got.calls == [("c1", "list", '{"path": "."}'), ("", "now", "{}")]
    assert (got.usage.input, got.usage.output, got.usage.reasoning) == (3, 4, 1)
    assert "".join(d.text for d in got.of(parts.CallDelta) if d.index == 0) == '{"path": "."}'


def test_arguments_written_as_text_may_be_broken(collect):
    got = collect(Scripted([{"calls": [{"name": "list", "args": '{"path": '}]}]))
    assert "not valid JSON" in got.of(parts.Call)[0].fault


def test_a_cut_after_the_first_part_may_not_be_retried(caught):
    got, error = caught(Scripted([{"text": "half", "cut": True}]))
    assert (got.text, got.finish) == ("half", None)
    assert (error.code, error.retryable) == ("cut", False)


def test_a_cut_before_the_first_part_may_be_retried(collect):
    with pytest.raises(ModelError) as caught:
        collect(Scripted([{"cut": True}]))
    assert caught.value.retryable


@pytest.mark.parametrize(("status", "retryable"), [(429, True), (503, True), (401, False)])
def test_a_scripted_error_fails_the_request(collect, status, retryable):
    with pytest.raises(ModelError, match="too many") as caught:
        collect(Scripted([{"error": {"status": status, "message": "too many", "retry_after": 2}}]))
    assert (caught.value.status, caught.value.retryable, caught.value.retry_after) == (
        status,
        retryable,
        2,
    )


def test_a_failed_request_uses_its_turn_up(collect):
    model = Scripted([{"error": {"status": 500}}, "then"])
    with pytest.raises(ModelError):
        collect(model)
    assert collect(model).text == "then"


def test_delay_waits_before_each_piece(request_of, monkeypatch):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    monkeypatch.setattr("agent_nb.models.scripted.anyio.sleep", sleep)
    batches(Scripted([{"text": "abc", "chunk": 1, "delay": 0.5}], delay=9), request_of("hi"))
    assert waits[:3] == [0.5] * 3
    assert 9 not in waits


def test_a_text_is_a_script_of_one_turn():
    assert Agent(Scripted("Hello.")).run_sync("hi").answer == "Hello."


@pytest.mark.parametrize("turns", [b"Hello.", {"text": "Hello."}, None, str.upper])
def test_a_script_that_is_no_list_is_a_usage_error(turns):
    with pytest.raises(UsageError, match=r'list of turns: Scripted\(\["Yes\."\]\), not a '):
        Scripted(turns)


def test_a_wrong_turn_names_its_number_and_the_keys():
    with pytest.raises(UsageError, match=r"turn 2: .*chunkz.*Keys of a turn: text, chunk"):
        Scripted(["fine", {"chunkz": 3}])


YAML = """\
delay: 0.0
turns:
  - text: one
  - text: two
    usage: {input: 1, output: 2}
"""


@pytest.mark.parametrize("name", ["demo.yaml", "demo"])
def test_a_yaml_file_is_found_from_the_current_folder(tmp_path, monkeypatch, collect, name):
    (tmp_path / "demo.yaml").write_text(YAML)
    monkeypatch.chdir(tmp_path)
    model = provider(name)
    assert model.name == f"scripted/{name}"
    assert [collect(model).text, collect(model).usage.output] == ["one", 2]


def test_a_file_is_also_found_in_the_notebooks_folder(tmp_path, monkeypatch, collect):
    (tmp_path / "nb").mkdir()
    (tmp_path / "nb" / "demo.json").write_text('[{"text": "json"}]')
    monkeypatch.chdir(tmp_path)
    assert collect(provider("demo.json", folder=tmp_path / "nb")).text == "json"


def test_a_missing_file_says_what_a_script_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"no script 'none'.*YAML or JSON"):
        provider("none")


@pytest.mark.parametrize("name", ["x" * 300, "~nobody-here/a.yaml"])
def test_a_name_that_no_file_can_have_is_a_missing_file(name):
    with pytest.raises(UsageError, match="no script"):
        provider(name)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "turns:\n  - text: [", r"a\.yaml, line \d, column \d"),
        ("a.yaml", "turns:\n  - text: x\n  - txt: y\n", r"turn 2 \(line 3\).*txt"),
        ("a.yaml", "turns: 3", "a script is a list of turns"),
        ("a.yaml", "", "a script is a list of turns"),
        ("a.yaml", "turns: []\nspeed: 3", "unknown key 'speed'"),
        ("a.yaml", "turns: []\ndelay: fast", "number of seconds"),
        ("a.yaml", "turns: []\ndelay: true", "number of seconds"),
        ("a.yaml", "turns: []\ndelay: .inf", r"Expected `float` <= .*delay"),
        ("a.yaml", "- delay: -1", r"turn 1 \(line 1\): Expected `float` >= 0.*delay"),
        ("a.yaml", "- usage: {cost: .nan}", r"turn 1 .*usage\.cost"),
        ("a.yaml", "- error: {retry_after: .nan}", r"turn 1 .*retry_after"),
        ("a.json", r'["\ud800"]', "turn 1: .*surrogates"),
        ("a.json", '{"turns": [', r"a\.json, line 1, column \d+"),
        ("a.json", '[{"text": 3}]', "turn 1"),
        ("a.yaml", "- 2024-02-30", r"a\.yaml: day is out of range"),
        ("a.yaml", "- !!bool maybe", r"a\.yaml: 'maybe'"),
        ("a.yaml", "- !!timestamp now", r"a\.yaml: "),
        ("a.json", "9" * 5000, r"a\.json: Exceeds the limit"),
        ("a.yaml", "turns: &a [*a]", r"a\.yaml is nested too deeply"),
    ],
)
def test_a_malformed_file_is_a_usage_error_with_its_position(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=message):
        provider(str(tmp_path / name))


def test_a_binary_file_is_a_usage_error(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(UsageError, match="cannot be read"):
        provider(str(tmp_path / "a.yaml"))


def test_native_calls_in_a_dialect_of_text_are_an_error_that_names_native():
    model = Scripted(["Hm.", {"calls": [{"name": "f"}]}])
    with pytest.raises(
        UsageError, match=r'Turn 2 of scripted has `calls:`, .* Scripted\(…, dialect="native"\)'
    ):
        Agent(model, secrets={}).run_sync("go", check=False)
    assert Agent(model, dialect="native", secrets={}).run_sync("go").answer == "Hm."
    Scripted([{"text": "Hm.", "calls": []}]).check_dialect(native=False)


def test_native_calls_of_a_case_are_an_error_that_names_the_case():
    turns = (Turn(text="Hm."), Turn(calls=(ScriptedCall(name="f"),)))
    cases = [Case(when="a", turns=(Turn(text="b"),)), Case(when="b", turns=turns)]
    model = Scripted(["Hm."], cases=cases)
    with pytest.raises(UsageError, match=r"^Turn 2 of case 2 of scripted has `calls:`"):
        model.check_dialect(native=False)
    model.check_dialect(native=True)


def test_a_prompt_that_holds_the_text_of_a_case_gets_its_turns(tmp_path):
    script = tmp_path / "moods.yaml"
    script.write_text(
        "turns: [neither]\ncases:\n  - when: broken\n    turns: [bad]\n  - when: bro\n    turns: [well]\n"
    )
    agent = Agent(f"scripted/{script}")
    prompts = ["It came broken.", "Thank you, bro!", "It came."]
    assert [agent.run_sync(p).answer for p in prompts] == ["bad", "well", "neither"]


def test_all_requests_of_a_run_get_the_turns_of_its_prompt(tmp_path):
    call = '<execute>[{"name": "list", "args": {"path": "."}}]</execute>'
    case = {"when": "folder", "turns": [call, "One file."]}
    script = tmp_path / "look.json"
    script.write_text(json.dumps({"cases": [case]}))
    run = Agent(f"scripted/{script}", ["list"], folder=tmp_path, approve="auto").run_sync(
        "What is in the folder?"
    )
    assert run.answer == "One file."


def test_a_prompt_without_a_case_and_turns_is_an_error_that_says_so(tmp_path):
    script = tmp_path / "one.yaml"
    script.write_text("cases: [{when: a, turns: [b]}]")
    run = Agent(f"scripted/{script}").run_sync("x", check=False)
    assert "0 turns for this prompt" in run.error


@pytest.mark.parametrize(
    "cases", ["{when: a}", "[{when: a}]", "[{when: '', turns: []}]", "[a]", "[{when: a, turns: b}]"]
)
def test_a_wrong_case_is_an_error_that_names_the_file(tmp_path, cases):
    script = tmp_path / "wrong.yaml"
    script.write_text(f"cases: {cases}\n")
    with pytest.raises(UsageError, match=r"wrong\.yaml"):
        provider(str(script))


def test_a_changed_case_is_another_model():
    models = [Scripted(["a"], cases=[Case(when=w, turns=(Turn(text="b"),))]) for w in "xy"]
    assert len({m.identity for m in (*models, Scripted(["a"]))}) == 3


def test_only_the_class_itself_counts_as_a_script():
    class Calls(Scripted):
        """It may call anything."""

    class Claims(type):
        """A metaclass whose classes equal every other."""

        def __eq__(cls, other):
            return True

        def __hash__(cls):
            return hash(Scripted)

    class Other(metaclass=Claims):
        pass

    assert is_script(Scripted(["Yes."]))
    assert not any(is_script(model) for model in (Calls(["Yes."]), Other(), Scripted, None))


@pytest.mark.parametrize("ending", [".json", ".yaml"])
def test_a_script_nested_too_deeply_is_named(tmp_path, ending):
    (tmp_path / f"deep{ending}").write_text("[" * 3000 + "]" * 3000)
    with pytest.raises(UsageError, match="is nested too deeply"):
        provider(f"deep{ending}", folder=tmp_path)
