"""Completion of the lines of `%%agent` and `%agent`, for IPython's matchers.

Read `fitting` first: it finds what completes the text before the cursor.
"""
