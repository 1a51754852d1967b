"""A published figure, examined again."""
