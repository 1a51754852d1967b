"""Bandits without contexts."""
