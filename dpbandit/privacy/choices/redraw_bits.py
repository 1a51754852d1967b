"""Keep what was drawn, or draw anew: one random bit a round, of which a user touches one."""

from math import expm1, inf, log1p
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_range
from dpbandit.base.inputs import InputError, at_least, inside, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.pure import PureSpend


def bit_epsilon(rate: float, probability: float) -> float:
    """What one bit costs: max(h, log(1 + (1 - p) (1 - e^-h) / p)).

    >>> round(bit_epsilon(0.1, 0.1), 4)
    0.6187
    """
    if probability == 0 or rate == inf:
        return inf
    return max(rate, log1p((1 - probability) * -expm1(-rate) / probability))


def redraw_probability(rate: float, epsilon: float) -> float:
    """The least p for which a bit costs `epsilon`: (1 - e^-h) / (e^epsilon - e^-h).

    >>> round(redraw_probability(0.1, 0.6187), 3)
    0.1
    """
    moved = -expm1(-rate)
    return moved / (expm1(min(epsilon, 700.0)) + moved)


class RedrawBit(Mechanism):
    """Draw anew with probability 1 - (1 - p) e^(-h loss), else keep::

        call(loss (R,), active (R,) bool) -> redraw (R,) bool;  never where not `active`

    The keep probability of the shrinking dartboard (Geulen, Voecking and Winkler, "Regret
    minimization for online buffering problems using the weighted majority algorithm", COLT 2010),
    times 1 - p: a bit that no loss decides for certain.

    Guarantee:
        If every call's loss is that of a choice fixed before its round, and choices and `active`
        are public or functions of releases, then all calls together are epsilon-DP for replacing
        one round, epsilon = `bit_epsilon(h, p)`: given the releases before it, a user's loss
        decides her own round's bit alone. There loss l in [0, 1] keeps with probability (1 - p)
        e^(-h l), which moves by a factor of e^h at most, and redraws with probability between p and
        p + (1 - p) (1 - e^-h).

    Args:
        streams: the random streams of the replicas.
        name: the call site of the coins.
        rate: h >= 0; inf: any loss is a redraw.
        probability: p in [0, 1).
        uses: calls that will be made.

    >>> bit = RedrawBit(Streams([0, 1]), "bits", rate=np.inf, probability=0.0, uses=1)
    >>> bit(np.array([0.0, 0.1]), np.array([True, True]))
    array([False,  True])
    """

    def __init__(
        self, streams: Streams, name: str, *, rate: float, probability: float, uses: int
    ) -> None:
        if rate != inf:
            at_least("rate", rate, 0)
        inside("probability", probability, 0, 1, ends=True)
        whole("uses", uses, 0)
        self.spend = PureSpend.of(f"{name}: keep or redraw", [bit_epsilon(rate, probability)])
        self.sensitivity, self.uses = 1.0, uses
        self.rate, self._keep, self._replicas = rate, 1 - probability, len(streams)
        self._coins = streams.uniforms(name)

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped loss, (R,)."""
        if datum[0].shape != (self._replicas,):
            raise InputError(
                f"Expected losses of shape {datum[0].shape} to be {(self._replicas,)}."
            )
        return clip_range(datum[0], 0.0, 1.0)

    def keeps(self, loss: Floats) -> Floats:
        """With which probability, where `active`."""
        return self._keep * np.exp(-np.where(loss > 0, self.rate, 0.0) * loss)  # inf x 0 is 0 here

    def _release(self, *datum: npt.NDArray[Any]) -> Any:
        loss, active = self.query(*datum), datum[1]
        return (self._coins() >= self.keeps(loss)) & active
