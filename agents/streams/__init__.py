"""Agents that learn from a stream of independent users, and their helpers."""
