"""What is asked of agents that play points: five questions, as lines of configurations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from dpbandit.agents import (
    FKM,
    FTAL,
    OGD,
    PFTAL,
    BanditFTAL,
    BanditPFTAL,
    Centre,
    GarberKretzu,
    PrivateBandit,
    Uniform,
)
from dpbandit.base.inputs import whole
from dpbandit.experiments.questions import Lines, Panels
from dpbandit.specs.protocols import AgentConfig
from dpbandit.studies import Configuration, setup_of

_TOLD_DATA = (FTAL, OGD, PFTAL)
_PROBLEMS: Mapping[str, Mapping[str, Any]] = {
    "p-lin": {"instance": "p-lin"},
    "p-quad": {"instance": "p-quad"},
    "sees the point": {"instance": "strongly-adaptive"},
    "saw the point before": {"loss": "offset-quadratic", "dim": 1, "adversary": "adaptive"},
    "partition matroid": {"instance": "partition-matroid"},
    "flows": {"instance": "flows"},
}


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of the five questions."""

    horizons: Sequence[int] = tuple(2**j for j in range(10, 18))
    """of regret against T"""
    adaptive_horizons: Sequence[int] = (2**10, 2**12, 2**14, 2**16)
    """of the adversary that sees the point"""
    users: int = 20_000
    """rounds of regret against epsilon"""
    epsilons: Sequence[float] = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, inf)
    delta: float = 1e-6
    """of Gaussian noise"""
    replicas: int = 20

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are standard errors
        whole("horizons", len(self.horizons), 4)  # a slope needs two in the larger half


QUICK = Sizes(
    horizons=(128, 256, 512, 1024),
    adaptive_horizons=(256, 1024),
    users=500,
    epsilons=(0.5, 5.0, inf),
    replicas=3,
)


def questions(sizes: Sizes) -> dict[str, Panels]:
    """All of them."""
    growth, signs = _at_one(sizes)
    adversaries = ("sees the point", "saw the point before")
    return {
        "growth": {name: _over(name, growth, sizes.horizons) for name in ("p-lin", "p-quad")},
        "signs": {"p-lin": _over("p-lin", signs, sizes.horizons)},
        "prices": {name: _prices(name, sizes) for name in ("p-quad", "pricing")},
        "adversaries": {
            name: _over(name, _exploring(sizes), sizes.adaptive_horizons) for name in adversaries
        },
        "sets": {
            name: _over(name, _on_sets(sizes), sizes.horizons)
            for name in ("partition matroid", "flows")
        },
    }


def on(problem: str, name: str, config: AgentConfig, horizon: int) -> Configuration:
    """An agent on a problem; those that learn from data meet the one that tells them."""
    data = isinstance(config, _TOLD_DATA)
    environment = "OnlineConvex" if data else "ConvexBandit"
    arguments = _PROBLEMS.get(problem, {})
    if problem == "pricing":
        environment, arguments = "ConvexPricing", {"feedback": "datum"} if data else {}
    setup = setup_of(environment, arguments, horizon=horizon, label=problem)
    return Configuration(setup, name, config)


def _always(families: Mapping[str, AgentConfig]) -> dict[str, Callable[[int], AgentConfig]]:
    """The same config at every horizon."""

    def made(config: AgentConfig) -> Callable[[int], AgentConfig]:
        return lambda T: config

    return {label: made(config) for label, config in families.items()}


def _on_sets(sizes: Sizes) -> dict[str, Callable[[int], AgentConfig]]:
    """`PrivateBandit` at epsilon 1, with the paper's lengths and where its bound is least."""
    gaussian: dict[str, Any] = {"noise": "gaussian", "delta": sizes.delta}
    return _always(
        {
            "printed, Laplace": PrivateBandit(noise="laplace", calibration="paper"),
            "K-norm": PrivateBandit(noise="k-norm"),
            "Gaussian": PrivateBandit(**gaussian),
            "tuned, Gaussian": PrivateBandit(parameters="tuned", **gaussian),
            "tuned, without noise": GarberKretzu(parameters="tuned"),
            "without noise": GarberKretzu(),
        }
    )


def _at_one(sizes: Sizes) -> tuple[dict[str, Any], dict[str, Any]]:
    """`PrivateBandit` at epsilon 1 beside itself without noise, and with the printed sign."""
    delta, public = sizes.delta, GarberKretzu()
    growth: dict[str, AgentConfig] = {
        "printed, Gaussian": PrivateBandit(noise="gaussian", delta=delta, calibration="paper"),
        "printed, Laplace": PrivateBandit(noise="laplace", calibration="paper"),
        "K-norm": PrivateBandit(noise="k-norm"),
        "local": PrivateBandit(noise="local"),
        "Gaussian": PrivateBandit(noise="gaussian", delta=delta),
        "without noise": public,
    }
    signs: dict[str, AgentConfig] = {
        "printed sign, K-norm": PrivateBandit(noise="k-norm", sign="printed"),
        "printed sign, without noise": GarberKretzu(sign="printed"),
        "K-norm": growth["K-norm"],
        "without noise": public,
    }
    return _always(growth), _always(signs)


def _exploring(sizes: Sizes) -> dict[str, Any]:
    """Agents that explore with steps of T^(-1/3), for which the adversaries are made.

    Their offsets follow the sign of this round's exploration, and of the round's before.
    """

    def step(T: int) -> float:
        return min(0.5, T ** (-1 / 3))

    noise: dict[str, Any] = {"noise": "gaussian", "delta": sizes.delta}
    return {
        "BanditFTAL": lambda T: BanditFTAL(beta=step(T)),
        "GarberKretzu": lambda T: GarberKretzu(zeta=step(T)),
        "FKM": lambda T: FKM(zeta=step(T)),
        "PrivateBandit, K-norm": lambda T: PrivateBandit(noise="k-norm", zeta=step(T)),
        "BanditPFTAL, Gaussian": lambda T: BanditPFTAL(beta=step(T), **noise),
        "PFTAL, K-norm, full information": lambda T: PFTAL(),
        "FTAL, full information": lambda T: FTAL(),
    }


def _over(
    problem: str, families: Mapping[str, Callable[[int], AgentConfig]], horizons: Sequence[int]
) -> Lines:
    lines = _baselines(problem, horizons[-1])
    for label, family in families.items():
        lines[label] = [on(problem, label, family(T), T) for T in horizons]
    return lines


def _prices(problem: str, sizes: Sizes) -> Lines:
    """Private agents at every epsilon, and then without privacy; beside public ones."""

    def noisy(**more: Any) -> dict[str, Any]:
        return {"noise": "gaussian", "delta": sizes.delta, **more}

    bandits: dict[str, dict[str, Any]] = {  # without privacy they are one and the same agent
        "PrivateBandit, printed": {"noise": "laplace", "calibration": "paper"},
        "PrivateBandit, K-norm": {"noise": "k-norm"},
        "PrivateBandit, local": {"noise": "local"},
        "PrivateBandit, Gaussian": noisy(),
    }
    families: dict[str, tuple[Any, dict[str, Any]]] = {
        **{label: (PrivateBandit, settings) for label, settings in bandits.items()},
        "PrivateBandit, tuned": (PrivateBandit, noisy(parameters="tuned")),
        "BanditPFTAL, Gaussian": (BanditPFTAL, noisy()),
        "PFTAL, K-norm": (PFTAL, {}),
        "PFTAL, Gaussian": (PFTAL, noisy()),
    }
    lines, T = _baselines(problem, sizes.users), sizes.users
    without = on(problem, "without noise", GarberKretzu(), T)
    for label, (kind, settings) in families.items():
        lines[label] = [
            without
            if label in bandits and epsilon == inf
            else on(problem, label, kind(epsilon=epsilon, **settings), T)
            for epsilon in sizes.epsilons
        ]
    return lines | {"OGD": [on(problem, "OGD", OGD(), T)], "FTAL": [on(problem, "FTAL", FTAL(), T)]}


def _baselines(problem: str, horizon: int) -> dict[str, list[Configuration]]:
    baselines: dict[str, AgentConfig] = {"uniform play": Uniform(), "centre": Centre()}
    return {label: [on(problem, label, config, horizon)] for label, config in baselines.items()}
