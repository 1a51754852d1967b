"""Agents that play points of a convex domain, and the players that only they use."""
