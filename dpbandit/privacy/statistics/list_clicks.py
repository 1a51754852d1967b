"""What a user's clicks on a list add to a regression: the clicked item counts, not the list.

Features are made here, of the user's context, clipped, and of vectors from a public catalogue, not
taken from what an environment sends: phi = (1, u * v) / sqrt(2). So any two features of any two
users have phi . phi' = (1 + sum u_j u'_j v_j v'_j) / 2 >= 0, which the sensitivities rest on.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_norm
from dpbandit.base.inputs import InputError, one_of, positive
from dpbandit.losses.click_models import Browsing, ClickModel, PositionBased
from dpbandit.privacy.statistics.moments import added_up

Counted = Literal["clicks", "squares", "mean"]


def features(u: Floats, v: Floats, common: float = 1.0) -> Floats:
    """phi of items with vectors v (..., m, q) for users u (..., q), clipped: (..., m, 1 + q).

    They are (c, u * v) / sqrt(1 + c^2), c = `common` what all of them share.
    """
    u = np.where(np.isfinite(u), u, 0.0).clip(-1, 1)
    products = u[..., None, :] * clip_norm(v, 1.0)
    shared = np.full((*products.shape[:-1], 1), common)
    return np.concatenate([shared, products], axis=-1) / sqrt(1 + common**2)


def possible_clicks(model: ClickModel, said: Floats) -> Floats:
    """Answers (..., m) as clicks in {0, 1} that the model allows; what is no number is none."""
    return model.possible(1.0 * (np.where(np.isfinite(said), said, 0.0) > 0.5))


@dataclass(frozen=True, kw_only=True)
class ListStatistic(ABC):
    """A moment z (d) and a Gram matrix G (d, d) of one user's list, summed over users.

    Summed is (z, g G_ii, g sqrt(2) G_ij for i < j), g = `gram_weight`, in which Frobenius norms are
    Euclidean.
    """

    model: ClickModel
    taste: int
    gram_weight: float = 0.5
    _upper: tuple[npt.NDArray[np.int64], ...] = field(init=False, repr=False, compare=False)
    units: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        positive("gram_weight", self.gram_weight)
        upper = np.triu_indices(self.dim)
        gram = np.where(upper[0] == upper[1], 1.0, sqrt(0.5)) / self.gram_weight
        object.__setattr__(self, "_upper", upper)
        object.__setattr__(self, "units", np.concatenate([np.ones(self.dim), gram]))

    @property
    def dim(self) -> int:
        """d = 1 + q."""
        return 1 + self.taste

    @property
    def shape(self) -> tuple[int, ...]:
        """(d + d (d + 1) / 2,)."""
        return (self.dim + self.dim * (self.dim + 1) // 2,)

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """How far replacing one user moves the sum, in `units`."""

    @property
    def gram_total(self) -> float:
        """What G times it is the Gram matrix of, whose regression z is the moment of."""
        return self.model.square_total

    @abstractmethod
    def total(self, *batch: npt.NDArray[np.float64]) -> Floats:
        """A batch of rounds -> (R, p)."""

    def datum(self, theta: Floats, *round: Floats) -> tuple[Floats, ...]:
        """What a round is to `total`: users, vectors and clicks; here no reference point theta."""
        return round

    def plain(self, theta: Floats) -> Floats:
        """theta for `features` that have c = 1 in common, with the same predictions, (R, d)."""
        return theta

    def unpack(self, release: Floats) -> tuple[Floats, Floats]:
        """(R, p) -> moments (R, d) and symmetric matrices (R, d, d)."""
        gram = np.empty((len(release), self.dim, self.dim))
        i, j = self._upper
        gram[:, i, j] = gram[:, j, i] = release[:, self.dim :]
        return release[:, : self.dim], gram

    def _summed(self, z: Floats, phi: Floats, gram_weight: Floats) -> Floats:
        """z (n, R, d), and weights (n, R, m) of phi phi', phi (n, R, m, d)."""
        by_replica = (gram_weight[..., None] * phi).transpose(1, 0, 2, 3), phi.transpose(1, 0, 2, 3)
        left, right = (x.reshape(len(x), -1, self.dim) for x in by_replica)
        gram = left.swapaxes(1, 2) @ right
        i, j = self._upper
        return np.concatenate([added_up(z), gram[:, i, j]], axis=1)


@dataclass(frozen=True, kw_only=True)
class ListClicks(ListStatistic):
    """A moment and a Gram matrix of clicks, in one of three ways::

        clicks   z = sum click_k phi_k, clipped to length 1;       G = sum f_k phi_k phi_k' / F
        squares  z = sum f_k click_k phi_k, clipped to length 1;   G = sum f_k^2 phi_k phi_k' / F
        mean     z = sum p_k y_k phi_k;                            G = sum p_k b_k phi_k phi_k'

    over the positions that are known to have been looked at, with weight f_k (chi_k by positions,
    else 1). F is the sum of f, or of f^2, over all positions, a public constant. As a click at k
    has mean f_k phi_k . theta, F G theta is the mean of z: "squares" is least squares, the least
    luck if it is the same everywhere, and "clicks" the most signal for the same noise. They are one
    where f is 0 or 1. "mean" has answers y in {-1,
    1} and p = 1/m, b = 1; by positions the answers are 1 and -b_k, b_k = chi_k / (2 - chi_k), with
    weights p_k in proportion to chi_k (2 - chi_k).

    Guarantee:
        Replacing one user moves "clicks" and "squares" by at most sqrt(2 + 2 g^2): z . z' >= 0 and
        both are no longer than 1, so `|z - z'|^2 <= 2`; G and G' are positive semidefinite with
        Frobenius norm at most 1 and tr G G' >= 0, so `|G - G'|^2 <= 2`. It is attained: one item,
        opposite u * v, both clicked. "mean" by at most 2, if g^2 <= 1/2: it is a convex combination
        of points that are pairwise at most 2 apart. See docs/algorithms/list-fade.md for the
        proofs.
    """

    counted: Counted = "clicks"

    def __post_init__(self) -> None:
        one_of("counted", self.counted, ("clicks", "squares", "mean"))
        super().__post_init__()
        if self.counted == "mean" and self.gram_weight > sqrt(0.5):
            raise InputError(
                f"Expected gram_weight={self.gram_weight} to be at most sqrt(1/2) with 'mean', or "
                "its sensitivity is more than 2."
            )
        if self.counted == "mean" and isinstance(self.model, Browsing):
            raise InputError("Expected counted='mean' to be 'clicks' where users browse.")

    @property
    def sensitivity(self) -> float:
        """sqrt(2 + 2 g^2), or 2."""
        return 2.0 if self.counted == "mean" else sqrt(2 + 2 * self.gram_weight**2)

    @property
    def moved(self) -> float:
        """The same; 4 with "mean".

        A user u = 0 who clicks nothing has z = 0 and G_0 = s/2 e_1 e_1', 0 <= s <= 1, and others
        have G_11 <= 1/2. So `|G - G_0|^2 <= 1 - s/2 + s^2/4` and <G - G_0, G' - G_0> >= -s/2 +
        s^2/4, and what s takes from the one it gives to the other.
        """
        return (2 if self.counted == "mean" else 1) * self.sensitivity

    @property
    def gram_total(self) -> float:
        """As in `ListStatistic`; a mean has it in its weights."""
        totals = {"clicks": self.model.look_total, "squares": self.model.square_total, "mean": 1.0}
        return totals[self.counted]

    def total(self, *batch: npt.NDArray[np.float64]) -> Floats:
        """u (n, R, q), vectors of the list (n, R, m, q), clicks (n, R, m) -> (R, p)."""
        u, v, said = batch
        phi = features(u, v)
        moment_weight, gram_weight = self._weights(possible_clicks(self.model, said))
        z = np.matvec(phi.swapaxes(-1, -2), moment_weight)
        z = z if self.counted == "mean" else clip_norm(z, 1.0)
        return self._summed(z, phi, gram_weight)

    def _weights(self, clicks: Floats) -> tuple[Floats, Floats]:
        """Of phi_k in z and of phi_k phi_k' in G, both (n, R, m)."""
        f = self.model.looked_at(clicks)
        if self.counted == "clicks":
            return clicks, f / self.model.look_total
        if self.counted == "squares":
            return f * clicks, f**2 / self.model.square_total
        if isinstance(self.model, PositionBased):
            chi = self.model.weights
            total = (chi * (2 - chi)).sum()
            return chi * (2 * clicks - chi) / total, np.broadcast_to(chi**2 / total, clicks.shape)
        return f * (2 * clicks - 1) / self.model.length, f / self.model.length
