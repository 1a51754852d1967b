"""Users of contextual bandits that push mechanisms to their bounds."""

from collections.abc import Iterator

import numpy as np

from dpbandit.auditing.worlds import Always, Answer, ByArm, Pair, User, World, random_round, ways
from dpbandit.base.arrays import Floats
from dpbandit.specs.protocols import BanditSpec, ContextualSpec

_QUIET = 1e-6
"""Length of a quiet user's context, in units of the public bound."""
_EXTREME = 10.0
"""How far beyond the public bounds a user is who does not keep them."""


class ContextUsers:
    """A user is a context and what she would answer to every arm.

    Everybody but the differing user is quiet, with a context along hers, too short to move a sum of
    contexts, and actions that show what was learned in that direction; or an ordinary user;
    or one who teaches which arm is best along her context.
    """

    def __init__(self, spec: BanditSpec) -> None:
        self._spec = spec
        self._rows = len(spec.context_shape) == 2
        self._answers = self._extremes()

    def handful(self, rng: np.random.Generator) -> Iterator[Pair]:
        """Her context goes from x to -x, her reward from the highest to the lowest, or both turn.

        She is in round 1, which touches every level of a tree, or in a random round. All
        coordinates of x are alike or one stands alone; her answer may depend on the arm, so that a
        random arm does not hide her; she keeps the public bounds, or is far beyond them (an honest
        agent clips).
        """
        T, (a, b) = self._spec.horizon, _directions(self._spec.dim, rng)
        x, y, edge = (self._at_the_bound(v) for v in (a, b, np.eye(self._spec.dim)[0]))
        later, quiet = random_round(T, rng), self._quiet(x)
        high, low, *turns = self._answers.values()
        one, two = turns or (high, low)
        ends = self._spec.answers
        width = ends[-1] - ends[0]
        far = Always(self._said(ends[-1] + _EXTREME * width))
        deep = Always(self._said(ends[0] - _EXTREME * width))
        for note, first, second in (
            ("context from x to -x", (x, high), (-x, high)),
            ("context from e_1 to -e_1", (edge, high), (-edge, high)),
            ("reward from high to low", (x, high), (x, low)),
            ("context turned by 60 degrees, reward from high to low", (x, high), (y, low)),
            ("rewards by turns of the arms, the other way round", (x, one), (x, two)),
            ("context from x to -x beyond the bounds", (_EXTREME * x, far), (-_EXTREME * x, far)),
            ("reward from above the bounds to below", (x, far), (x, deep)),
        ):
            worlds = quiet.with_user(0, *first), quiet.with_user(0, *second)
            yield Pair(f"round 1, {note}", 0, *worlds)
        across = self._at_the_bound((-1.0) ** np.arange(self._spec.dim))
        taught, agreed = (World(np.broadcast_to(x, (T, *x.shape)), (r,) * T) for r in (one, high))
        for t, others, v, among in (
            (later, quiet, x, ""),
            (0, self._ordinary(rng), x, " among ordinary users"),
            (max(0, T - 2), taught, x, " among users who teach which arm is best along x"),
            (T // 4, agreed, across, " across that of users who agree"),
        ):
            worlds = others.with_user(t, v, high), others.with_user(t, -v, high)
            yield Pair(f"round {t + 1}, context from x to -x{among}", t, *worlds)

    def candidates(self, rng: np.random.Generator) -> list[User]:
        """Contexts at the bound in many `ways`, rewards high, low and by turns of the arms.

        Where arms have rows of their own, these also point one way and the other by turns.
        """
        contexts = [(note, self._at_the_bound(v)) for note, v in ways(self._spec.dim, rng)]
        if self._rows:
            contexts += [(f"{note} by turns of the rows", _by_turns(x)) for note, x in contexts]
        return [
            User(f"context {where}, reward {what}", x, answer)
            for where, x in contexts
            for what, answer in self._answers.items()
        ]

    def neighbours(self, t: int, one: User, two: User, note: str) -> Pair:
        """Either user in round t, among users that are quiet along the first."""
        quiet = self._quiet(one.context)
        worlds = (quiet.with_user(t, user.context, user.answer) for user in (one, two))
        return Pair(note, t, *worlds)

    def _at_the_bound(self, direction: Floats) -> Floats:
        """The longest public context in that direction, `(*context_shape)`; all rows are alike."""
        size = float(np.linalg.norm(direction, ord=self._spec.context_order))
        x = self._spec.context_bound * direction / size
        return np.broadcast_to(x, self._spec.context_shape).copy()

    def _quiet(self, x: Floats) -> World:
        context = _QUIET * (_by_turns(x) if self._rows else x)  # rows apart: actions show a sign
        T = self._spec.horizon
        return World(np.broadcast_to(context, (T, *x.shape)), (Always(self._silence()),) * T)

    def _ordinary(self, rng: np.random.Generator) -> World:
        spec, T = self._spec, self._spec.horizon
        context = rng.standard_normal((T, *spec.context_shape))
        size = np.linalg.norm(context, ord=spec.context_order, axis=-1, keepdims=True)
        answers = tuple(self._ordinary_answer(rng) for _ in range(T))
        return World(context * spec.context_bound / size, answers)

    def _extremes(self) -> dict[str, Answer]:
        """What she may answer, highest and lowest first; where there are arms, by turns, too."""
        spec = self._spec
        low, high = spec.reward_low, spec.reward_high
        found: dict[str, Answer] = {"high": Always(np.array(high)), "low": Always(np.array(low))}
        if isinstance(spec, ContextualSpec):
            odd = np.arange(spec.n_actions) % 2 == 1
            found["high and low by turns of the arms"] = ByArm(np.where(odd, low, high))
            found["low and high by turns of the arms"] = ByArm(np.where(odd, high, low))
        return found

    def _said(self, value: float) -> Floats:
        """An answer of that size."""
        return np.full(self._spec.datum_shape or (), value)

    def _silence(self) -> Floats:
        """What teaches least."""
        return np.array(min(max(0.0, self._spec.reward_low), self._spec.reward_high))

    def _ordinary_answer(self, rng: np.random.Generator) -> Answer:
        spec = self._spec
        if isinstance(spec, ContextualSpec):
            return ByArm(rng.uniform(spec.reward_low, spec.reward_high, spec.n_actions))
        return Always(rng.uniform(spec.reward_low, spec.reward_high, ()))


def _directions(dim: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The diagonal (dim,), and another direction at 60 degrees to it."""
    x = np.full(dim, dim**-0.5)
    if dim == 1:
        return x, -x
    v = rng.standard_normal(dim)
    v -= (v @ x) * x
    return x, 0.5 * x + 0.75**0.5 * v / np.linalg.norm(v)


def _by_turns(rows: Floats) -> Floats:
    """Every other row of (K, d) turned around."""
    turned = rows.copy()
    turned[1::2] *= -1
    return turned
