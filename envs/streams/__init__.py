"""Streams of independent users of one law, and its best point."""
