"""An honest Table 5.1: what was printed, what reproduces it, what holds. See README.md."""
