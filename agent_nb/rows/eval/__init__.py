"""Scores a prompt over rows and repeats (`eval`), and compares two prompts (`compare`)."""
