"""Notebook files: which file a cell stands in, its records, its runs as documents, git."""
