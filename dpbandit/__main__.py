"""Entry point of `python -m dpbandit`, the command line."""

from dpbandit.cli import main

main()
