"""Questions 1 to 3: regret against W, against T, and in dollars where customers expire."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpbandit.agents import (
    FTAL,
    PFTAL,
    POCP,
    WDPCOCOL,
    WDPCOCOP,
    Centre,
    OnlineConditionalGradient,
    Uniform,
)
from dpbandit.base.inputs import positive, whole
from dpbandit.experiments.questions import Lines, Panels
from dpbandit.specs.protocols import AgentConfig
from dpbandit.studies import Configuration, setup_of

BALL, SIMPLEX = "cocop-ball", "cocol-simplex"
"""Cases of `window_cases`"""
PUBLIC: Mapping[str, AgentConfig] = {
    "FTAL, no privacy": FTAL(),
    "conditional gradient, no privacy": OnlineConditionalGradient(),
    "centre": Centre(),
    "uniform play": Uniform(),
}


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of the five questions."""

    horizon: int = 8192
    """of regret against W"""
    windows: Sequence[int] = (1, 4, 16, 64, 256, 1024, 8192)
    horizons: Sequence[int] = tuple(2**j for j in range(8, 17))
    """of regret against T"""
    fixed_windows: Sequence[int] = (16, 256)
    """there"""
    epsilon: float = 10.0
    """of both"""
    customers: int = 20_000
    retentions: Sequence[int] = (100, 1_000)
    """retention periods of the pricing problem, in customers"""
    epsilons: Sequence[float] = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
    """there"""
    corners: Sequence[int] = (10, 100, 1_000)
    """of simplices on which rounds are timed"""
    layers: Sequence[int] = (2, 4, 6)
    """of flow networks, three nodes each, on which rounds are timed"""
    timed_rounds: int = 64
    timed_runs: int = 5
    delta: float = 1e-6
    """of Gaussian noise"""
    replicas: int = 20

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are standard errors
        whole("timed_runs", self.timed_runs, 2)
        whole("horizons", len(self.horizons), 4)  # a slope needs two in the larger half
        positive("epsilon", self.epsilon)

    @property
    def normal(self) -> dict[str, Any]:
        """Gaussian noise at this epsilon."""
        return {"epsilon": self.epsilon, "noise": "gaussian", "delta": self.delta}

    @property
    def pure(self) -> dict[str, Any]:
        """Gamma noise at this epsilon."""
        return {"epsilon": self.epsilon, "noise": "gamma"}


QUICK = Sizes(
    horizon=256,
    windows=(1, 16, 256),
    horizons=(64, 128, 256, 512),
    fixed_windows=(16,),
    customers=500,
    retentions=(50,),
    epsilons=(1.0, 5.0),
    corners=(10, 50),
    layers=(2,),
    timed_rounds=16,
    timed_runs=2,
    replicas=3,
)


def questions(sizes: Sizes) -> dict[str, Panels]:
    """All of them."""
    return {
        "windows": windows(sizes),
        "horizons": horizons(sizes),
        "retention": {"pricing": retention(sizes)},
    }


def windows(sizes: Sizes) -> Panels:
    """Regret against W, at one epsilon and one horizon."""
    normal, pure, T = sizes.normal, sizes.pure, sizes.horizon
    ball: dict[str, Any] = {
        "Gamma, printed": partial(WDPCOCOP, **pure, calibration="paper"),
        "Gamma, exact tree": partial(WDPCOCOP, **pure, mode="exact"),
        "Gamma, lazy tree": partial(WDPCOCOP, **pure),
        "Laplace, lazy tree": partial(WDPCOCOP, **{**pure, "noise": "laplace"}),
        "Gaussian, printed": partial(WDPCOCOP, **normal, calibration="paper"),
        "Gaussian, exact tree": partial(WDPCOCOP, **normal, mode="exact"),
        "Gaussian, lazy tree": partial(WDPCOCOP, **normal),
    }
    simplex: dict[str, Any] = {
        "projection, Gamma": partial(WDPCOCOP, **pure),
        "projection, Gaussian": partial(WDPCOCOP, **normal),
        "linear oracle, Gamma": partial(WDPCOCOL, **pure),
        "linear oracle, Gaussian": partial(WDPCOCOL, **normal),
        "linear oracle, Gaussian, line search": partial(WDPCOCOL, **normal, step="line-search"),
        "linear oracle, Gaussian, printed steps": partial(WDPCOCOL, **normal, parameters="paper"),
    }
    lasting: dict[str, AgentConfig] = {"PFTAL, Gamma": PFTAL(**pure)}
    lasting |= {"PFTAL, Gaussian": PFTAL(**normal), **PUBLIC}
    return {
        problem: {
            **{
                label: [
                    _on(problem, f"{label}, W = {W}", family(window=W), T) for W in sizes.windows
                ]
                for label, family in families.items()
            },
            **{label: [_on(problem, label, config, T)] for label, config in lasting.items()},
        }
        for problem, families in ((BALL, ball), (SIMPLEX, simplex))
    }


def horizons(sizes: Sizes) -> Panels:
    """Regret against T, at one epsilon."""
    normal, pure = sizes.normal, sizes.pure
    ball: dict[str, AgentConfig] = {}
    simplex: dict[str, AgentConfig] = {}
    for W in sizes.fixed_windows:
        ball[f"COCOP, Gaussian, W = {W}"] = WDPCOCOP(**normal, window=W)
        ball[f"COCOP, Gamma, W = {W}"] = WDPCOCOP(**pure, window=W)
        simplex[f"COCOP, Gaussian, W = {W}"] = WDPCOCOP(**normal, window=W)
        simplex[f"COCOL, Gaussian, W = {W}"] = WDPCOCOL(**normal, window=W)
    ball |= {"PFTAL, Gaussian": PFTAL(**normal), "PFTAL, Gamma": PFTAL(**pure)}
    ball |= {"POCP": POCP(epsilon=sizes.epsilon, delta=sizes.delta), "FTAL, no privacy": FTAL()}
    simplex |= {"PFTAL, Gaussian": PFTAL(**normal), "FTAL, no privacy": FTAL()}
    simplex |= {"conditional gradient, no privacy": OnlineConditionalGradient()}
    baselines = {label: PUBLIC[label] for label in ("centre", "uniform play")}
    last = sizes.horizons[-1]
    return {
        problem: {
            **{
                label: [_on(problem, label, config, T) for T in sizes.horizons]
                for label, config in agents.items()
            },
            **{label: [_on(problem, label, config, last)] for label, config in baselines.items()},
        }
        for problem, agents in ((BALL, ball), (SIMPLEX, simplex))
    }


def retention(sizes: Sizes) -> Lines:
    """Dollars against epsilon, where customers are protected for a while or for ever."""
    normal: dict[str, Any] = {"noise": "gaussian", "delta": sizes.delta}
    agents: dict[str, tuple[int | None, Any]] = {}
    for kept in sizes.retentions:
        agents[f"COCOP, Gaussian, W = {kept}"] = kept, partial(WDPCOCOP, window=None, **normal)
        agents[f"COCOP, Gamma, W = {kept}"] = kept, partial(WDPCOCOP, window=None)
    agents[f"COCOL, Gaussian, W = {kept}"] = kept, partial(WDPCOCOL, window=None, **normal)
    agents["PFTAL, Gaussian"] = None, partial(PFTAL, **normal)
    agents["PFTAL, Gamma"] = None, PFTAL
    lines = {
        label: [_pricing(kept, label, family(epsilon=e), sizes) for e in sizes.epsilons]
        for label, (kept, family) in agents.items()
    }
    public: dict[str, AgentConfig] = {"FTAL, no privacy": FTAL()}
    public |= {"list prices": Centre(), "random prices": Uniform()}
    return lines | {name: [_pricing(None, name, one, sizes)] for name, one in public.items()}


def _on(problem: str, name: str, config: AgentConfig, horizon: int) -> Configuration:
    setup = setup_of("OnlineConvex", {"instance": problem}, horizon=horizon, label=problem)
    return Configuration(setup, name, config)


def _pricing(kept: int | None, name: str, config: AgentConfig, sizes: Sizes) -> Configuration:
    """Three goods; customers are protected until `kept` more have come, or for ever."""
    arguments = {"feedback": "datum", "retention": kept}
    label = f"pricing, retention {kept or 'for ever'}"
    setup = setup_of("ConvexPricing", arguments, horizon=sizes.customers, label=label)
    return Configuration(setup, name, config)
