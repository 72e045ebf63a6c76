"""The SQLite file that stores finished rows: records, claims, and replacement of the file.

Why a file: answers cost money, and must outlive the kernel.
"""
