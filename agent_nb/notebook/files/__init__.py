"""Notebook files: which file a cell stands in, its records, its runs as documents, git.

Read `library` first: it collects the records of a cell from kernel, runner and file.
"""
