"""What a customer's own history is worth, and what it costs her privacy."""
