"""Rows with a result from an earlier map, in a store or a log: found, replayed, forgotten.

Why: an answer that was paid for is not asked for again.
"""
