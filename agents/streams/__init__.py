"""Agents that learn from a stream of independent users, and what only they use."""
