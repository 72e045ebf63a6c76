"""Anthropic's Messages API: requests encoded, events of an answer decoded into parts.

Why apart from `anthropic`: these files know the JSON of the API, and send nothing.
"""
