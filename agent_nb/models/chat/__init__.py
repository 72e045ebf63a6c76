"""Chat completions: encode a request, decode chunks into parts."""
