"""The Messages API: a request in its words, and its events to parts."""
