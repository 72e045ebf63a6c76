"""The Responses API: a request in its words, and its events to parts."""
