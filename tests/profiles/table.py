"""The behaviour of each front end: behaviours × profiles, as data.

`python tests/profiles/table.py` prints it as markdown.

A cell says what happens and which test shows it; a cell without a test says why there is nothing to
show. Most words of a cell choose what `test_profiles.py` checks (its table CHECKS); where a browser
is needed, the cell names a test of `tests/browser`, and `test_table.py` checks that pytest collects
it.
"""

from __future__ import annotations

from typing import NamedTuple

PROFILES = {
    "lab": "JupyterLab",
    "notebook7": "Notebook 7",
    "terminal": "terminal IPython",
    "no-widgets": "front end without widgets (`--view html`)",
    "no-stdin": "front end without keyboard",
    "no-subshell": "front end without subshells",
    "nbclient": "nbclient",
    "nbconvert": "nbconvert --execute",
}
BEHAVIOURS = {
    "view": "what is shown",
    "stream": "the answer while it is written",
    "stop": "Stop",
    "approve": "Approve",
    "deny": "Deny",
    "edit": "edit arguments",
    "otherwise": "a question where no click arrives",
    "interrupt": "kernel interrupt",
    "swap": "what stays at the end",
    "crash": "what stays after a crash",
    "reload": "read again without the kernel",
    "policy": "decisions of a policy",
    "run": "`run` at the end of a cell",
    "record": "the record",
}


class Cell(NamedTuple):
    """The behaviour of a profile, and the id of the test that shows it.

    Without a test (""), `outcome` says why there is nothing to show.
    """

    outcome: str
    test: str = ""


BROWSER = "tests/browser"
HERE = "tests/profiles/test_profiles.py::test_cell"


def browser(outcome: str, file: str, name: str, *ids: str) -> list[Cell]:
    """Return the cells of both Jupyter front ends; `ids` are those of the two tests."""
    return [Cell(outcome, f"{BROWSER}/{file}.py::{name}[{i}]") for i in ids]


def nothing(why: str) -> Cell:
    """Return a cell that does not apply."""
    return Cell(f"– ({why})")


NO_BUTTON = nothing("no buttons: interrupt")
ALONE = nothing("nobody looks on")
ASKED = nothing("buttons arrive")
# behaviour: the cells of JupyterLab and Notebook 7, then what `test_profiles.py` checks, in the
# order of PROFILES
ROWS: dict[str, tuple[list[Cell], list[str | Cell]]] = {
    "view": (
        browser("live cards", "test_profiles", "test_live_cards", "lab", "notebook7"),
        ["text", "HTML", "live cards", "live cards", "HTML", "HTML"],
    ),
    "stream": (
        browser(
            "as it comes",
            "test_profiles",
            "test_the_answer_is_seen_while_it_is_written",
            "lab",
            "notebook7",
        ),
        [
            "as it comes",
            "as it comes",
            "as it comes",
            "as it comes",
            "once a second",
            nothing("a page is made when all is over"),
        ],
    ),
    "stop": (
        browser(
            "button",
            "test_buttons",
            "test_stop_while_the_model_writes_keeps_what_it_wrote",
            "lab",
            "notebook7",
        ),
        [NO_BUTTON, NO_BUTTON, "button", "button", ALONE, ALONE],
    ),
    "approve": (
        browser("button", "test_buttons", "test_approve_runs_the_call", "lab", "notebook7"),
        ["keyboard", "keyboard", "button", "button", ALONE, ALONE],
    ),
    "deny": (
        browser(
            "button",
            "test_buttons",
            "test_deny_does_not_run_it_and_tells_the_model",
            "lab",
            "notebook7",
        ),
        ["keyboard", "keyboard", "button", "button", ALONE, ALONE],
    ),
    "edit": (
        browser(
            "button", "test_buttons", "test_edited_arguments_are_what_runs", "lab", "notebook7"
        ),
        ["keyboard", "keyboard", "button", "button", ALONE, ALONE],
    ),
    "otherwise": (
        [
            Cell(
                "keyboard",
                f"{BROWSER}/test_keyboard.py::test_a_question_is_answered_by_typing_under_the_card[y-sent0-allow]",
            ),
            Cell(
                "keyboard",
                f"{BROWSER}/test_profiles.py::test_a_question_is_typed_where_no_click_arrives",
            ),
        ],
        [
            "keyboard",
            "keyboard",
            "denied, and how to allow",
            ASKED,
            "denied, and how to allow",
            "denied, and how to allow",
        ],
    ),
    "interrupt": (
        browser(
            "ends the run",
            "test_keyboard",
            "test_the_interrupt_button_ends_a_run_and_keeps_the_kernel",
            "lab-this",
            "notebook-this",
        ),
        [
            "ends the run",
            "ends the run",
            "ends the run",
            "ends the run",
            "ends the run",
            "ends the run",
        ],
    ),
    "swap": (
        browser(
            "static page",
            "test_saved",
            "test_a_saved_run_is_static_and_reads_the_same_with_a_fresh_kernel",
            "lab",
            "notebook",
        ),
        [
            "what was printed",
            "static page",
            "static page",
            "static page",
            "static page",
            "static page",
        ],
    ),
    "crash": (
        browser(
            "static page",
            "test_profiles",
            "test_a_run_that_broke_leaves_a_static_page",
            "lab",
            "notebook7",
        ),
        [
            "what was printed",
            "static page",
            "static page",
            "static page",
            "static page",
            "static page",
        ],
    ),
    "reload": (
        browser(
            "reads the same",
            "test_saved",
            "test_a_saved_run_is_static_and_reads_the_same_with_a_fresh_kernel",
            "lab",
            "notebook",
        ),
        [
            nothing("a terminal keeps nothing"),
            "needs no widget",
            "needs no widget",
            "needs no widget",
            "needs no widget",
            "in the page",
        ],
    ),
    "policy": (
        browser(
            "events", "test_profiles", "test_what_a_policy_decides_is_an_event", "lab", "notebook7"
        ),
        ["events", "events", "events", "events", "events", "events"],
    ),
    "run": (
        browser(
            "static page",
            "test_profiles",
            "test_a_run_at_the_end_of_a_cell_is_its_static_page",
            "lab",
            "notebook7",
        ),
        ["text", "static page", "static page", "static page", "static page", "static page"],
    ),
    "record": (
        browser(
            "in the notebook",
            "test_saved",
            "test_a_saved_run_is_static_and_reads_the_same_with_a_fresh_kernel",
            "lab",
            "notebook",
        ),
        [
            "in the journal",
            "in the output",
            "in the output",
            "in the output",
            "in the output",
            nothing("a page holds no record"),
        ],
    ),
}


def cells() -> dict[tuple[str, str], Cell]:
    """Return every cell by (profile, behaviour)."""
    found = {}
    for behaviour, (jupyter, rest) in ROWS.items():
        for profile, cell in zip(PROFILES, [*jupyter, *rest], strict=True):
            found[profile, behaviour] = (
                cell if isinstance(cell, Cell) else Cell(cell, f"{HERE}[{profile}-{behaviour}]")
            )
    return found


def markdown() -> str:
    """Return the table as markdown."""
    table = cells()
    rows = [["", *PROFILES.values()], ["---"] * (len(PROFILES) + 1)]
    rows += [
        [title, *(table[profile, name].outcome for profile in PROFILES)]
        for name, title in BEHAVIOURS.items()
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    print(markdown())
