"""Runs the command `treesens` as `python -m treesens`."""

from treesens.cli import main

main()
