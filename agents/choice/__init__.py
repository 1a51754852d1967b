"""Agents that offer sets of products, and the estimators and players that only they use."""
