"""Chat completions: a request in their words, and their chunks to parts."""
