"""What is asked: regret of three agents against T on two shops, at some budgets; what is proved."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from dpbandit.agents import JDPGLMUCB, LDPETC, BestFixed, PriceCells
from dpbandit.agents.contextual.demand import Features
from dpbandit.base.inputs import whole
from dpbandit.experiments.questions import Panels
from dpbandit.specs.protocols import AgentConfig
from dpbandit.studies import Configuration, setup_of

SHOPS = ("OJPricing", "CameraPricing")
SEED = 1000

PROVED = {
    "jdp-glm-ucb": "1/2",
    "price-cells": "2/3 (d = 2)",
    "ldp-etc": "1/2",
}
"""The exponent of T in the largest term of the bound that each paper's abstract states."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of the study."""

    horizons: Sequence[int] = tuple(1_250 * 2**j for j in range(7))
    epsilons: Sequence[float] = (1.0, 4.0, inf)
    replicas: int = 20

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are standard errors
        whole("horizons", len(self.horizons), 4)  # a slope needs two in the larger half


QUICK = Sizes(horizons=(250, 500, 1_000, 2_000), epsilons=(4.0,), replicas=3)


def questions(sizes: Sizes) -> dict[str, Panels]:
    """One, of a panel for each shop at each budget."""
    return {
        "horizons": {
            panel(shop, epsilon): {
                label: [_on(shop, label, config, T) for T in sizes.horizons]
                for label, config in agents(shop, epsilon).items()
            }
            for shop in SHOPS
            for epsilon in sizes.epsilons
        }
    }


def panel(shop: str, epsilon: float) -> str:
    """What it is called."""
    return f"{shop}, " + ("no privacy" if epsilon == inf else f"epsilon {epsilon:g}")


def agents(shop: str, epsilon: float) -> dict[str, AgentConfig]:
    """Of the literature. Buyers of cameras differ in what a price costs them."""
    features: Features = "interactions" if shop == "CameraPricing" else "additive"
    return {
        "jdp-glm-ucb": JDPGLMUCB(epsilon=epsilon, features=features),
        "price-cells": PriceCells(epsilon=epsilon),
        "ldp-etc": LDPETC(epsilon=epsilon),
        "best fixed price": BestFixed(),
    }


def _on(shop: str, label: str, config: AgentConfig, horizon: int) -> Configuration:
    return Configuration(setup_of(shop, {}, horizon=horizon, seed=SEED), label, config)
