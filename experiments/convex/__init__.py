"""Study of the price of privacy when points of a convex domain are played."""
