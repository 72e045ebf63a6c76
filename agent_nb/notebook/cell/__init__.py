"""One `%%agent` cell from its text to its record: prepared, run or replayed, shown and stored.

Read `run` first: it calls the other files in order.
"""
