"""The public facts of a stream of users drawn independently from one law."""

from dataclasses import dataclass
from typing import ClassVar

from dpbandit.specs.convex import ConvexSpec, Feedback


@dataclass(frozen=True, kw_only=True)
class StreamSpec(ConvexSpec):
    """A convex problem whose data are independent and of one law P: stochastic optimisation.

    Played and told like every convex problem with feedback "datum". The comparator is the best
    point theta* for the law, not for the users who happened to come: a round's regret is f(theta_t;
    z_t) - f(theta*; z_t), whose mean is the excess risk F(theta_t) - F(theta*).
    """

    feedback: Feedback = "datum"
    in_hindsight: ClassVar[bool] = False
    kind: ClassVar[str] = "a stream of data"
