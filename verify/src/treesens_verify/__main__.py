"""`python -m treesens_verify`."""

import sys

from .command import main

sys.exit(main())
