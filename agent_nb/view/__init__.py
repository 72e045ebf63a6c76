"""The view of a run.

`state` folds events into cards, `cards` turns cards into neutral nodes, `draw` and `widgets` draw
the nodes.
"""
