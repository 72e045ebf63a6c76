"""Comparison of a recorded result with a new one: which differences do not count.

A test that fails because a second has passed is soon ignored.

`masked_text` masks each text, `masks` compares them; `clock`, `durations` and `folders` find the
pieces that may differ; `surroundings` has the time and folders of a run; `clock_reads` finds out
whether the code that ran measures time.
"""
