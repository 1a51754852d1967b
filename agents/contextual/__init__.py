"""Agents that play arms for users with contexts, and their helpers."""
