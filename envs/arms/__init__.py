"""Arms without contexts."""
