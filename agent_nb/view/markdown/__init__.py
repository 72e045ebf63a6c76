"""Markdown that grows, as sanitised HTML."""
