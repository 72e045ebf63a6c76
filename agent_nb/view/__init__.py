"""The view of a run: events become cards, cards become neutral nodes, and nodes are drawn.

Why nodes: the live view, the saved page and the terminal must show the same.

Read `nodes` first: what every card is made of. `state` folds events into the states of cards,
`cards` turns these into nodes, `draw` and `widgets` draw nodes.

Order of imports, lowest level first: display, nodes, theme, views, visible
< format, parts
< call_line, state
< values
< fields
< presses
< folds, markdown, progress_words, renderer, typed_answer, waterfall
< cards, timeline
< layout
< draw
< bundle, widgets
< run_live_button, saved_page
< painters
< live
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .bundle import make_bundle as make_bundle
    from .bundle import make_folded_bundle as make_folded_bundle
    from .bundle import page_forms as page_forms
    from .draw.html import draw_html as draw_html
    from .format import clip_text as clip_text
    from .format import count_noun as count_noun
    from .format import describe_failure as describe_failure
    from .format import format_count as format_count
    from .format import format_money as format_money
    from .format import join_parts as join_parts
    from .live import LiveView as LiveView
    from .live import ViewOptions as ViewOptions
    from .nodes import Fold as Fold
    from .nodes import Node as Node
    from .nodes import Page as Page
    from .nodes import Row as Row
    from .nodes import Section as Section
    from .nodes import Stack as Stack
    from .nodes import T as T
    from .nodes import Table as Table
    from .run_live_button import RunLiveButton as RunLiveButton
    from .saved_page import Recovery as Recovery
    from .timeline import Timeline as Timeline
    from .values import DISPLAY_TYPES as DISPLAY_TYPES
    from .values import display_nodes as display_nodes
    from .views import Views as Views
    from .visible import show_output as show_output

# file of the room -> the names that it defines
_NAMES = {
    "bundle": "make_bundle make_folded_bundle page_forms",
    "draw.html": "draw_html",
    "format": "clip_text count_noun describe_failure format_count format_money join_parts",
    "live": "LiveView ViewOptions",
    "nodes": "Fold Node Page Row Section Stack T Table",
    "run_live_button": "RunLiveButton",
    "saved_page": "Recovery",
    "timeline": "Timeline",
    "values": "DISPLAY_TYPES display_nodes",
    "views": "Views",
    "visible": "show_output",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
