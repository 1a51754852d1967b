"""A row of a table of rates: what is printed, on what problem it is measured, and with which agent.

An exponent is that of the excess risk, or of the regret, as T, the dimension d or epsilon grows and
the other two stand still. A bound is an order: a smaller exponent than the printed one refutes
nothing, and a larger one says that the sizes are not yet those that the order is about (or that the
bound is false). What the printed formula itself, with every constant 1, does between the same sizes
is fitted alike.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias

from dpbandit.base.arrays import Floats
from dpbandit.experiments.releases import ReleaseConfiguration
from dpbandit.results.runs import AgentRun
from dpbandit.specs.protocols import AgentConfig
from dpbandit.studies import Configuration, setup_of
from dpbandit.studies.plan import LastRound

Axis: TypeAlias = Literal["T", "d", "epsilon"]
READINGS = {
    "certified": "the algorithm with noise that is certified at epsilon and delta = 1e-6",
    "printed": "with the noise and the parameters of its paper, where it has others",
    "public": "without privacy",
}
DELTA = 1e-6


class Point(NamedTuple):
    """The size of a run, and what it promises."""

    T: int
    d: int
    epsilon: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A row; raises nothing, for it is written here."""

    number: int
    setting: str
    """which losses, in the table's words"""
    source: str
    """whose theorem"""
    bound: str
    """as printed"""
    value: Callable[[Point], float]
    """the bound with every constant 1, and the logarithms that are printed"""
    exponents: Mapping[Axis, float]
    """of the bound, up to logarithms"""
    environment: str = ""
    """the problem; "" where no agent here is the row's"""
    arguments: Callable[[Point], Mapping[str, Any]] = lambda at: {}
    agents: Mapping[str, Callable[[Point], AgentConfig]] = field(default_factory=dict)
    """reading -> its agent"""
    dim: int = 10
    """d, where it stands still"""
    dims: tuple[int, ...] = (4, 8, 16, 32, 64)
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)

    @property
    def excess(self) -> bool:
        """It is about the point that is released after T users, not about regret."""
        return self.environment == "StreamingRegression" and self.exponents["T"] < 0

    def points(self, axis: Axis, T: int) -> list[Point]:
        """Along an axis; T is the longest horizon, and a quarter of it is where it stands still."""
        if axis == "T":
            return [Point(T // 2**j, self.dim) for j in (4, 3, 2, 1, 0)]
        if axis == "d":
            return [Point(max(2, T // 4), d) for d in self.dims]
        return [Point(max(2, T // 4), self.dim, epsilon) for epsilon in self.epsilons]

    def configuration(self, reading: str, at: Point, *, seed: int) -> Configuration:
        """The run of a point."""
        config = self.agents[reading](at)
        label = f"row {self.number}, d = {at.d}"
        setup = setup_of(self.environment, self.arguments(at), horizon=at.T, seed=seed, label=label)
        kind = ReleaseConfiguration if self.excess else LastRound
        return kind(setup, reading, config)

    def measured(self, run: AgentRun) -> Floats:
        """Excess risk or regret, (R,)."""
        return run.measures["excess"] if self.excess else run.regret[-1]


def readings_of(
    make: Callable[..., AgentConfig], printed: Mapping[str, Any] | None = None, **settings: Any
) -> dict[str, Callable[[Point], AgentConfig]]:
    """The agent `make` under every reading; settings of all, and those of the printed one."""
    found: dict[str, Callable[[Point], AgentConfig]] = {
        "certified": lambda at: make(epsilon=at.epsilon, **settings),
        "public": lambda at: make(epsilon=inf, **settings),
    }
    if printed is not None:
        found["printed"] = lambda at: make(epsilon=at.epsilon, **{**settings, **printed})
    return found
