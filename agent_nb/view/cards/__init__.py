"""The cards, one file per kind: card state in, neutral nodes out."""
