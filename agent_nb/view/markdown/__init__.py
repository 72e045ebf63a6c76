"""Markdown, whole or growing, as sanitised HTML. Read `stream` first."""
