"""A scripted model that keeps the requests it was sent."""

from agent_nb import Scripted


class Asked(Scripted):
    """Answers with its turns, each once, over all runs; `requests` are those it was sent.

    `context`: the tokens of its context (0: unknown).
    """

    identity = "asked"

    def __init__(self, turns, context=0, **options):
        super().__init__(turns, **options)
        self.context = context
        self.requests = []

    def start(self):
        return self

    async def stream(self, request):
        self.requests.append(request)
        async for batch in super().stream(request):
            yield batch

    def said(self, number=-1):
        """Return the messages of a request as (role, text)."""
        return [(m.role, m.text) for m in self.requests[number].messages]

    def system(self, number=-1):
        return "\n".join(text for role, text in self.said(number) if role == "system")

    def prompt(self, number=-1):
        """Return the newest user message of a request."""
        return [text for role, text in self.said(number) if role == "user"][-1]
