"""A provider: `%%agent -m echo/any` answers with the prompt.

Its place is `agent_nb/models/echo.py`.
"""

from agent_nb.models.parts import Text


class Echo:
    dialect, grammar, shots, context = "xml", False, False, 0

    def __init__(self, name):
        self.name = f"echo/{name}"

    async def stream(self, request):
        yield [Text(f"You said: {request.messages[-1].text}")]

    async def aclose(self):
        pass


def provider(name, **options):
    return Echo(name)
