"""Runs as JSON in notebooks: writing, signing, finding, comparing and journals."""
