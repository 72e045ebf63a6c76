"""A codec: `jupyter agent-nb convert --to chat-lines`, where `{"say": "…"}` is an answer. Its place
is `agent_nb/codecs/chat_lines.py`.
"""

from agent_nb.codecs.base import Codec, Item
from agent_nb.events import Respond


class Reader:
    def __init__(self, losses):
        pass

    def read(self, item):
        return [Respond(content=str(item.obj.get("say", "")))]

    def close(self):
        return []


class Writer:
    def __init__(self, losses, options):
        pass

    def write(self, event):
        return [Item({"say": event.content})] if isinstance(event, Respond) else []

    def close(self):
        return []


codec = Codec(
    name="chat-lines",
    title="Chat lines",
    framing="ndjson",
    reader=Reader,
    writer=Writer,
    score=lambda item: 0.9 if set(item.obj) == {"say"} else 0.0,
    carries={"respond": frozenset({"content"})},
    lossy={},
)
