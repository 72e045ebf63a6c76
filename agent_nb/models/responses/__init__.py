"""The Responses API: encode a request, decode events into parts."""
