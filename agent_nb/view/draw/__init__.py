"""The drawers: nodes → HTML, markdown, text, and a terminal."""
