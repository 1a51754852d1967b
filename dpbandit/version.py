"""The version, in a file that imports nothing."""

VERSION = "1.0.0"
