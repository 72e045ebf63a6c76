"""The data of a map: its rows, the prompt of each, and the frame that comes back."""
