"""`python -m maymust` is the command `maymust`."""

import sys

from maymust.cli.main import main

sys.exit(main())
