"""What is kept of rows, in a store and in the log of a map: found, written, replayed, forgotten."""
