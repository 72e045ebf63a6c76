"""Answers of a type: its schema, the way it is asked for, the check, the value."""
