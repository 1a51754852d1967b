"""Assortments: sets of products, of which each user buys one or none."""
