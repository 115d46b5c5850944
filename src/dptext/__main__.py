"""Run the command line as ``python -m dptext``."""

import sys

from dptext.cli import main

sys.exit(main())
