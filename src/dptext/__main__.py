"""``python -m dptext`` is the command line."""

import sys

from dptext.cli import main

sys.exit(main())
