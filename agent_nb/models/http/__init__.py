"""Providers behind HTTP: the connection, the answer as a stream, faults and retries."""
