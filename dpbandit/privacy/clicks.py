"""Statistics of a user's clicks on a list, for regressions and for counts.

Features are not taken from the environment, but computed here from the clipped context u of a user
and the vector v of an item of a public catalogue: phi = (1, u * v) / sqrt(2). So any two features
of any two users have phi . phi' = (1 + sum u_j u'_j v_j v'_j) / 2 >= 0, which the sensitivities
rest on.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from dpbandit.base import (
    Floats,
    InputError,
    Ints,
    added_up,
    clip_norm,
    one_of,
    positive,
    rows,
    whole,
)
from dpbandit.losses.click_models import (
    Browsing,
    Cascade,
    ClickModel,
    PositionBased,
    UntoldPositions,
)
from dpbandit.privacy.premises import NO_FACTS, Fact

Counted = Literal["clicks", "squares", "mean"]


def tastes(u: Floats) -> Floats:
    """Return users' vectors (..., q) clipped to [-1, 1], with 0 for entries that are not finite."""
    return np.where(np.isfinite(u), u, 0.0).clip(-1, 1)


def features(u: Floats, v: Floats, common: float = 1.0) -> Floats:
    """Return features phi (..., m, 1 + q) of items v (..., m, q) for users u (..., q), clipped.

    phi = (c, u * v) / sqrt(1 + c^2), with the constant coordinate c = `common`.
    """
    v = clip_norm(v, 1.0)
    phi = np.empty((*v.shape[:-1], 1 + v.shape[-1]))
    phi[..., 0] = common
    np.multiply(tastes(u)[..., None, :], v, out=phi[..., 1:])
    phi /= sqrt(1 + common**2)
    return phi


def possible_clicks(model: ClickModel, clicks: Floats) -> Floats:
    """Return answers (..., m) as 0-1 clicks that the click model allows; non-finite ones are 0."""
    return model.possible(1.0 * (np.where(np.isfinite(clicks), clicks, 0.0) > 0.5))


@dataclass(frozen=True, kw_only=True)
class ListStatistic(ABC):
    """Base class of sums over users of a moment z (d) and a Gram matrix G (d, d) of a user's list.

    The sum is of vectors (z, g G_ii, g sqrt(2) G_ij for i < j), g = `gram_weight`, in which
    the Frobenius norm of g G is Euclidean.
    """

    model: ClickModel
    taste: int
    gram_weight: float = 0.5
    _upper: tuple[Ints, ...] = field(init=False, repr=False, compare=False)
    units: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        positive("gram_weight", self.gram_weight)
        upper = np.triu_indices(self.dim)
        gram = np.where(upper[0] == upper[1], 1.0, sqrt(0.5)) / self.gram_weight
        object.__setattr__(self, "_upper", upper)
        object.__setattr__(self, "units", np.concatenate([np.ones(self.dim), gram]))

    @property
    def dim(self) -> int:
        """Number of features of an item, one more than coordinates of a user's vector."""
        return 1 + self.taste

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dim + self.dim * (self.dim + 1) // 2,)

    @property
    @abstractmethod
    def sensitivity(self) -> float: ...

    @property
    def gram_total(self) -> float:
        """Factor F of the released Gram matrix G in the regression F G theta = released moment."""
        return self.model.square_total

    @abstractmethod
    def total(self, *batch: npt.NDArray[np.float64]) -> Floats:
        # A batch of rounds -> (R, p)
        ...

    def datum(self, theta: Floats, *round: Floats) -> tuple[Floats, ...]:
        """Return the arguments of `total` for a round: users, item vectors and clicks."""
        return round

    def plain(self, theta: Floats) -> Floats:
        """Return theta (R, d) rescaled to predict the same from `features` with `common` = 1."""
        return theta

    def unpack(self, release: Floats) -> tuple[Floats, Floats]:
        """Return moments (R, d) and Gram matrices (R, d, d) of a release `(R, *shape)`."""
        gram = np.empty((len(release), self.dim, self.dim))
        i, j = self._upper
        gram[:, i, j] = gram[:, j, i] = release[:, self.dim :]
        return release[:, : self.dim], gram

    def _summed(self, z: Floats, phi: Floats, gram_weight: Floats) -> Floats:
        """Return the sums of moments z (n, R, d) and of weighted phi phi', for phi (n, R, m, d)."""
        by_replica = (gram_weight[..., None] * phi).transpose(1, 0, 2, 3), phi.transpose(1, 0, 2, 3)
        left, right = (x.reshape(len(x), -1, self.dim) for x in by_replica)
        gram = left.swapaxes(1, 2) @ right
        i, j = self._upper
        return np.concatenate([added_up(z), gram[:, i, j]], axis=1)


@dataclass(frozen=True, kw_only=True)
class ListClicks(ListStatistic):
    """Moment and Gram matrix of clicks on a list, in one of three ways::

        clicks   z = sum click_k phi_k, clipped to length 1;       G = sum f_k phi_k phi_k' / F
        squares  z = sum f_k click_k phi_k, clipped to length 1;   G = sum f_k^2 phi_k phi_k' / F
        mean     z = sum p_k y_k phi_k;                            G = sum p_k b_k phi_k phi_k'

    over the positions k that the user is known to have examined, with features phi_k and weight
    f_k: the examination probability in a `Browsing` or `PositionBased` (chi_k) model, else 1. F is
    a public bound on the sum of f, or of f^2, over all positions. As a click at k has mean f_k
    phi_k . theta, F G theta is the mean of z: "squares" is least squares, of least variance for
    homoscedastic clicks, and "clicks" has the most signal for the same noise. The two agree where f
    is 0 or 1. "mean" has answers y in {-1, 1} at m positions, p = 1/m and b = 1; in a
    `PositionBased` model answers are 1 and -b_k, b_k = chi_k / (2 - chi_k), with weights p_k in
    proportion to chi_k (2 - chi_k).

    Guarantee:
        With g = `gram_weight`, replacing one user moves "clicks" and "squares" by at most sqrt(2 +
        2 g^2): z . z' >= 0 and both are no longer than 1, so `|z - z'|^2 <= 2`; G and G' are
        positive semidefinite with Frobenius norm at most 1 and tr G G' >= 0, so `|G - G'|^2 <= 2`.
        Two clicked lists of one item, with opposite u * v, attain it. "mean" moves by at most 2 if
        g^2 <= 1/2, as a convex combination of points that are at most 2 apart. See
        docs/algorithms/list-fade.md for the proofs.
    """

    # "both are no longer than 1"
    needs = NO_FACTS

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
        return 2.0 if self.counted == "mean" else sqrt(2 + 2 * self.gram_weight**2)

    @property
    def move_sensitivity(self) -> float:
        """Largest change of the sum if a user moves to another time slot, and hers becomes empty.

        An empty slot, u = 0 without a click, has moment 0 and Gram matrix G_0 = s/2 e_1 e_1',
        0 <= s <= 1, and others have G_11 <= 1/2. So `|G - G_0|^2 <= 1 - s/2 + s^2/4` and
        <G - G_0, G' - G_0> >= -s/2 + s^2/4, so that s cancels in the sum of both bounds.
        It is `sensitivity`, and at most 4 with "mean".
        """
        return (2 if self.counted == "mean" else 1) * self.sensitivity

    @property
    def gram_total(self) -> float:
        # 1 for a mean, whose weights include the factor already
        totals = {"clicks": self.model.look_total, "squares": self.model.square_total, "mean": 1.0}
        return totals[self.counted]

    def total(self, *batch: npt.NDArray[np.float64]) -> Floats:
        # u (n, R, q), vectors of the list (n, R, m, q), clicks (n, R, m) -> (R, p)
        u, v, clicks = batch
        phi = features(u, v)
        moment_weight, gram_weight = self._weights(possible_clicks(self.model, clicks))
        z = np.matvec(phi.swapaxes(-1, -2), moment_weight)
        z = z if self.counted == "mean" else clip_norm(z, 1.0)
        return self._summed(z, phi, gram_weight)

    def _weights(self, clicks: Floats) -> tuple[Floats, Floats]:
        """Return the weights (n, R, m) of phi in moments and of phi phi' in Gram matrices."""
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


_COMMON_FEATURE = 0.2
"""Constant coordinate of the features in `ListResiduals`, before they are normalised"""


@dataclass(frozen=True, kw_only=True)
class ListResiduals(ListStatistic):
    """Moment of click residuals at a public reference point, and the Gram matrix of a step from it.

    A round is (theta, u, v, clicks): the reference point (R, d), released or public, then as in
    `ListClicks`. With features phi = (c, u * v) / sqrt(1 + c^2), c = 0.2, predictions p_k = phi_k .
    theta, clipped to [0, 1], and weights f of the examined positions::

        z = h sum f_k (click_k - f_k p_k) phi_k, clipped to length 1
        G = h sum f_k^2 phi_k phi_k' / F
        h = 1 / max(1, sum e_k^2 p_k)

    e_k is the f_k of a user without a click: her z is never clipped, and h depends on no clicks.
    F is a public bound on the sum of f^2. If attraction is phi . theta*, z has mean F G (theta* -
    theta), which is 0 at the true parameter, whatever the error of G.

    Guarantee:
        At every reference point, finite or not, replacing one user moves the sum by at most
        sqrt(4 + 2 g^2), g = `gram_weight`: two vectors z of length at most 1 may be opposite, but G
        and G' are positive semidefinite with Frobenius norm at most 1, so that `|G - G'|^2 <= 2`.
    """

    # "At every reference point, finite or not"
    needs = NO_FACTS

    @property
    def sensitivity(self) -> float:
        return sqrt(4 + 2 * self.gram_weight**2)

    @property
    def move_sensitivity(self) -> float:
        """Largest change of the sum if a user moves to another time slot, 13 % above `sensitivity`.

        It is sqrt(4 + 6 k + 2 k^2 + 2 g^2 (1 + 2 k^4)), k = 0.2 / sqrt(1.04), g = `gram_weight`.
        An empty slot, u = 0 without a click, has phi = k e_1, moment z_0 = -a e_1 with 0 <= a <= k,
        and Gram matrix G_0 = t e_1 e_1' with t <= k^2, where a and t depend on the reference point
        of the round; no user's G_11 is larger. So `|z - z_0| <= 1 + k` and
        <z - z_0, z' - z_0'> >= -(1 + k), least at a = k and a' = 0,
        `|G - G_0|^2 <= 1 + k^4` and <G - G_0, G' - G_0'> >= -k^4.
        """
        k = _COMMON_FEATURE / sqrt(1 + _COMMON_FEATURE**2)
        return sqrt(4 + 6 * k + 2 * k**2 + 2 * self.gram_weight**2 * (1 + 2 * k**4))

    def total(self, *batch: npt.NDArray[np.float64]) -> Floats:
        # (n, R, d), u (n, R, q), vectors (n, R, m, q), clicks (n, R, m) -> (R, p)
        theta, u, v, raw_clicks = batch
        phi = features(u, v, _COMMON_FEATURE)
        clicks = possible_clicks(self.model, raw_clicks)
        with np.errstate(invalid="ignore", over="ignore"):
            predicted = np.matvec(phi, theta)
        p = np.where(np.isfinite(predicted), predicted, 0.0).clip(0, 1)
        f, e = self.model.looked_at(clicks), self.model.looked_at(np.zeros_like(clicks))
        h = 1 / np.maximum(1, np.vecdot(e**2, p))[..., None]
        z = clip_norm(np.matvec(phi.swapaxes(-1, -2), h * f * (clicks - f * p)), 1.0)
        return self._summed(z, phi, h * f**2 / self.model.square_total)

    def datum(self, theta: Floats, *round: Floats) -> tuple[Floats, ...]:
        # the arguments of `total`: reference point, users, item vectors, clicks
        return theta, *round

    def plain(self, theta: Floats) -> Floats:
        common = np.where(np.arange(self.dim) == 0, _COMMON_FEATURE, 1.0)
        return sqrt(2 / (1 + _COMMON_FEATURE**2)) * common * theta


@dataclass(frozen=True)
class ListCounts:
    """Counts (impressions, clicks) of every item, from lists of m items, examined up to a click.

    Guarantee:
        A list is a function of releases, so replacing a user moves the counts of her m items alone.
        Users with clicks at k < j differ by 2 + (j - k) ones, a user with a click at k and one
        without by 1 + (m - k), and a user and an empty slot (answers not finite, no impressions) by
        m impressions and a click, so any two by at most m + 1 in L1, sqrt(m + 1) in L2. That is
        less, if m > 1, than 2 m and sqrt(2 m) of m separate pairs of counters. An empty slot may
        have another list, but adds nothing to its counts.

    >>> counts = ListCounts(3, 2)
    >>> counts.total(np.array([[[2, 0]]]), np.array([[[1, 0]]]))
    array([[[0., 0., 1.],
            [0., 0., 1.]]])
    """

    # "A list is a function of releases"; the list is no control of calls, because "An empty slot
    # may have another list"
    needs = frozenset({Fact.CELL})

    n_items: int
    length: int
    """number of items of a list"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_items", self.n_items, 1)
        whole("length", self.length, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        return (2, self.n_items)

    @property
    def l1_sensitivity(self) -> float:
        """Largest L1 change of the counts if one user is replaced, `length` + 1."""
        return self.length + 1.0

    @property
    def sensitivity(self) -> float:
        return sqrt(self.l1_sensitivity)

    @property
    def move_sensitivity(self) -> float:
        """Largest L2 change if a user moves to another slot, sqrt(2 m + 2), as counts are >= 0."""
        return sqrt(2) * self.sensitivity

    def total(self, *batch: Any) -> Floats:
        # Lists (n, R, m), clicks (n, R, m) -> (R, 2, N)
        lists, raw_clicks = batch
        model, R, N = Cascade(self.length), lists.shape[1], self.n_items
        clicks = possible_clicks(model, raw_clicks)
        anybody = np.isfinite(raw_clicks).all(axis=-1, keepdims=True)
        place = 2 * N * rows(R)[:, None] + lists.astype(np.int64)
        values = np.array([model.looked_at(clicks) * anybody, clicks * anybody])
        counts = np.bincount(np.array([place, N + place]).ravel(), values.ravel(), 2 * N * R)
        return np.asarray(counts.reshape(R, 2, N), np.float64)


@dataclass(frozen=True)
class PositionCounts:
    """Number of clicks at each position, (m,), each user's vector scaled down to norm at most 1.

    Guarantee:
        Replacing one user moves the counts by at most sqrt(2), not sqrt(m): both vectors are no
        longer than 1 and no entry is negative, so `|x - x'|^2 <= |x|^2 + |x'|^2 <= 2`; if m = 1
        by at most 1. Two users who click once, at different positions, attain sqrt(2).
    """

    # "both vectors are no longer than 1 and no entry is negative"
    needs = NO_FACTS

    length: int
    """number of positions of a list"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("length", self.length, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.length,)

    @property
    def sensitivity(self) -> float:
        return sqrt(2) if self.length > 1 else 1.0

    def total(self, *batch: npt.NDArray[np.float64]) -> Floats:
        # Clicks (n, R, m) -> (R, m)
        (clicks,) = batch
        return added_up(clip_norm(possible_clicks(UntoldPositions(self.length), clicks), 1.0))


@dataclass(frozen=True, kw_only=True)
class WeightedClicks(ListStatistic):
    """Moment and Gram matrix of clicks as in `ListClicks`, with position weights f given per round.

    A round is (f, u, v, clicks): weights (R, m), released or public and clipped to [0, 1], then
    users, item vectors and clicks. With features phi_k of the item at position k::

        z = sum click_k phi_k, clipped to length 1;    G = sum f_k phi_k phi_k' / sum f_k

    Guarantee:
        At every f, finite or not, replacing one user moves the sum by at most sqrt(2 + 2 g^2), g =
        `gram_weight`, as in `ListClicks`: z does not depend on f, and G is positive semidefinite
        with trace 1 at most, because no f_k is negative.
    """

    # "At every f, finite or not"
    needs = NO_FACTS

    @property
    def sensitivity(self) -> float:
        return sqrt(2 + 2 * self.gram_weight**2)

    def total(self, *batch: npt.NDArray[np.float64]) -> Floats:
        # (n, R, m), u (n, R, q), vectors (n, R, m, q), clicks (n, R, m) -> (R, p)
        f, u, v, clicks = batch
        f = np.where(np.isfinite(f), f, 0.0).clip(0, 1)
        phi = features(u, v)
        z = np.matvec(phi.swapaxes(-1, -2), possible_clicks(self.model, clicks))
        total = np.maximum(f.sum(axis=-1, keepdims=True), 1e-300)
        return self._summed(clip_norm(z, 1.0), phi, f / total)

    def datum(self, reference: Floats, *round: Floats) -> tuple[Floats, ...]:
        # the arguments of `total`: weights, users, item vectors, clicks
        return reference, *round


@dataclass(frozen=True)
class PolicyClicks:
    """Total value of the clicks on each policy's lists; each user adds at most 1, to one policy.

    A round is (index (R,) of a policy, clicks (R, m)). With w_k the value of a click at k
    (`ClickModel.click_values`), the policy's count grows by min(1, sum_k w_k click_k).

    Guarantee:
        Which policy is displayed is a public coin, the same for both neighbours, so that replacing
        a user moves one count, by at most 1, in every norm and for any number of policies and
        length of lists. A user with a click and one without attain it.

    >>> from dpbandit.losses.click_models import Cascade
    >>> PolicyClicks(Cascade(2), 3).total(np.array([[1], [1]]), np.array([[[0, 1]], [[0, 0]]]))
    array([[0., 1., 0.]])
    """

    # "Which policy is displayed is a public coin, the same for both neighbours"
    needs = NO_FACTS
    controls = (0,)

    model: ClickModel
    n_policies: int
    units: ClassVar[float] = 1.0
    sensitivity: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_policies", self.n_policies, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_policies,)

    def total(self, *batch: Any) -> Floats:
        # Policies (n, R), clicks (n, R, m) -> (R, P)
        displayed, clicks = batch
        earned = np.vecdot(possible_clicks(self.model, clicks), self.model.click_values)
        ones = displayed[..., None] == np.arange(self.n_policies)
        return added_up(np.minimum(earned, 1.0)[..., None] * ones)
