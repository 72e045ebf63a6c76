"""A conversation is a list of turns owned by cells; a cell sees what came before it and never
itself.
"""

import pytest

from agent_nb.errors import UsageError
from agent_nb.events import User
from agent_nb.notebook.conversations import Conversation, Conversations, Turn


def said(*cells, fresh=()):
    """Return a conversation in which each of `cells` has said its own name."""
    conversation = Conversation("main")
    for cell in cells:
        conversation.commit(turn(cell, fresh=cell in fresh))
    return conversation


def turn(cell, text=None, fresh=False):
    return Turn(cell, [User(content=text or cell)], fresh)


def heard(runs):
    return "".join(run[0].content for run in runs)


def test_a_new_cell_sees_all_turns():
    assert heard(said("a", "b").runs_before("c")) == "ab"


def test_a_cell_that_runs_again_sees_only_the_turns_before_it():
    assert heard(said("a", "b", "c").runs_before("b")) == "a"


def test_running_again_replaces_the_turn_and_drops_the_later_ones():
    conversation = said("a", "b", "c", "d")
    assert conversation.commit(turn("b", "B")) == 2
    assert heard(conversation.runs_before("e")) == "aB"


def test_what_a_live_rerun_drops_is_known_before_it_runs():
    conversation = said("a", "b", "c", "d", fresh="d")
    assert [conversation.count_dropped(c) for c in ("a", "b", "c", "new")] == [2, 1, 0, 0]


def test_a_replay_leaves_the_later_turns():
    conversation = said("a", "b", "c")
    assert conversation.commit(turn("b", "B"), live=False) == 0
    assert heard(conversation.runs_before("e")) == "aBc"


def test_a_fresh_turn_hides_what_was_before_it():
    conversation = said("a", "b", "c", fresh="b")
    assert heard(conversation.runs_before("d")) == "bc"
    assert conversation.runs_before("b", fresh=True) == []


def test_cells_before_a_fresh_turn_still_see_their_own_past():
    assert heard(said("a", "b", "c", fresh="c").runs_before("b")) == "a"


def test_a_live_rerun_drops_turns_only_up_to_the_next_fresh_one():
    conversation = said("a", "b", "c", "d", fresh="c")
    assert conversation.commit(turn("a", "A")) == 1
    assert [t.cell for t in conversation.turns] == ["a", "c", "d"]


def test_a_turn_can_be_forgotten():
    conversation = said("a", "b")
    conversation.forget("a")
    conversation.forget("a")
    assert heard(conversation.runs_before("c")) == "b"


def test_conversations_are_separate_and_can_be_reset():
    conversations = Conversations()
    conversations["x"].commit(turn("a"))
    conversations["y"].commit(turn("b"))
    assert conversations.reset("x") == 1
    assert conversations["x"].runs_before("c") == []
    assert heard(conversations["y"].runs_before("c")) == "b"
    assert conversations.reset() == 1


def test_only_one_run_at_a_time_holds_a_conversation():
    conversations = Conversations()
    with conversations.claim("main", "a"):
        with pytest.raises(UsageError, match="busy"), conversations.claim("main", "b"):
            pass
        with conversations.claim("other", "b"):
            pass
    with conversations.claim("main", "b") as conversation:
        assert conversation.running == "b"
