"""What a scripted model writes, in the dialect `xml`."""

import json
from typing import Any


def batch(*calls: tuple[str, dict[str, Any]]) -> str:
    """Return the text of a batch of calls: (tool, arguments)."""
    wanted = [{"name": name, "args": args} for name, args in calls]
    return f"<execute>{json.dumps(wanted)}</execute>"


def calling(tool: str, /, **args: Any) -> str:
    """Return the text of a batch of one call."""
    return batch((tool, args))
