"""NoisySGD, stopped on its way: what its release is after m of all its steps."""

from dpbandit.agents import NoisySGD


class StoppedSGD(NoisySGD):
    """`NoisySGD` with its noise and its step for all m steps, of which the first `made` are made.

    Runs of one seed that stop elsewhere walk the same way, so that their releases are a training
    curve. Its certificate is that of the steps made; a curve costs what its last point does.
    """

    made: int = 1

    def numbers(self, users: int) -> tuple[int, float, float]:
        """Those of the whole block, and fewer steps."""
        _, sigma, eta = super().numbers(users)
        return self.made, sigma, eta
