"""Commands of the program `dpbandit`."""
