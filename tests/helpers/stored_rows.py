"""Rows of a store as a stranger leaves them, and rows whose tool touches the kernel."""

from helpers.scripts import calling

from agent_nb import tool
from agent_nb.models.script_turn import Case, read_turn
from agent_nb.record.signing import UserKey
from agent_nb.rows.store.row_store import RowStore


def signed_by(key, path, rows):
    """Let the rows of a store be a stranger's."""
    store = RowStore(path, "m", UserKey.read(), owner="reader")
    records = {k: s.record for k, s in store.find([row.key for row in rows]).items()}
    store.forget({r["id"] for r in records.values()})
    store.close()
    foreign = RowStore(path, "m", key, owner="stranger")
    foreign.put([(k, r, 1) for k, r in records.items()])
    foreign.close()


def keeping(texts):
    """Return a kernel tool, what it was called with, and a script that calls it for each text."""
    seen = []

    @tool(effect="kernel")
    def keep(text: str) -> str:
        """Keep a text."""
        seen.append(text)
        return text

    cases = [
        Case(when=text, turns=(read_turn(calling("keep", text=text), "1"), read_turn(text, "2")))
        for text in texts
    ]
    return keep, seen, cases
