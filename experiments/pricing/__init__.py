"""Study of the price of privacy in money."""
