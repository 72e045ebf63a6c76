"""One `%%agent` cell from its text to its record."""
