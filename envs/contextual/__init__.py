"""Contextual bandits: arms and prices for users who show a context."""
