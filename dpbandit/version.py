"""Version of the package, in a file without imports."""

VERSION = "1.0.0"
