"""The cards, one file per kind: card state in, neutral nodes out.

Why neutral: one card then serves widgets, HTML, markdown and text.
"""
