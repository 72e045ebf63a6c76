"""How good a prompt is, over rows and repeats, and whether another is better: `eval`, `compare`."""
