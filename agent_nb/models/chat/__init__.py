"""The API of chat completions, which most servers speak: requests encoded, answers decoded."""
