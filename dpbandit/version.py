"""Version of the package, in a file without imports."""

VERSION = "1.1.0"
