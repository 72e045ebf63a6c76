"""Dialects: how a model writes a turn; one file each, see `base`."""
