"""A run as JSON in a notebook: written, signed, found, matched, compared, played by others."""
