"""What privacy costs when points of a convex domain are played."""
