"""Replay: a recorded run is found by its inputs and played without a model."""

import json
import socket

import anyio
import msgspec
import pytest
from helpers.replays import replay
from helpers.scripts import batch
from helpers.waiting import wait

from agent_nb import Agent, Scripted, tool
from agent_nb import events as e
from agent_nb.agent import history as context
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.agent.replay_check import ReplayStrictness
from agent_nb.errors import UsageError
from agent_nb.notebook.files.notebook_file import NotebookFile
from agent_nb.notebook.identity import Cell
from agent_nb.record.fingerprint import Digests
from agent_nb.record.match import Match
from agent_nb.record.normalize import normalize_value
from agent_nb.record.record import events_of, run_record
from agent_nb.record.signing import UserKey
from agent_nb.record.verify import check_record
from agent_nb.tools.base import Decision
from agent_nb.tools.kernel_permissions import KERNEL_PERMISSIONS, KernelPermissions
from agent_nb.view.state.fold import RunView

KEY = UserKey(b"this user's secret")
SPACE = {}


@tool(effect="kernel", name="python")
def python(code: str) -> str:
    """Evaluate an expression; a stand-in for the kernel's tool."""
    SPACE["ran"] = [*SPACE.get("ran", []), code]
    return str(eval(code, {}, SPACE))


@tool
def weather(city: str) -> str:
    """Look out of the window."""
    SPACE["looked"] = [*SPACE.get("looked", []), city]
    return f"{city}: {SPACE['sky']}"


ADD = batch(("python", {"code": "base + 2"}))
TURNS = [f"<think>add</think>{ADD}", "It is 42."]


@pytest.fixture(autouse=True)
def space():
    SPACE.clear()
    SPACE.update(base=40, sky="blue")


def agent(turns=TURNS, **options):
    model = options.pop("model", None) or Scripted(turns)
    return Agent(
        model,
        [python, weather],
        secrets=options.pop("secrets", {}),
        **{"approve": "auto", **options},
    )


def record(turns=TURNS, prompt="go", history=(), key=KEY, **options):
    """Run live and return the signed record, as read from a file."""
    run = wait(lambda: agent(turns, **options)(prompt, history=history, check=False))
    SPACE.pop("ran", None)
    return json.loads(json.dumps(key.sign(run_record(run.log))))


def play(stored, live=False, trust=False, key=KEY, wish=None, **options):
    """Replay a record; return the agent's Replay stream, ended."""
    tape = RecordedTurns.of(stored, key=key, trust=trust, live=live)
    made = agent([], **options)
    kept = []

    async def main():
        kept.append(made.replay(tape, wish=wish))
        return await kept[0]

    wait(main)
    return kept[0]


async def played(turns):
    """Return the outcome of a replay of `turns`, which has ended."""
    stream = agent([]).replay(turns)
    await stream
    return stream.played


TAMPERED = {
    "a byte of an event": lambda r: json.loads(json.dumps(r).replace("It is 42.", "It is 43.")),
    "a byte of an input": lambda r: json.loads(
        json.dumps(r).replace('"content": "go"', '"content": "no"')
    ),
    "the inputs themselves": lambda r: {
        **r,
        "events": [{**r["events"][0], "settings": {}}, *r["events"][1:]],
    },
    "the hash": lambda r: {**r, "hash": "sha256:" + "0" * 64},
    "no hash": lambda r: {k: v for k, v in r.items() if k != "hash"},
    "an event less": lambda r: {**r, "events": r["events"][:-2] + r["events"][-1:]},
    "the first event gone": lambda r: {**r, "events": r["events"][1:]},
    "two events the other way round": lambda r: {
        **r,
        "events": [r["events"][0], *r["events"][1:][::-1]],
    },
    "an event more": lambda r: {
        **r,
        "events": [*r["events"][:-1], {"type": "respond", "content": "x"}, r["events"][-1]],
    },
}


class TestMatching:
    def test_the_same_inputs_are_recorded(self):
        assert Match.find([record()], agent().inputs("go")).status == "recorded"

    @pytest.mark.parametrize(
        ("name", "inputs"),
        [
            ("prompt", lambda: agent().inputs("go on")),
            ("model", lambda: agent(["other words"]).inputs("go")),
            ("tools", lambda: Agent(Scripted(TURNS), [python], secrets={}).inputs("go")),
            ("settings", lambda: agent(system="be brief").inputs("go")),
            ("settings", lambda: agent(settings={"temperature": 0}).inputs("go")),
            ("settings", lambda: agent(dialect="section").inputs("go")),
            ("conversation", lambda: agent().inputs("go", history=[[e.User(content="before")]])),
        ],
    )
    def test_a_changed_input_is_stale_and_named(self, name, inputs):
        found = Match.find([record()], inputs())
        assert (found.status, found.changed) == ("stale", (name,))
        assert name in str(found)

    def test_nothing_on_record_is_unrecorded(self):
        assert Match.find([], agent().inputs("go")).status == "unrecorded"

    def test_limits_and_approval_do_not_count(self):
        assert (
            Match.find([record()], agent(limits={"turns": 3}, approve="ask").inputs("go")).status
            == "recorded"
        )

    def test_our_own_instructions_do_not_count(self, monkeypatch):
        stored = record()
        dialect = agent().dialect
        monkeypatch.setattr(type(dialect), "instructions", lambda *_: "entirely new instructions")
        monkeypatch.setattr(context, "write_messages", lambda *_: [])
        found = Match.find([stored], agent().inputs("go"))
        assert found.status == "recorded"
        assert play(found.record).played.drift is None

    def test_a_home_folder_in_the_prompt_matches_under_another_home(self):
        mine = Digests.of_inputs("read /home/ann/x", home="/home/ann")
        assert mine == Digests.of_inputs("read /Users/bob/x", home="/Users/bob")

    def test_a_home_folder_in_a_key_of_an_earlier_call_matches_too(self):
        homes = ("/home/ann", "/Users/bob")
        logs = [[e.Call(call_id="c", name="f", args={f"{home}/x": 1})] for home in homes]
        ann, bob = (
            Digests.of_inputs("p", history=[log], home=home)
            for log, home in zip(logs, homes, strict=True)
        )
        assert ann == bob

    def test_the_conversation_counts_by_what_was_said(self):
        before = [
            e.User(content="q", ts=1.0),
            e.Think(content="hm"),
            e.Respond(content="a", block="1"),
            e.Metric(),
            e.End(),
        ]
        same = [
            msgspec.structs.replace(x, ts=99.0, run="other") for x in before if x.type != "think"
        ]
        assert Digests.of_inputs("p", history=[before]) == Digests.of_inputs("p", history=[same])
        other = [e.User(content="q"), e.Respond(content="b")]
        one, two = (Digests.of_inputs("p", history=[log]) for log in (before, other))
        assert two.list_changes(one) == ("conversation",)

    def test_a_late_agent_needs_no_model_and_no_key_to_match(self):
        stored = record(model=None)
        late = Agent("openai/gpt-5", [python, weather], secrets={}, late=True)
        assert Match.find([stored], late.inputs("go")).changed == ("model",)

    def test_a_tampered_record_does_not_count(self):
        stored = json.loads(json.dumps(record()).replace("base + 2", "base + 9"))
        found = Match.find([stored], agent().inputs("go"))
        assert found.status == "tampered"
        assert "hash" in found.problem
        with pytest.raises(UsageError, match="hash"):
            RecordedTurns.of(stored, trust=True)

    @pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
    def test_whatever_was_changed_it_is_tampered_and_neither_stale_nor_played(self, change):
        stored = change(record())
        assert Match.find([stored], agent().inputs("go")).status == "tampered"
        assert any("does not have the hash" in problem for problem in check_record(stored))

    @pytest.mark.parametrize("body", ["other text " * 10_000, None])
    def test_a_payload_that_was_changed_or_lost_makes_a_record_tampered(self, body):
        stored = record([f"long {'answer ' * 20_000}"])
        (key,) = stored["payloads"]
        changed = {**stored, "payloads": {} if body is None else {key: body}}
        inputs = agent([f"long {'answer ' * 20_000}"]).inputs("go")
        assert Match.find([stored], inputs).status == "recorded"
        assert Match.find([changed], inputs).status == "tampered"
        with pytest.raises(UsageError, match="changed after it was made"):
            RecordedTurns.of(changed, trust=True)

    @pytest.mark.parametrize(
        "cut", [7, {"seq": 1}, [7, {}], [{"seq": [1], "field": "args"}, {"seq": 1, "field": {}}]]
    )
    def test_a_malformed_list_of_cuts_cuts_nothing(self, cut):
        assert RecordedTurns.of(KEY.sign({**record(), "cut": cut})).cut == frozenset()

    def test_an_older_record_that_is_whole_is_played_instead(self):
        old = record()
        assert Match.find([{**record(), "hash": ""}, old], agent().inputs("go")).record == old

    def test_only_a_run_that_ended_well_counts_unless_asked_for(self):
        stored = record(["ok"])
        failed = record([{"error": {"status": 401, "message": "no"}}])
        inputs = agent([{"error": {"status": 401, "message": "no"}}]).inputs("go")
        assert Match.find([failed], inputs).status == "stale"
        assert Match.find([failed], inputs, statuses=None).status == "recorded"
        assert Match.find([failed, stored], agent(["ok"]).inputs("go")).record == stored

    def test_the_newest_matching_record_is_taken(self):
        first, second = record(), record()
        assert Match.find([second, first], agent().inputs("go")).record == second

    def test_the_hash_covers_every_input(self):
        base = Digests.of_inputs(
            "p", model="m", tools=["t"], settings={"system": "s"}, history=[[e.User(content="x")]]
        )
        assert len({base.hash, *(Digests({**base, name: "0"}).hash for name in base)}) == 6


NOW, BEFORE = (Cell(key="k", body=body).text_hash for body in ("now", "before"))
RUNS = {
    "a": [{"id": "1", "source": NOW}],
    "b": [{"id": "2", "source": NOW}, {"id": "3", "source": BEFORE}],
}


class TestCandidates:
    def ids(self, **cell):
        file = NotebookFile(runs=RUNS, cell_ids=["b", "a"])
        return [r["id"] for r in file.find_records(Cell(key="k", **cell))]

    def test_by_cell_id(self):
        assert self.ids(id="b") == ["2", "3"]

    @pytest.mark.parametrize(("occurrence", "ids"), [(1, ["2"]), (2, ["1"]), (3, [])])
    def test_by_text_and_occurrence_in_the_order_of_the_notebook(self, occurrence, ids):
        assert self.ids(body="now", occurrence=occurrence) == ids

    def test_an_unknown_cell_falls_back_to_its_text(self):
        assert self.ids(id="new", body="before") == ["3"]

    def test_another_text_finds_nothing(self):
        assert self.ids(body="other") == []


class TestPlaying:
    def test_the_recorded_events_come_again_byte_for_byte(self):
        stored = record()
        before = json.dumps(stored)
        stream = play(stored)
        assert list(stream.log) == events_of(stored)
        assert stream.log.run == stored["id"]
        assert json.dumps(run_record(stream.log)["events"]) == json.dumps(stored["events"])
        assert json.dumps(stored) == before

    def test_no_model_is_asked_and_no_connection_made(self, monkeypatch):
        stored = record()
        monkeypatch.setattr(socket.socket, "connect", None)
        monkeypatch.setattr(Scripted, "stream", None)
        assert play(stored).run.answer == "It is 42."

    def test_kernel_calls_run_again(self):
        SPACE["again"] = []
        stored = record([batch(("python", {"code": "again.append(1) or 7"})), "ok"])
        SPACE["again"] = []
        assert play(stored).played.drift is None
        assert SPACE["again"] == [1]

    def test_other_calls_come_from_the_tape(self):
        stored = record([batch(("weather", {"city": "Ulm"})), "ok"])
        SPACE.update(sky="grey", looked=[])
        stream = play(stored)
        assert stream.log.of("result")[0].content == "Ulm: blue"
        assert (SPACE["looked"], stream.played.drift) == ([], None)

    def test_a_different_result_is_drift_and_the_replay_goes_on(self):
        stored = record()
        SPACE["base"] = 41
        stream = play(stored)
        assert "42" in str(stream.played.drift)
        assert "43" in str(stream.played.drift)
        assert stream.played.drift.name == "python"
        assert list(stream.log) == events_of(stored)

    def test_the_first_difference_is_reported(self):
        stored = record(
            [batch(("python", {"code": "base + 1"}), ("python", {"code": "base + 2"})), "ok"]
        )
        SPACE["base"] = 1
        drift = play(stored).played.drift
        assert (drift.recorded, drift.fresh) == ("41", "2")

    def test_a_call_that_fails_now_is_drift(self):
        stored = record()
        del SPACE["base"]
        assert "NameError" in str(play(stored).played.drift)

    def test_an_interrupted_replay_ends(self):
        stored = record()
        tape = RecordedTurns.of(stored, key=KEY)

        async def main():
            stream = agent([]).replay(tape)
            stream.cancel()
            return await stream

        run = wait(main)
        assert run.log.ended
        assert run.status in ("ok", "interrupted")

    def test_a_run_without_tools_of_that_name_comes_from_the_tape(self):
        stored = record()
        done = wait(lambda: replay(stored, key=KEY))
        assert done.drift is None
        assert done.log[-1].status == "ok"

    def test_waits_for_a_busy_provider_are_not_waited_again(self, monkeypatch):
        stored = record(
            [{"error": {"status": 429, "message": "slow down", "retry_after": 0}}, "Fine."]
        )

        async def sleep(seconds):
            raise AssertionError(f"waited {seconds} s")

        monkeypatch.setattr(anyio, "sleep", sleep)
        played = play(stored)
        assert [event.code for event in played.log.of("error")] == ["retry"]
        assert [event.ts for event in played.log] == [event.ts for event in events_of(stored)]


class TestFunctionsOfTheNotebook:
    """Plain functions of `__main__` that use its variables run again in every record."""

    CELL = """
said = []
def note(text: str) -> str:
    "Write down."
    said.append(text)
    return f"{len(said)} {text}"
def shout(text: str) -> str:
    "Make it loud."
    return text.upper() + MARK
"""

    @pytest.fixture
    def cell(self):
        space = {"__name__": "__main__"}
        exec(self.CELL.replace(" + MARK", ""), space)
        return space

    def record(self, cell, *wanted, key=KEY):
        made = Agent(Scripted([batch(*wanted), "ok"]), [cell["note"], cell["shout"]], secrets={})
        run = wait(lambda: made("go"))
        cell["said"].clear()
        return key.sign(run_record(run.log))

    def play(self, cell, stored, trust=False, **options):
        made = Agent(Scripted([]), [cell["note"], cell["shout"]], secrets={}, **options)
        kept = []

        async def main():
            kept.append(made.replay(RecordedTurns.of(stored, key=KEY, trust=trust)))
            return await kept[0]

        wait(main)
        return kept[0].played.drift

    def test_they_run_again_in_the_order_in_which_they_began(self, cell):
        stored = self.record(cell, ("note", {"text": "a"}), ("note", {"text": "b"}))
        assert self.play(cell, stored) is None
        assert cell["said"] == ["a", "b"]

    def test_other_data_give_a_drift_that_names_them(self, cell):
        stored = self.record(cell, ("note", {"text": "a"}))
        cell["said"].append("x")
        drift = self.play(cell, stored)
        assert (drift.recorded, drift.fresh, drift.reads) == ("1 a", "2 a", ["said"])

    def test_a_function_without_data_comes_from_the_tape(self, cell):
        stored = self.record(cell, ("shout", {"text": "a"}))
        exec("def shout(text: str) -> str:\n    raise AssertionError", cell)
        assert self.play(cell, stored) is None

    @pytest.mark.parametrize("approve", ["ask", "auto"])
    def test_foreign_calls_run_only_with_trust(self, cell, approve):
        """The code is the notebook's, the arguments are the record's: `note` may do anything."""
        stored = self.record(cell, ("note", {"text": "a"}), key=UserKey(b"another user"))
        assert "--trust-record" in self.play(cell, stored, approve=approve).fresh
        assert cell["said"] == []
        assert self.play(cell, stored, trust=True, approve=approve) is None
        assert cell["said"] == ["a"]

    def test_a_policy_that_allows_does_not_vouch_for_a_strangers_arguments(self, cell, tmp_path):
        rules = tmp_path / "rules.yaml"
        rules.write_text("rules:\n  - allow: note\n")
        stored = self.record(cell, ("note", {"text": "a"}), key=UserKey(b"another user"))
        assert "--trust-record" in self.play(cell, stored, approve=str(rules)).fresh
        assert cell["said"] == []

    def test_a_present_user_is_asked_about_each(self, cell):
        asked = []

        async def ask(question):
            asked.append((question.name, question.args))
            return Decision(len(asked) == 1, by="click")

        stored = self.record(
            cell, ("note", {"text": "a"}), ("note", {"text": "b"}), key=UserKey(b"another user")
        )
        assert "denied" in self.play(cell, stored, ask=ask).fresh
        assert asked == [("note", {"text": "a"}), ("note", {"text": "b"})]
        assert cell["said"] == ["a"]

    def test_what_a_policy_asks_about_needs_trust(self, cell, tmp_path):
        rules = tmp_path / "rules.yaml"
        rules.write_text("rules:\n  - ask: note\n")
        stored = self.record(cell, ("note", {"text": "a"}), key=UserKey(b"another user"))
        assert "--trust-record" in self.play(cell, stored, approve=str(rules)).fresh
        assert cell["said"] == []

    def test_a_policy_may_forbid_them(self, cell, tmp_path):
        rules = tmp_path / "rules.yaml"
        rules.write_text("rules:\n  - deny: note\n")
        stored = self.record(cell, ("note", {"text": "a"}))
        assert "denied" in self.play(cell, stored, approve=str(rules)).fresh
        assert cell["said"] == []


class TestTrust:
    FORGED = batch(("python", {"code": "gone.append('harm')"}))

    def forged(self, text=None):
        SPACE["gone"] = []
        stored = record([text or self.FORGED, "ok"], key=UserKey(b"another user"))
        SPACE["gone"].clear()
        return stored

    @pytest.mark.few(10)
    @pytest.mark.parametrize("number", range(30))
    def test_thirty_forged_records_run_nothing_headless(self, number):
        forms = (
            batch(("python", {"code": f"gone.append({number})"})),
            batch(("python", {"code": "base"}), ("python", {"code": f"gone.append({number})"})),
            f"<think>harmless</think>{batch(('weather', {'city': 'x'}), ('python', {'code': f'gone.append({number})'}))}",
        )
        stored = self.forged(forms[number % 3])
        stored = stored if number % 2 else {k: v for k, v in stored.items() if k != "signature"}
        drift = play(stored, approve=("auto", "ask", "deny")[number // 10]).played.drift
        assert SPACE["gone"] == []
        assert number // 10 == 2 or "--trust-record" in drift.fresh

    def test_with_trust_it_runs(self):
        assert play(self.forged(), trust=True).played.drift is None
        assert SPACE["gone"] == ["harm"]

    def test_a_present_user_sees_the_code(self):
        asked = []

        async def ask(question):
            asked.append(question)
            return Decision(True, by="stdin")

        stored = self.forged()
        assert play(stored, ask=ask).played.drift is None
        assert asked[0].args == {"code": "gone.append('harm')"}
        assert "not signed" in asked[0].preview
        assert SPACE["gone"] == ["harm"]

    def test_a_no_is_a_no(self):
        async def ask(_):
            return Decision(False, by="stdin", reason="no way")

        assert "no way" in play(self.forged(), ask=ask).played.drift.fresh
        assert SPACE["gone"] == []

    @pytest.mark.parametrize("scope", ["once", "tool", "run"])
    def test_a_yes_counts_for_exactly_its_arguments_whatever_its_scope(self, scope):
        asked = []

        async def ask(question):
            asked.append(question.args["code"])
            return Decision(len(asked) == 1, scope=scope, by="click")

        forged = self.forged(
            batch(("python", {"code": "gone.append(1)"}), ("python", {"code": "gone.append(2)"}))
        )
        assert "denied" in play(forged, ask=ask).played.drift.fresh
        assert asked == ["gone.append(1)", "gone.append(2)"]
        assert SPACE["gone"] == [1]

    @pytest.mark.parametrize(("scope", "times"), [("once", 2), ("tool", 1), ("run", 1)])
    def test_for_these_it_may_count_again(self, scope, times):
        asked = []

        async def ask(question):
            asked.append(question)
            return Decision(True, scope=scope, by="click")

        same = ("python", {"code": "gone.append(1)"})
        assert play(self.forged(batch(same, same)), ask=ask).played.drift is None
        assert (len(asked), SPACE["gone"]) == (times, [1, 1])

    def test_what_was_allowed_with_other_arguments_is_not_allowed_as_recorded(self):
        asked = []

        async def ask(question):
            asked.append(question)
            return Decision(True, args={"code": "gone.append('edited')"}, scope="run", by="remote")

        same = ("python", {"code": "gone.append('harm')"})
        play(self.forged(batch(same, same)), ask=ask)
        assert (len(asked), SPACE["gone"]) == (2, ["edited", "edited"])

    def test_each_question_has_its_own_mark(self):
        marks = []

        async def ask(question):
            marks.append(question.exact)
            return Decision(True, by="click")

        same = ("python", {"code": "gone.append(1)"})
        play(self.forged(batch(same, same)), ask=ask)
        assert len(set(marks) - {""}) == 2

    def test_the_question_is_shown_at_the_call_and_not_recorded(self):
        seen = []

        async def ask(question):
            (card,) = [c for c in view.cards if c.kind == "call"]
            seen.append((card.status, card.asked.args, card.asked.extra["warning"]))
            return Decision(True, by="click")

        stored, view = self.forged(), RunView()
        tape = RecordedTurns.of(stored, key=KEY)

        async def main():
            stream = agent([], ask=ask).replay(tape)
            stream.log.subscribe(view.apply)
            return await stream

        run = wait(main)
        ((status, args, warning),) = seen
        assert (status, args) == ("waiting", {"code": "gone.append('harm')"})
        assert "not signed" in warning
        assert list(run.log) == events_of(stored)

    @pytest.mark.parametrize("scope", ["tool", "run", "kernel"])
    def test_a_yes_for_a_strangers_call_is_kept_for_no_other(self, scope):
        async def ask(_):
            return Decision(True, scope=scope, by="click")

        played = play(self.forged(), ask=ask, live=True).played
        assert all(e.scope != "kernel" for e in played.log.of("approval"))
        assert KERNEL_PERMISSIONS.names == []

    def test_a_permission_for_the_session_does_not_cover_foreign_calls(self, monkeypatch):
        monkeypatch.setattr(KernelPermissions, "allows", lambda *_: True)
        asked = []

        async def ask(question):
            asked.append(question.name)
            return Decision(False, by="click")

        play(self.forged(), ask=ask)
        assert asked == ["python"]

    def test_a_denied_call_does_not_go_on_live(self):
        """A stranger's record must not become the beginning of a run of this user."""

        async def ask(_):
            return Decision(False, by="click")

        played = play(self.forged(), ask=ask, live=True).played
        assert played.drift is not None
        assert played.resume is None
        assert played.log[-1].status == "ok"
        assert play(self.forged(), trust=True, ask=ask, live=True).played.drift is None

    def approved(self, key=KEY):
        async def ask(_):
            return Decision(True, by="stdin")

        return record(approve="ask", ask=ask, key=key)

    def test_a_recorded_approval_counts_in_a_signed_record(self):
        assert play(self.approved(), approve="ask").played.drift is None

    def test_it_does_not_count_unsigned(self):
        assert (
            "trust" in play(self.approved(key=UserKey(b"other")), approve="ask").played.drift.fresh
        )

    def test_it_does_not_count_for_other_arguments(self):
        stored = self.approved()
        for event in stored["events"]:
            if event["type"] == "approval":
                event["args"] = {"code": "1 + 1"}
                event["stage"] = "requested"
        changed_record = KEY.sign(stored)
        assert "nobody to ask" in play(changed_record, approve="ask").played.drift.fresh

    def test_what_the_policy_denies_now_is_denied(self):
        assert "denied" in play(self.approved(), approve="deny").played.drift.fresh
        assert "ran" not in SPACE

    def test_edited_arguments_run_as_they_were_approved(self):
        async def ask(_):
            return Decision(True, args={"code": "base + 100"}, by="click")

        stored = record(approve="ask", ask=ask)
        assert play(stored, approve="ask").played.drift is None
        assert SPACE["ran"] == ["base + 100"]

    def test_a_call_with_cut_approved_arguments_never_runs_again(self):
        async def ask(_):
            return Decision(True, args={"code": f"base{' ' * 50_000}"}, by="click")

        run = wait(lambda: agent(approve="ask", ask=ask)("go", check=False))
        stored = KEY.sign(run_record(run.log, cap=20_000))
        assert [(cut["kind"], cut["field"]) for cut in stored["cut"]] == [("approval", "args")]
        SPACE.pop("ran")
        drift = play(stored, approve="ask").played.drift
        assert "too large" in drift.fresh
        assert "ran" not in SPACE

    def test_redacted_calls_never_run_again(self):
        secrets = {"MY_KEY": "sk-verysecretvalue123"}
        stored = record(
            [batch(("python", {"code": "len('sk-verysecretvalue123')"})), "ok"], secrets=secrets
        )
        assert "sk-verysecret" not in json.dumps(stored)
        drift = play(stored, secrets=secrets).played.drift
        assert "redacted" in drift.fresh
        assert "ran" not in SPACE

    def test_a_refused_call_does_not_count_as_run_again(self):
        args = {"code": "len('[redacted MY_KEY]')"}, {"code": "base"}
        stored = record([*(batch(("python", each)) for each in args), "ok"])
        assert play(stored, wish=ReplayStrictness()).played.checked.ran == 1

    def test_a_call_that_is_denied_now_does_not_count_as_run_again(self):
        assert play(record(), wish=ReplayStrictness(), approve="deny").played.checked.ran == 0

    def test_calls_that_did_not_run_do_not_run_now(self):
        stored = record(approve="deny")
        assert play(stored, approve="auto").played.drift is None
        assert "ran" not in SPACE


class TestGoingOnLive:
    def drifted(self, turns=TURNS, fresh=("Now it is 43.",), **options):
        stored = record(turns)
        SPACE["base"] = 41
        stream = play(stored, live=True)
        run = wait(lambda: agent([*fresh], **options)("go", resume=stream.played.resume))
        return stored, stream, run

    def test_the_run_goes_on_from_the_drift_with_the_fresh_result(self):
        stored, stream, run = self.drifted()
        assert stream.log.ended
        assert run.answer == "Now it is 43."
        assert [x.content for x in run.log.of("result")] == ["43"]
        assert run.id != stored["id"]
        assert SPACE["ran"] == ["base + 2"]

    def test_it_says_so_in_the_log(self):
        _, _, run = self.drifted()
        (note,) = [x for x in run.log.of("extension") if x.name == "drift"]
        assert note.payload["recorded"] == "42"

    def test_its_log_is_whole_and_its_own(self):
        _, _, run = self.drifted()
        assert [x.seq for x in run.log] == list(range(1, len(run.log) + 1))
        assert {x.run for x in run.log} == {run.id}
        assert [x.type for x in run.log].count("run_start") == 1
        assert all(a.ts <= b.ts for a, b in zip(run.log, run.log[1:], strict=False))
        assert run.log[-1].ts - run.log[0].ts < 60

    def test_the_model_reads_what_was_recorded_and_the_fresh_result(self):
        seen = []

        class Listening(Scripted):
            def start(self):
                return self

            def stream(self, request):
                seen.append("\n".join(m.text for m in request.messages))
                return super().stream(request)

        stored = record()
        SPACE["base"] = 41
        resume = play(stored, live=True).played.resume
        wait(lambda: agent(model=Listening(["done"]))("go", resume=resume))
        assert "base + 2" in seen[0]
        assert "43" in seen[0]

    def test_recorded_results_of_the_same_batch_are_kept(self):
        turns = [batch(("weather", {"city": "Ulm"}), ("python", {"code": "base"})), "ok"]
        _, _, run = self.drifted(turns)
        assert [x.content for x in run.log.of("result")] == ["Ulm: blue", "41"]

    def test_a_batch_that_names_its_calls_oddly_gives_each_call_one_result(self):
        stored = record([batch(("weather", {"city": "Ulm"}), ("python", {"code": "base"})), "ok"])
        events = list(events_of(stored))
        at = next(n for n, each in enumerate(events) if isinstance(each, e.Execute))
        names = (*events[at].calls, *events[at].calls, "unknown")
        events[at] = msgspec.structs.replace(events[at], calls=names)
        SPACE["base"] = 41
        turns = RecordedTurns(events=events, own=True, trusted=True, live=True)
        resume = wait(lambda: played(turns)).resume
        run = wait(lambda: agent(["Now it is 41."])("go", resume=resume))
        assert [x.content for x in run.log.of("result")] == ["Ulm: blue", "41"]
        assert run.answer == "Now it is 41."

    def test_limits_count_what_was_played(self):
        _, _, run = self.drifted(fresh=[ADD, "never"], limits={"tool_calls": 1})
        assert run.status == "limit"

    def test_the_new_record_matches_next_time(self):
        _, _, run = self.drifted()
        again = KEY.sign(run_record(run.log))
        assert Match.find([again], agent().inputs("go")).status == "recorded"
        assert play(again).played.drift is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<f at 0x7f12ab>", "<f at 0x9912cd>"),
        ("took 1.5 s", "took 12.75 s"),
        ("3 ms ± 20 µs per loop", "4.5 ms ± 9 µs per loop"),
        ("File /tmp/ipykernel_12/34.py, line 1", "File /var/x/ipykernel_99/34.py, line 1"),
        ("C:\\Users\\ann\\x.py", "D:\\nb\\x.py"),
        ("Cell In[3], line 1", "Cell In[17], line 1"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("a  \nb\n", "a\nb"),
        ({"a": 1.0, "b": 2}, {"b": 2, "a": 1}),
    ],
)
def test_what_does_not_count_as_different(one, other):
    assert normalize_value(one) == normalize_value(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("42", "43"),
        ("x = 1.5", "x = 2.5"),
        ("42 s", "43 s"),
        ("https://a.example/x", "https://b.example/x"),
        ("a b", "ab"),
        ([1], [2]),
    ],
)
def test_what_counts_as_different(one, other):
    assert normalize_value(one) != normalize_value(other)


@pytest.mark.timeout(20)
def test_spaces_before_the_end_of_a_line_do_not_count_however_many():
    many = " \t" * 200_000
    assert normalize_value(f"a{many}\nb{many}") == "a\nb"
    assert normalize_value(f"a{many}b") == f"a{many}b"
