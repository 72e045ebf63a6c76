"""Notebooks executed without a front end: `run` and `test`."""
