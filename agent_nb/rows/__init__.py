"""Many prompts: an agent asked for each row of a table, and how well its answers do.

Order: recorded_runs, store < map < eval < agent
"""
