"""How the inputs of a run differ from those of a recorded run."""

import base64

import pytest
from helpers.pictures import attached, png

from agent_nb import events as e
from agent_nb.record.fingerprint import INPUTS, Digests
from agent_nb.record.run_inputs import RunInputs

PICTURE = {"media_type": "image/png", "data": base64.b64encode(b"x" * 67).decode()}
OTHER = {"media_type": "image/png", "data": base64.b64encode(b"y" * 80).decode()}
TURN = [e.User(content="What is the  capital?"), e.Respond(content="Paris.")]


def recorded(given, **settings):
    """Return the first events of a run with these inputs."""
    kept = {
        "system": given.settings.get("system"),
        "sampling": given.settings.get("sampling") or {},
        "asked": given.model,
    }
    start = e.RunStart(
        model="m",
        dialect="xml",
        tools=list(given.tools),
        settings={**kept, "turns": given.turn_digests, **settings},
    )
    return [start, e.User(content=given.prompt, attachments=tuple(given.attachments))]


@pytest.mark.parametrize(
    ("before", "now", "name", "lines"),
    [
        (
            {"prompt": "a\nb"},
            {"prompt": "a\nc"},
            "prompt",
            ["--- recorded", "+++ now", "@@ -1,2 +1,2 @@", " a", "-b", "+c"],
        ),
        (
            {"attachments": [PICTURE]},
            {"attachments": [OTHER]},
            "prompt",
            ["attachment 1 changed: image/png, 67 bytes → image/png, 80 bytes"],
        ),
        ({}, {"attachments": [OTHER]}, "prompt", ["attachment 1 is new: image/png, 80 bytes"]),
        (
            {"attachments": [PICTURE, OTHER]},
            {"attachments": [PICTURE]},
            "prompt",
            ["attachment 2 is gone: image/png, 80 bytes"],
        ),
        ({"model": "a/b"}, {"model": "a/c"}, "model", ["model: a/b → a/c"]),
        ({"model": "a/b"}, {"model": ""}, "model", ["model: a/b → chosen by the environment"]),
        (
            {"model": "scripted#1"},
            {"model": "scripted#2"},
            "model",
            ["model: the script scripted says other words"],
        ),
        (
            {"tools": ("read",)},
            {"tools": ("read", "write")},
            "tools",
            ["tools: read → read, write"],
        ),
        ({"tools": ("read",)}, {}, "tools", ["tools: read → not chosen"]),
        ({}, {"tools": ("none",)}, "tools", ["tools: not chosen → none"]),
        (
            {"settings": {"sampling": {"seed": 1}}},
            {"settings": {"sampling": {"seed": 2, "top_p": 0.5}}},
            "settings",
            ["seed: 1 → 2", "top_p: not set → 0.5"],
        ),
        (
            {"settings": {"system": "Be short."}},
            {"settings": {"system": "Be long."}},
            "settings",
            ["system:", "--- recorded", "+++ now", "@@ -1 +1 @@", "-Be short.", "+Be long."],
        ),
        ({}, {"settings": {"dialect": "section"}}, "settings", ["dialect: xml → section"]),
        (
            {"history": [TURN]},
            {"history": [[e.User(content="And now?")]]},
            "conversation",
            [
                "conversation: turn 1 (“And now?”) is not what it was; recorded were 1, now there is 1"
            ],
        ),
        (
            {"history": [TURN]},
            {"history": [TURN, TURN]},
            "conversation",
            [
                "conversation: turn 2 (“What is the capital?”) is new; recorded were 1, now there are 2"
            ],
        ),
        (
            {"history": [TURN, TURN]},
            {"history": [TURN]},
            "conversation",
            ["conversation: turn 2 is missing; recorded were 2, now there is 1"],
        ),
    ],
)
def test_both_sides_are_named(before, now, name, lines):
    old, new = RunInputs(**{"prompt": "go", **before}), RunInputs(**{"prompt": "go", **now})
    assert [i for i in INPUTS if old.digests[i] != new.digests[i]] == [name]
    assert new.describe_differences(recorded(old), [name]) == lines


def test_a_prompt_with_the_same_words_has_another_attachment():
    old = RunInputs(prompt="go", attachments=[PICTURE])
    assert RunInputs(prompt="go", attachments=[OTHER]).name_inputs(
        recorded(old), ["prompt", "model"]
    ) == (
        "attachment",
        "model",
    )
    assert RunInputs(prompt="stop").name_inputs(recorded(old), ["prompt"]) == ("prompt",)


def test_an_older_record_that_names_no_turns_says_what_it_can():
    start = e.RunStart(settings={})
    assert RunInputs(prompt="go").describe_differences([start], ["conversation"]) == [
        "conversation: the turns before this one are not those of the recording"
    ]


def test_the_digests_are_those_by_which_records_are_found():
    given = RunInputs(
        prompt="go", model="m", tools=("read",), settings={"system": "x"}, history=[TURN]
    )
    assert given.digests == Digests.of_inputs(
        "go", model="m", tools=("read",), settings={"system": "x"}, history=[TURN]
    )


def test_figures_of_the_prompt_that_look_the_same_stand_for_one_another():
    file, first = attached(png(5, 5, noise=3)), {**attached(png(9, 9, noise=1)), "name": "fig"}
    drawn = {**attached(png(9, 9, noise=1, level=1)), "name": "fig"}
    old = RunInputs(prompt="go", attachments=[file, first])
    again = RunInputs(prompt="go", attachments=[file, drawn])
    assert again.digests != old.digests
    assert again.match_figures(recorded(old)).digests == old.digests
    other = {**attached(png(9, 9, noise=2)), "name": "fig"}
    for wrong in ([file, other], [file, first, first], [first], []):
        assert RunInputs(prompt="go", attachments=wrong).match_figures(recorded(old)) is None
    swapped = RunInputs(prompt="go", attachments=[attached(png(5, 5, noise=4)), drawn])
    assert swapped.match_figures(recorded(old)).digests != old.digests


def test_an_attached_file_is_equal_or_another():
    old = RunInputs(prompt="go", attachments=[attached(png(9, 9, noise=1))])
    again = RunInputs(prompt="go", attachments=[attached(png(9, 9, noise=1, level=1))])
    assert again.match_figures(recorded(old)) is None
