"""The data of a map: reads its rows, fills in their prompts, and makes the frame of results."""
