"""Online convex problems: points of a convex domain, adversaries, prices of several goods."""
