"""What all providers behind HTTP share: connections, streamed answers, limits, faults, retries.

The file of a provider then holds only what is that provider's own.
"""
