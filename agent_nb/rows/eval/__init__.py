"""Scores a prompt over rows and repeats (`eval`), and compares two prompts (`compare`).

Why: a prompt that works on three examples may fail on a tenth of a table.
"""
