"""Offline evaluation: logs of a known random policy, and replay on them."""
