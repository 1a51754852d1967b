"""Agents for people who return."""
