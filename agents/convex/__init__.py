"""Agents that play points of a convex domain, and their helpers."""
