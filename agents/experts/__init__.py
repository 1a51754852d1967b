"""Agents that follow experts, and the players and samplers that only they use."""
