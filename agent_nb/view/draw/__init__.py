"""The drawers: nodes → HTML, markdown, text, and a terminal.

Why several: each front end, converter or terminal reads another form.
"""
