"""The loop, and comparisons of agents on the same users."""
