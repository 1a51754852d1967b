"""Agents that play arms without looking at contexts."""
