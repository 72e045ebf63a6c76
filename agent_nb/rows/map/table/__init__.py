"""The data of a map: reads its rows, fills in their prompts, and makes the frame of results.

Users bring pandas, polars, dicts or texts, and the rest of a map knows rows only.
"""
