"""`python -m agent_nb`: the command line."""

import sys

from .cli import main

sys.exit(main())
