"""Play agents, and compare them on the same users."""
