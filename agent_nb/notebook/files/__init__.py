"""Notebook files and their folder: which file a cell stands in, its records, git."""
