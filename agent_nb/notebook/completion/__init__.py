"""Completion of the lines of `%%agent` and `%agent` for IPython. Read `fitting` first."""
