"""Agents that follow experts, and their helpers."""
