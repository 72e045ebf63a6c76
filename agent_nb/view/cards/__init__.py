"""One file per kind of card: view state in, neutral nodes out."""
