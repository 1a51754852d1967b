"""Personal memory: what is kept of a person, exactly, for her own actions and nobody else's."""

import numpy as np

from dpbandit.base.arrays import Floats, Ints, rows


class PersonalMemory:
    """Sums of a person's own rounds, (R, N, *shape), read and added to under her number alone.

    Guarantee:
        Costs nothing, whatever is kept and however it is used, as long as it reaches no action but
        her own: if all that others see is made of releases that are (epsilon, delta)-DP for
        persons, and of their own memory, then what they see is a function of those releases and of
        their own data. So the agent is (epsilon, delta)-joint DP for persons; without any mechanism
        it is 0-joint DP. `dpbandit.testing` swaps a person and compares everybody else's memory
        byte for byte; whatever an agent keeps elsewhere must not change at all.

    >>> memory = PersonalMemory(1, people=3, shape=(2,))
    >>> memory.add(np.array([1]), np.array([[1.0, 2.0]]))
    >>> memory.of(np.array([1])), memory.of(np.array([-1]))
    (array([[1., 2.]]), array([[0., 0.]]))
    """

    def __init__(self, replicas: int, *, people: int, shape: tuple[int, ...]) -> None:
        self._sums: Floats = np.zeros((replicas, people, *shape))

    def of(self, person: Ints) -> Floats:
        """What is kept of the people who have come, (R,) -> (R, *shape); nothing of nobody."""
        found: Floats = self._sums[rows(len(person)), np.maximum(person, 0)]
        found[person < 0] = 0.0
        return found

    def add(self, person: Ints, value: Floats) -> None:
        """Add to what is kept of them `value` (R, *shape); nothing for nobody, or not finite."""
        axes = tuple(range(1, value.ndim))
        here = np.flatnonzero((person >= 0) & np.isfinite(value).all(axis=axes))
        self._sums[here, person[here]] += value[here]

    def everybody(self) -> Floats:
        """All of it, (R, N, *shape), for checks; no agent may look."""
        return self._sums.copy()
