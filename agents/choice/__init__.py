"""Agents that offer assortments, sets of products, and their helpers."""
