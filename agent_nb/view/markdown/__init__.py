"""Markdown, whole or growing, as sanitised HTML. Read `stream` first.

Why our own: an answer is drawn while it grows, and its text may be hostile.
"""
