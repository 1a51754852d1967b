"""Online convex problems, and the running agents that several configs share."""

from dpbandit.convex.spec import ConvexSpec, Feedback, told

__all__ = ["ConvexSpec", "Feedback", "told"]
