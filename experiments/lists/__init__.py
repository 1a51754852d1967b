"""Study of the price of privacy in ordered lists."""
