"""What several benchmarks use: a piece of a long markdown answer, and the tests' helpers.

Importing this makes `helpers` importable.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
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
