"""Scores a prompt over rows and repeats (`eval`), and compares two prompts (`compare`).

A prompt that works on three examples may fail on a tenth of a table.

Read `evaluate` first: it asks the rows (a map), scores the answers (`scoring`, `judge`) and returns
an `evaluation`. `comparison` pairs the rows of two evaluations.
"""
