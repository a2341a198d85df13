"""`python -m treesens` is the command `treesens`."""

from treesens.cli import main

main()
