"""Statistics of residuals at released or public reference points: directions, signs, scores."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy

from dpbandit.base import (
    AnyArray,
    Floats,
    InputError,
    Ints,
    added_up,
    at_least,
    clip_norm,
    clip_range,
    inside,
    norms,
    one_of,
    positive,
    rows,
    whole,
)
from dpbandit.privacy.premises import NO_FACTS

Layout = Literal["difference", "blocks"]


@dataclass(frozen=True, kw_only=True)
class SignedDirections:
    """Sum of `sign(r - centre) x / |x|` for each arm, or the difference of two arms' sums::

        blocks       (K, d): the row of the arm played
        difference   (1, d): + for arm 0, - for arm 1; two arms only

    For isotropic contexts x and symmetric noise of rewards r, the mean points along theta.
    No scale of x or r has to be known: every user's vector has length 1, however small her reward.
    Length 1 also has the best ratio of signal to sensitivity when noise dominates. x = 0, sign(0)
    and non-finite values give 0.

    **Sensitivity.** 2: one unit vector against its opposite, or sqrt(2) in two different blocks.
    """

    # "one unit vector against its opposite, or sqrt(2) in two different blocks"
    needs = NO_FACTS

    n_actions: int
    dim: int
    layout: Layout = "blocks"
    centre: float = 0.0
    """public level with which rewards are compared, such as the middle of their range"""
    units: ClassVar[float] = 1.0
    sensitivity: ClassVar[float] = 2.0
    move_sensitivity: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        one_of("layout", self.layout, ("difference", "blocks"))
        if self.layout == "difference" and self.n_actions != 2:
            raise InputError(
                f"Expected n_actions={self.n_actions} to be 2 for layout='difference'."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return (1 if self.layout == "difference" else self.n_actions, self.dim)

    def total(self, *batch: AnyArray) -> Floats:
        # context (n, R, d), action (n, R), reward (n, R) -> (R, blocks, d)
        context, action, reward = batch
        reward = np.asarray(reward, dtype=np.float64)
        sign = np.where(np.isfinite(reward), np.sign(reward - self.centre), 0.0)  # (n, R)
        if self.layout == "difference":
            played = np.where(action == 0, sign, -sign)[..., None]  # (n, R, 1)
        else:
            played = (action[..., None] == rows(self.n_actions)) * sign[..., None]  # (n, R, K)
        # contiguous, so that the same BLAS routine sums whatever R is
        weights = np.ascontiguousarray(played.transpose(1, 2, 0), dtype=np.float64)
        u = np.ascontiguousarray(unit(context).transpose(1, 0, 2))
        return weights @ u  # (R, blocks, d)


def unit(x: AnyArray) -> Floats:
    """Return `x / |x|`, never longer than 1; 0 where x is 0 or not finite."""
    x = np.asarray(x, dtype=np.float64)
    x = np.where(np.isfinite(x).all(axis=-1, keepdims=True), x, 0.0)
    largest = norms(x, np.inf)  # else squares of tiny entries are 0, of huge ones infinite
    scaled = x / np.where(largest > 0, largest, 1.0)
    return scaled / np.maximum(norms(scaled), 1.0)


def directions(context: AnyArray, centre: AnyArray, constant: float) -> Floats:
    """Return features (..., 1 + d) `along` the direction of `context` from `centre`.

    The direction is 0 where the context is the centre or not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return along(unit(np.asarray(context, np.float64) - centre), constant)


def along(direction: Floats, constant: float) -> Floats:
    """Return vectors (..., 1 + d) of a `constant` in [0, 1] and a `direction` (..., d), of norm 1.

    They are no longer than 1, if the direction is not.
    """
    first = np.full((*direction.shape[:-1], 1), constant)
    return np.concatenate([first, sqrt(1 - constant**2) * direction], axis=-1)


class Reference(NamedTuple):
    """Reference point of `SignedResiduals`: released or public numbers, (...) as rounds are.

    Four fields are set if the level of rewards is learned, the last if features have a constant;
    else they are None.
    """

    theta: Any
    """parameter of the arm played, (..., d)"""
    weights: Any
    """weight of each coordinate, (..., d)"""
    threshold: Any
    """threshold above which a residual is large, (...)"""
    level: Any = None
    """level of rewards minus the middle of their range, (...)"""
    width: Any = None
    """residual at which the score of a direction is clipped, (...)"""
    reach: Any = None
    """residual at which the score of the level is clipped, (...)"""
    share: Any = None
    """weight in [0, 1] of the score of a direction; the score of the level has the rest, (...)"""
    centre: Any = None
    """point from which contexts have their directions, (..., d)"""

    @property
    def arrays(self) -> tuple[Floats, ...]:
        """Fields that are set, in the order of a mechanism's arguments."""
        return tuple(number for number in self if number is not None)


@dataclass(frozen=True, kw_only=True)
class CodedByArm:
    """Base class of sums of scores times q_a (x) v, the Kronecker product of arm code and features.

    Codes q_a damp the mean over arms by `common`, since no comparison of arms depends on it.
    """

    n_actions: int
    dim: int
    reward_low: float = 0.0
    reward_high: float = 1.0
    common: float = 0.5
    """factor by which the mean over arms is multiplied, in (0, 1]"""
    units: ClassVar[float] = 1.0
    gram: Floats = field(init=False, repr=False, compare=False)
    """inner products of codes (K, K), I - (1 - common^2) / K divided by its diagonal entries"""
    codes: Floats = field(init=False, repr=False, compare=False)
    """codes of the arms as rows, (K, K)"""

    def __post_init__(self) -> None:
        inside("common", self.common, 1e-3, 1, ends=True)
        gram = np.eye(self.n_actions) - (1 - self.common**2) / self.n_actions
        object.__setattr__(self, "gram", np.asarray(gram / gram[0, 0]))
        object.__setattr__(self, "codes", np.linalg.cholesky(self.gram))

    def decoded(self, coded: Floats) -> Floats:
        """Return the sums of each arm, (R, K, d), from sums of coded scores, (R, K d).

        White noise of variance s^2 becomes noise of covariance s^2 inv(gram) between the arms.
        """
        by_code = coded.reshape(len(coded), self.n_actions, -1)
        return np.asarray(np.linalg.inv(self.codes).T @ by_code)


@dataclass(frozen=True, kw_only=True)
class SignedResiduals(CodedByArm):
    """Sum of sign(residual) q_a (x) v over rounds, and a balance of large and small residuals.

    A round is a `Reference` and (x, a, r). With `u = x / |x|` and residual
    e = clip(r) - middle - theta . u a round adds::

        sign(e) q_a (x) v,   v = weights u / |weights u|     K d numbers
        c if |e| > threshold, else -c                        one number, 0 if x is not finite

    where q_a is the code of arm a and c = `spread_weight`.

    With a `level_weight` c_l > 0 the level of the reference is subtracted from e. With its width w,
    reach w_l and share h a round adds::

        h clip(e / w, -1, 1) q_a (x) v                       in place of the first line
        sqrt(1 + c_l^2 - h^2) clip(e / w_l, -1, 1)           one number, 0 if x is not finite

    With a `constant`, u has d + 1 entries, the constant and the direction of x from the centre of
    the reference (`directions`), and so have theta and weights.

    Guarantee:
        Rewards are clipped to their range (non-finite ones become `reward_low`), u = 0 and
        non-finite x add nothing to the first part, and a round's parts have norm at most sqrt(1 +
        c^2 + c_l^2) at every reference point, finite or not. So replacing one user moves the sum by
        at most `sensitivity` = 2 sqrt(1 + c^2 + c_l^2).
    """

    # "at every reference point, finite or not"
    needs = NO_FACTS

    spread_weight: float = 0.15
    """weight of the balance of large and small residuals"""
    level_weight: float = 0.0
    """weight of the level; 0 if the level is the public middle"""
    constant: float = 0.0
    """constant coordinate of features, in [0, 1), beside directions of contexts from a centre; with
    0 features are directions from 0 alone"""

    def __post_init__(self) -> None:
        positive("spread_weight", self.spread_weight)
        at_least("level_weight", self.level_weight, 0)
        inside("constant", self.constant, 0, 0.999, ends=True)
        super().__post_init__()

    @property
    def shape(self) -> tuple[int]:
        return (self.n_actions * self.features + 1 + (self.level_weight > 0),)

    @property
    def features(self) -> int:
        """Number of features of an arm, d or d + 1."""
        return self.dim + (self.constant > 0)

    @property
    def sensitivity(self) -> float:
        return 2 * sqrt(1 + self.spread_weight**2 + self.level_weight**2)

    @property
    def move_sensitivity(self) -> float:
        """Largest change of the sum if a user changes her time slot, equal to `sensitivity`."""
        return self.sensitivity

    def weight_of_level(self, share: Floats) -> Floats:
        """Return the weight of the score of the level if that of a direction has weight `share`."""
        return np.sqrt(1 + self.level_weight**2 - share**2)

    def total(self, *batch: AnyArray) -> Floats:
        # fields of a `Reference` (n, R, ...), x (n, R, d), a (n, R), r (n, R) -> `(R, *shape)`
        at, (context, action, reward) = self._reference(*batch[:-3]), batch[-3:]
        learns_level = at.level is not None
        u = directions(context, at.centre, self.constant) if self.constant else unit(context)
        middle = (self.reward_low + self.reward_high) / 2
        with np.errstate(over="ignore", invalid="ignore"):
            v = unit(at.weights * u)
            residual = clip_range(reward, self.reward_low, self.reward_high) - middle
            residual = residual - np.vecdot(at.theta, u)
            if learns_level:
                residual = residual - at.level
            large = np.abs(residual) > at.threshold  # (n, R)
        score = np.where(np.isfinite(residual), np.sign(residual), 0.0)
        if learns_level:
            share = np.clip(np.nan_to_num(at.share), 0, 1)
            score = share * _bounded(residual, at.width)
        valid = np.isfinite(context).all(axis=-1)  # (n, R)
        coded = _coded(self.codes, action, np.where(valid, score, 0.0), v)
        large_balance = self.spread_weight * (valid * (2.0 * large - 1)).sum(axis=0)
        parts = [coded, large_balance[:, None]]
        if learns_level:
            weighted = self.weight_of_level(share) * valid * _bounded(residual, at.reach)
            parts.append(added_up(weighted[..., None]))
        return np.concatenate(parts, axis=1)

    def _reference(self, *arrays: AnyArray) -> Reference:
        """Return the `Reference` whose `arrays` these are."""
        if not self.constant:
            return Reference(*arrays)
        return Reference(*arrays[:-1])._replace(centre=arrays[-1])

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Return each arm's sums of scores (R, K, d), the sums of +-1 for large and small residuals
        (R,), and of the weighted level (R,), None if no level is learned."""
        n = self.n_actions * self.features
        level = vectors[:, n + 1] if self.level_weight else None
        return self.decoded(vectors[:, :n]), vectors[:, n] / self.spread_weight, level


def _coded(codes: Floats, action: Ints, score: Floats, v: Floats) -> Floats:
    """Return the sum (R, K d) over n rounds of score x arm code (x) v, v (n, R, d)."""
    played = (action[..., None] == rows(len(codes))) * score[..., None]  # (n, R, K)
    # contiguous, so that the same BLAS routine sums whatever R is
    by_arm = np.ascontiguousarray(played.transpose(1, 2, 0), dtype=np.float64)
    blocks = by_arm @ np.ascontiguousarray(v.transpose(1, 0, 2))  # (R, K, d)
    return np.asarray((codes.T @ blocks).reshape(len(blocks), -1))


@dataclass(frozen=True, kw_only=True)
class CentredResiduals(CodedByArm):
    """Sum of (y - p) q_a (x) u over rounds, u a constant and the direction of x from a centre.

    A round is (theta, trust, centre, x, a, r); the first three are the reference point, released or
    public: the parameter of the arm played (R, 1 + d), a weight in [0, 1], (R,), a point (R, d).
    With y the reward on a scale from 0 to 1, c_0 = `constant` and::

        u = (c_0, sqrt(1 - c_0^2) (x - centre) / |x - centre|),
        q = clip(theta . u, 0, 1),                      p = 1/2 + trust (q - 1/2)

    a round adds `(y - p) / max(p, 1 - p) q_a (x) u`, K (1 + d) numbers, with the codes q_a of
    `CodedByArm`.

    Guarantee:
        Rewards are clipped to their range (non-finite ones become `reward_low`) and residuals to
        [-1, 1], u is no longer than 1, and non-finite x adds 0, at every reference point, finite
        or not. So replacing one user moves the sum by at most `sensitivity` = 2.
    """

    # "at every reference point, finite or not"
    needs = NO_FACTS

    constant: float = 0.6
    """constant coordinate of features, in (0, 1)"""
    sensitivity: ClassVar[float] = 2.0
    move_sensitivity: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        inside("constant", self.constant, 0, 1, ends=False)

    @property
    def shape(self) -> tuple[int]:
        return (self.n_actions * (1 + self.dim),)

    def chance(self, predicted: Floats, trust: Floats | float) -> Floats:
        """Return p = 1/2 + trust (q - 1/2), q the predicted reward clipped to [0, 1]."""
        return np.asarray(0.5 + trust * (np.clip(predicted, 0.0, 1.0) - 0.5))

    def total(self, *batch: AnyArray) -> Floats:
        # (n, R, 1 + d), (n, R), (n, R, d), (n, R, d), (n, R), (n, R) -> `(R, *shape)`
        theta, trust, centre, context, action, reward = batch
        width = self.reward_high - self.reward_low
        y = (clip_range(reward, self.reward_low, self.reward_high) - self.reward_low) / width
        with np.errstate(over="ignore", invalid="ignore"):
            u = directions(context, centre, self.constant)
            p = self.chance(np.vecdot(theta, u), trust)
            score = np.clip((y - p) / np.maximum(p, 1 - p), -1, 1)
        score = np.where(np.isfinite(score) & np.isfinite(context).all(axis=-1), score, 0.0)
        return _coded(self.codes, action, score, u)

    def unpack(self, vectors: Floats) -> Floats:
        """Return the sums of each arm, (R, K, 1 + d), from coded sums `(R, *shape)`."""
        return self.decoded(vectors)


def _bounded(residual: Floats, width: Floats) -> Floats:
    """Return clip(residual / width, -1, 1), 0 where that is not finite."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        score = np.clip(residual / width, -1, 1)
    return np.where(np.isfinite(score), score, 0.0)


@dataclass(frozen=True, kw_only=True)
class SaleResiduals:
    """Sums of scores of a logistic model of sales at a reference point, and of customer moments.

    A round is (theta, phi, y): the reference point (R, D), released or public, the row of features
    (R, D) of the price, and the sale y, (R,) in [0, 1]. With p = logistic(phi . theta) a round
    adds::

        v = (y - p) / max(p, 1 - p)  phi / |phi|,            |v| <= 1
        x and x_i x_j, i <= j,       x = sqrt(2) phi_1..d,   |x| <= 1

    where phi_1..d are the entries of `demand_rows` that depend on the customer alone. At the true
    parameter v has mean 0, whatever the prices; the moments describe the customers. In `units`
    the second line is `moment_weight` = w times as long, and its half-vectorisation isometric. A
    round may have a direction (R, D) as a fourth entry, in place of the direction of phi in v.

    Guarantee:
        Rows and x are clipped to norm 1, y to [0, 1] (non-finite ones become 0), residuals to [-1,
        1], so that at every reference point, finite or not, replacing one user moves the sum by at
        most `sensitivity` = sqrt(4 + 4.5 w^2): two vectors v are at most 2 apart, and `|x - z|^2 +
        |xx' - zz'|^2 <= 4.5` for `|x|`, `|z| <= 1` (unit vectors at cosine c: 4 - 2c - 2c^2,
        largest at c = -1/2).
    """

    # "at every reference point, finite or not"
    needs = NO_FACTS

    dim: int
    """length of a row of features"""
    features: int
    """number of leading entries of a row that describe the customer"""
    moment_weight: float = 0.35
    units: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("features", self.features, 1)
        if self.features > self.dim:
            raise InputError(f"Expected features={self.features} <= dim={self.dim}.")
        positive("moment_weight", self.moment_weight)
        i, j = np.triu_indices(self.features)
        second = np.where(i == j, 1.0, sqrt(0.5))
        moments = np.concatenate([np.ones(self.features), second]) / self.moment_weight
        object.__setattr__(self, "units", np.concatenate([np.ones(self.dim), moments]))

    @property
    def shape(self) -> tuple[int]:
        return (self.dim + self.features + self.features * (self.features + 1) // 2,)

    @property
    def sensitivity(self) -> float:
        return sqrt(4 + 4.5 * self.moment_weight**2)

    @property
    def move_sensitivity(self) -> float:
        """Largest change of the sum if a user changes her time slot, equal to `sensitivity`."""
        return self.sensitivity  # as <v, v'> >= -1 and <x, z> + <xx', zz'> >= -1/4

    def total(self, *batch: AnyArray) -> Floats:
        # theta (n, R, D), phi (n, R, D), y (n, R), perhaps directions -> `(R, *shape)`
        theta, phi, y, *aimed = batch
        phi = clip_norm(phi, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            p = scipy.special.expit(np.vecdot(phi, theta))
            residual = clip_range((clip_range(y, 0, 1) - p) / np.maximum(p, 1 - p), -1, 1)
        x = clip_norm(sqrt(2) * phi[..., : self.features], 1.0)
        # contiguous, so that the same BLAS routine sums whatever R is
        by_replica = np.ascontiguousarray(x.transpose(1, 0, 2))
        second = by_replica.transpose(0, 2, 1) @ by_replica  # (R, d, d)
        i, j = np.triu_indices(self.features)
        direction = unit(aimed[0]) * phi.any(axis=-1, keepdims=True) if aimed else unit(phi)
        scores = added_up(residual[..., None] * direction)
        return np.concatenate([scores, added_up(x), second[:, i, j]], axis=-1)

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the sums of scores (..., D), of customers x (..., d) and of x x' (..., d, d)."""
        D, d = self.dim, self.features
        i, j = np.triu_indices(d)
        second = np.empty((*vectors.shape[:-1], d, d))
        second[..., i, j] = second[..., j, i] = vectors[..., D + d :]
        return vectors[..., :D], vectors[..., D : D + d], second


def score_lengths(phi: Floats, p: Floats) -> Floats:
    """Return the factor (...) of (sale - p) phi in `SaleResiduals`, at sale probability p."""
    length = np.sqrt((phi * phi).sum(axis=-1))
    return 1 / (np.maximum(length, 1e-9) * np.maximum(p, 1 - p))


@dataclass(frozen=True, kw_only=True)
class SlateResiduals:
    """Sums of scores of a logistic model of rows at a reference point, and of slate moments.

    A round is (theta, trust, x, a, y): the reference point, released or public, a parameter
    (R, 1 + d), intercept first, and a weight in [0, 1], (R,); then the slate (R, K, d), the index
    of the row chosen, (R,), and the answer, (R,) in [0, 1]. With rows x_i in units
    of `context_bound` and::

        q = logistic(theta_0 + theta_1.. . x_a),    p = 1/2 + trust (q - 1/2)
        z(g) = x - (1 - g) mean of the slate,       v = z_a(g trust), times h along theta, divided
                                                    by its norm

    a round adds::

        (y - p) / max(p, 1 - p)  (c_0, v)
        clip(mean over rows i of u_i u_i'),         u_i = z_i(g) / |z_i(g)|

    where clip shortens to Frobenius norm `moment_clip`. The mean row of a slate is damped by
    `common` = g, since no comparison of rows depends on it, and left out where p is 1/2: with rare
    rewards its score would only measure their rate. The direction of theta, common to all chosen
    rows, is damped by `along` = h; c_0 = `intercept_weight`. In `units` the second line is
    `moment_weight` = w times as long, and its half-vectorisation isometric.

    Guarantee:
        Rows are clipped to norm `context_bound`, y to [0, 1] (non-finite ones become 0), residuals
        to [-1, 1]; a slate with a non-finite number adds nothing, and where z = 0, v and u are 0.
        So at every reference point, finite or not, replacing one user moves the sum by at most
        `sensitivity` = sqrt(4 (1 + c_0^2) + 2 (w moment_clip)^2): two vectors of norm at most
        sqrt(1 + c_0^2) may be opposite, but <M, M'> >= 0 for positive semi-definite M and M', so
        that `|M - M'|^2 <= |M|^2 + |M'|^2`.
    """

    # "at every reference point, finite or not"
    needs = NO_FACTS

    dim: int
    """length of a row"""
    context_bound: float = 1.0
    common: float = 0.25
    """factor by which the mean row of a slate is multiplied, in [0, 1]"""
    along: float = 0.3
    """factor by which features along theta are multiplied, in [0, 1]"""
    intercept_weight: float = 0.3
    """constant coordinate of every feature vector, for the intercept"""
    moment_weight: float = 0.5
    moment_clip: float = 0.55
    units: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        for name in ("context_bound", "intercept_weight", "moment_weight", "moment_clip"):
            positive(name, getattr(self, name))
        inside("common", self.common, 0, 1, ends=True)
        inside("along", self.along, 0, 1, ends=True)
        i, j = np.triu_indices(self.dim)
        moments = np.where(i == j, 1.0, sqrt(0.5)) / self.moment_weight
        object.__setattr__(self, "units", np.concatenate([np.ones(1 + self.dim), moments]))

    @property
    def shape(self) -> tuple[int]:
        return (1 + self.dim + self.dim * (self.dim + 1) // 2,)

    @property
    def sensitivity(self) -> float:
        moments = self.moment_weight * self.moment_clip
        return sqrt(4 * (1 + self.intercept_weight**2) + 2 * moments**2)

    @property
    def move_sensitivity(self) -> float:
        """Largest change of the sum if a user changes her time slot, equal to `sensitivity`."""
        return self.sensitivity  # as <v, v'> >= -(1 + c_0^2)

    def total(self, *batch: AnyArray) -> Floats:
        # (n, R, 1 + d), (n, R), (n, R, K, d), (n, R), (n, R) -> `(R, *shape)`
        theta, trust, x, action, y = batch
        valid = 1.0 * np.isfinite(x).all(axis=(-2, -1))  # (n, R)
        x = clip_norm(x, self.context_bound) / self.context_bound
        mean = x.mean(axis=-2)  # (n, R, d)
        chosen = 1.0 * (action[..., None] == rows(x.shape[-2]))  # (n, R, K)
        row = np.vecmat(chosen, x)
        p = self.chance(theta, trust, row)
        with np.errstate(invalid="ignore"):
            residual = clip_range((clip_range(y, 0, 1) - p) / np.maximum(p, 1 - p), -1, 1) * valid
        u = _shortened(x - (1 - self.common) * mean[..., None, :])
        moments = (u.swapaxes(-1, -2) @ u / x.shape[-2]).reshape(*action.shape, -1)
        clipped = np.minimum(1, self.moment_clip / np.maximum(norms(moments)[..., 0], 1e-9))
        i, j = np.triu_indices(self.dim)
        return np.concatenate(
            [
                _weighed(residual, self.coded(theta, trust, row, mean)),
                _weighed(clipped * valid, moments)[:, i * self.dim + j],
            ],
            axis=-1,
        )

    def chance(self, theta: Floats, trust: Floats, x: Floats) -> Floats:
        """Return predicted answers to rows (..., d) at reference `theta` (..., 1 + d), `trust`."""
        with np.errstate(over="ignore", invalid="ignore"):
            q = scipy.special.expit(theta[..., 0] + np.vecdot(theta[..., 1:], x))
            return np.clip(0.5 + trust * (q - 0.5), 0, 1)

    def coded(self, theta: Floats, trust: Floats, x: Floats, mean: Floats) -> Floats:
        """Return features (..., 1 + d) of rows (..., d), given the means of their slates."""
        z = x - (1 - self.common * clip_range(trust, 0, 1)[..., None]) * mean
        axis = unit(theta[..., 1:])
        v = _shortened(z - (1 - self.along) * np.vecdot(z, axis)[..., None] * axis)
        scalar = np.full((*v.shape[:-1], 1), self.intercept_weight)
        return np.concatenate([scalar, v], axis=-1)

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Return scores (..., 1 + d) and moments (..., d, d) of sums `(..., *shape)`."""
        D = 1 + self.dim
        i, j = np.triu_indices(self.dim)
        second = np.empty((*vectors.shape[:-1], self.dim, self.dim))
        second[..., i, j] = second[..., j, i] = vectors[..., D:]
        return vectors[..., :D], second


def _shortened(z: Floats) -> Floats:
    """Return `z / |z|` of finite vectors, with `|z|` at least 1e-9."""
    return z / np.maximum(norms(z), 1e-9)


def _weighed(weights: Floats, vectors: Floats) -> Floats:
    """Return the sum (R, d) over n rounds of weights (n, R) times vectors (n, R, d)."""
    # contiguous, so that the same BLAS routine sums whatever R is
    by_replica = np.ascontiguousarray(weights.T)[:, None]
    return (by_replica @ np.ascontiguousarray(vectors.transpose(1, 0, 2)))[:, 0]
