"""Comparison of a recorded result with a new one: which differences do not count.

`masks` compares; `clock`, `durations` and `folders` find the pieces that may differ; `clock_reads`
finds out whether the code that ran measures time.
"""
