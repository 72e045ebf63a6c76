"""The fold of a view: events go in, the states of the cards come out (`fold`).

Why one fold: the page, the terminal and the saved form of a run must show the same.
"""
