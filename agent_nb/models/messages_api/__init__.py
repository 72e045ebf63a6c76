"""Anthropic's Messages API: requests encoded, events of an answer decoded into parts.

These files know the JSON of the API; `anthropic` sends it.
"""
