"""`agent.map`: asks an agent one prompt for each row of a table. Read `stream` first.

Unlike a loop of prompts, a map asks rows together, under common limits, and outlives its kernel.
"""
