"""Agents that offer sets of products, and their helpers."""
