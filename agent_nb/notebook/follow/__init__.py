"""Runs of other systems, followed in a cell: shown live, and recorded as imported.

Read `base` first: `attach` and `from_source` extend it.
"""
