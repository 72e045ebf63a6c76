"""The file in which finished rows are kept: claims, records and what replaces it, in SQLite."""
