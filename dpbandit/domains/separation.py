"""Whether a point is outside, for domains with too many inequalities to look at."""

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats
from dpbandit.domains.domain import Domain, tame


def separated(
    domain: Domain, q: Floats, tolerance: float, budget: int = 200
) -> npt.NDArray[np.bool_]:
    """Whether q is farther than `tolerance` from C for sure, (R, N) -> (R,).

    Frank-Wolfe towards q: as soon as no point of C comes within `tolerance` of q in the direction
    from q to x, a hyperplane is between. False only says that none was found within the budget.
    """
    q = tame(q)
    x = np.broadcast_to(domain.centre, q.shape)
    apart = np.zeros(len(q), dtype=np.bool_)
    for _ in range(budget):
        slope = x - q
        s = domain.lowest(slope)
        length = np.sqrt(np.vecdot(slope, slope))
        apart |= np.vecdot(slope, s - q) > tolerance * length
        span = np.vecdot(x - s, x - s)
        step = np.vecdot(slope, x - s) / np.where(span > 0, span, 1.0)
        x = x + np.clip(step, 0.0, 1.0)[:, None] * (s - x)
    return apart
