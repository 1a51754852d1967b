"""Reproduction of a published figure, with what is certified."""
