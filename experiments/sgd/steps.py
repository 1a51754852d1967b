"""NoisySGD, stopped on its way: what its release is after m of all its steps."""

from dataclasses import dataclass, replace

from dpbandit.agents import NoisySGD
from dpbandit.agents.streams.noisy_sgd import SampledBlock
from dpbandit.losses.loss import Loss


@dataclass(frozen=True, kw_only=True)
class StoppedSGD(NoisySGD):
    """`NoisySGD` with its noise and its step for all m steps, of which the first `made` are made.

    Runs of one seed that stop elsewhere walk the same way, so that their releases are a training
    curve. Its certificate is that of the steps made; a curve costs what its last point does.
    """

    made: int = 1

    def block(self, loss: Loss, users: int) -> SampledBlock:
        """The whole block's numbers, and fewer steps."""
        return replace(super().block(loss, users), steps=self.made)
