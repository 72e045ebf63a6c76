"""A dialect: with `-d plain` the text is the answer, and there are no calls. Its place is
`agent_nb/dialects/plain.py`.
"""

from agent_nb.models.messages import text_message
from agent_nb.models.parts import Text


class Reader:
    stopped = False

    def feed(self, text):
        return [Text(text)]

    def close(self, *, cut=False):
        return []


class Plain:
    name, native = "plain", False

    def instructions(self, tools, *, small=False):
        return "Answer in plain words."

    def shots(self, tools):
        return ()

    def grammar(self, tools, *, small=False, answered=False):
        return ""

    def parser(self):
        return Reader()

    def assistant(self, thoughts, calls, text):
        return text

    def results(self, results):
        return text_message("user", "There are no results.")


dialect = Plain()
