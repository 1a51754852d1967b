"""Ordered lists of items for users who click some of them."""
