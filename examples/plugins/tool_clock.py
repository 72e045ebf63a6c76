"""A card: how the result of the tool `clock` looks. Its place is
`agent_nb/view/cards/tool_clock.py`.
"""

from agent_nb.view.nodes import Row, T


def card(state, context):
    return Row((T(f"🕒 {state.content}", bold=True),))
