"""OpenAI's Responses API: requests encoded, events of an answer decoded into parts."""
