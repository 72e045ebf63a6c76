"""One `%%agent` cell from its text to its record. Read `run` first: it calls the other files."""
