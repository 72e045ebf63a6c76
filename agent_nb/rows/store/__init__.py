"""The SQLite file that stores finished rows: records, claims, and replacement of the file.

Answers cost money, and must outlive the kernel.
"""
