"""Streams of independent users, and the best point for their distribution."""
