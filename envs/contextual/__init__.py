"""Contextual bandits with arms or prices."""
