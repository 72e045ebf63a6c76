"""The view of a run.

`state` folds events into cards, `cards` turns cards into neutral nodes, `draw` and `widgets` draw
the nodes.

Order: display, nodes, theme, views, visible
< format, presses
< state, values
< markdown, progress_words, renderer, typed_answer, waterfall
< cards, timeline
< layout
< draw
< bundle, widgets
< run_live_button, saved_page
< painters
< live
"""
