"""The configuration of the book: `sphinx-build -W -c examples/book examples FOLDER`.

The source folder is `examples/`, so that its notebooks are pages where they stand.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

project = "agent_nb"
author = "the maintainers of agent_nb"
extensions = ["myst_nb", "sphinx.ext.autodoc", "reference"]
root_doc = "book/index"
exclude_patterns = ["data/**", "visits/**", "plugins/**", "scripts/**", "**/.*"]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the records in the notebooks are played by `jupyter agent-nb test`
suppress_warnings = ["mystnb.unknown_mime_type"]  # the record of a run travels in such an output

smartquotes = False  # `--live` has two hyphens, in texts too
default_role = "code"  # docstrings write code in single backticks
autodoc_typehints = "none"  # the signature has them
autodoc_member_order = "bysource"
highlight_language = "ipython3"

html_theme = "furo"
html_title = "agent_nb"
templates_path = ["_templates"]
html_additional_pages = {"index": "front.html"}  # the folder's first page leads to the book's
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_show_copyright = False
html_copy_source = False
