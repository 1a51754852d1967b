"""Study of the price of trust models, and of users who return."""
