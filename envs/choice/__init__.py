"""Sets of products for users who buy one of them, or none."""
