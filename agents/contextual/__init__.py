"""Agents that play arms, and the estimators and players that only they use."""
