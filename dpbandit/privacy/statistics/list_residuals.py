"""What a user's clicks on a list say beyond what releases predicted of them."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_norm
from dpbandit.privacy.statistics.list_clicks import ListStatistic, features, possible_clicks

_COMMON = 0.2


@dataclass(frozen=True, kw_only=True)
class ListResiduals(ListStatistic):
    """A moment of residuals at a public reference point, and the Gram matrix of a step from it.

    A round is (theta, u, v, clicks): the reference point (R, d), released or public, then as in
    `ListClicks`. With features phi = (c, u * v) / sqrt(1 + c^2), c = 0.2, predictions p_k =
    phi_k . theta, clipped to [0, 1], and the weights f of what was looked at::

        z = h sum f_k (click_k - f_k p_k) phi_k, clipped to length 1
        G = h sum f_k^2 phi_k phi_k' / F
        h = 1 / max(1, sum e_k p_k)

    e_k is f_k^2 of a user who clicks nothing: she is never clipped, and h depends on no clicks. F
    is the sum of f^2 over all positions. If attraction is phi . theta*, z has mean
    F G (theta* - theta): at the truth it is 0, whatever is wrong with G.

    Guarantee:
        At every reference point, finite or not, replacing one user moves the sum by at most
        sqrt(4 + 2 g^2): two vectors z of length at most 1 may be opposite, but G and G' are
        positive semidefinite with Frobenius norm at most 1, so that `|G - G'|^2 <= 2`.
    """

    @property
    def sensitivity(self) -> float:
        """sqrt(4 + 2 g^2)."""
        return sqrt(4 + 2 * self.gram_weight**2)

    @property
    def moved(self) -> float:
        """sqrt(4 + 6 k + 2 k^2 + 2 g^2 (1 + 2 k^4)), k = c / sqrt(1 + c^2), 13 % more.

        A user u = 0 who clicks nothing has phi = k e_1, z_0 = -a e_1 with 0 <= a <= k, and G_0 = t
        e_1 e_1' with t <= k^2, a and t by the reference point, which may be another one in another
        round; nobody's G_11 is more. So `|z - z_0| <= 1 + k` and <z - z_0, z' - z_0'> >= -(1 + k),
        least at a = k and a' = 0, `|G - G_0|^2 <= 1 + k^4` and <G - G_0, G' - G_0'> >= -k^4.
        """
        k = _COMMON / sqrt(1 + _COMMON**2)
        return sqrt(4 + 6 * k + 2 * k**2 + 2 * self.gram_weight**2 * (1 + 2 * k**4))

    def total(self, *batch: npt.NDArray[np.float64]) -> Floats:
        """(n, R, d), u (n, R, q), vectors (n, R, m, q), clicks (n, R, m) -> (R, p)."""
        theta, u, v, said = batch
        phi = features(u, v, _COMMON)
        clicks = possible_clicks(self.model, said)
        with np.errstate(invalid="ignore", over="ignore"):
            predicted = np.matvec(phi, theta)
        p = np.where(np.isfinite(predicted), predicted, 0.0).clip(0, 1)
        f, silent = self.model.looked_at(clicks), self.model.looked_at(np.zeros_like(clicks))
        h = 1 / np.maximum(1, np.vecdot(silent**2, p))[..., None]
        z = clip_norm(np.matvec(phi.swapaxes(-1, -2), h * f * (clicks - f * p)), 1.0)
        return self._summed(z, phi, h * f**2 / self.model.square_total)

    def datum(self, theta: Floats, *round: Floats) -> tuple[Floats, ...]:
        """What a round is to `total`: a reference point, users, vectors and clicks."""
        return theta, *round

    def plain(self, theta: Floats) -> Floats:
        """theta for `features` that have 1 in common, with the same predictions, (R, d)."""
        common = np.where(np.arange(self.dim) == 0, _COMMON, 1.0)
        return sqrt(2 / (1 + _COMMON**2)) * common * theta
