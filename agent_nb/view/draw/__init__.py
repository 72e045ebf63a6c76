"""The neutral nodes drawn: HTML, markdown, text, a terminal."""
