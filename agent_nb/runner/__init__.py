"""Executing notebooks without a front end: `run` and `test`."""
