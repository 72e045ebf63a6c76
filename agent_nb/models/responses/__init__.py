"""OpenAI's Responses API: requests encoded, events of an answer decoded into parts.

These files know the JSON of the API; `openai_responses` sends it.
"""
