"""`python -m dpbandit`."""

from dpbandit.cli import main

main()
