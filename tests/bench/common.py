"""What several benchmarks use: a piece of a long markdown answer, and the Jupyter server with its
browser.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

HARNESS = Path(__file__).parents[1] / "browser" / "conftest.py"
PART = """## Section {i}

The **median** of part {i} is `{i}.5`, and the rest of this paragraph says in plain words what that means for the reader of it.

- first point of the list, with some words
- second point, with *emphasis* and a [link](https://example.com/{i})

```python
value_{i} = compute(part={i}, robust=True)  # a comment
```

| a | b |
|---|---|
| {i} | text of a cell |

"""


def harness() -> Any:
    """Return the module with the Jupyter server and the browser."""
    spec = importlib.util.spec_from_file_location("browser_harness", HARNESS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
