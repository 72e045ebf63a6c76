"""The Messages API: encode a request, decode events into parts."""
