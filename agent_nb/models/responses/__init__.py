"""OpenAI's Responses API: requests encoded, events of an answer decoded into parts.

Why apart from `openai_responses`: these files know the JSON of the API, and send nothing.
"""
