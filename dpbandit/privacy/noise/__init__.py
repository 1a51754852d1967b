"""Noise laws and how they are drawn, for all replicas at once."""
