"""`python -m treesens_verify`."""

import sys

from .words import main

sys.exit(main())
