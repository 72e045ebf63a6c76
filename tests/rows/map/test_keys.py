"""The keys of rows: equal questions, equal keys; order does not count, occurrences do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_nb import Agent
from agent_nb.record.fingerprint import Digests
from agent_nb.rows.map.keys import Keys, map_digest

INPUTS = Digests(prompt="", model="m", tools="", settings="", conversation="")
PICTURE = {"media_type": "image/png", "data": "aGVsbG8="}


def keys_of(prompts, inputs=INPUTS, **options):
    made = Keys(inputs)
    return [made.make_key(prompt, **options) for prompt in prompts]


@given(st.lists(st.sampled_from("abc"), max_size=12), st.randoms())
def test_rows_in_another_order_have_the_same_keys(prompts, random):
    shuffled = random.sample(prompts, len(prompts))
    assert sorted(keys_of(prompts)) == sorted(keys_of(shuffled))


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_no_two_rows_share_a_key(prompts):
    assert len(set(keys_of(prompts))) == len(prompts)


def test_a_repeat_an_attachment_and_each_input_make_another_key():
    plain = keys_of(["a"])
    assert plain == keys_of(["a"])
    others = [
        keys_of(["a"], repeat=1),
        keys_of(["a"], attachments=[PICTURE]),
        *(
            keys_of(["a"], Digests({**INPUTS, name: "other"}))
            for name in INPUTS
            if name != "prompt"
        ),
        keys_of(["a"], Digests({**INPUTS, "output": "schema"})),
    ]
    assert len({tuple(found) for found in [plain, *others]}) == 1 + len(others)


def test_the_inputs_of_a_row_are_those_of_a_run_with_its_prompt():
    agent = Agent("openai/m", system="Be brief.", late=True)
    assert agent.inputs("anything").with_prompt("Which one?") == agent.inputs("Which one?")


def test_the_digest_of_a_map_depends_on_the_order_of_its_rows():
    assert map_digest(keys_of("ab")) != map_digest(keys_of("ab")[::-1])
