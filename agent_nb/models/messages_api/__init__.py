"""Anthropic's Messages API: requests encoded, events of an answer decoded into parts."""
