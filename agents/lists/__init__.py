"""Agents that show every user an ordered list."""
