"""How regret of private pricing grows with T, beside the rates that were proved. See README.md."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path

from rich.table import Table

from dpbandit.agents import JDPGLMUCB, LDPETC, BestFixed, PriceCells
from dpbandit.agents.contextual.demand import Features
from dpbandit.base import whole, write_atomically
from dpbandit.experiments.questions import (
    Answers,
    Found,
    Panels,
    along,
    answers,
    command,
    draw_lines,
    horizon,
    mean,
    panes,
    slopes_table,
    start,
)
from dpbandit.results.plots import legend_below, loglog
from dpbandit.results.runs import AgentRun, Slope
from dpbandit.specs import AgentConfig
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


BASELINE = "best fixed price"


def slopes(answers: Answers) -> dict[tuple[str, str], Slope]:
    """(panel, label) -> the exponent of growth in T."""
    return answers.slopes("horizons", horizon)


def tables(answers: Answers) -> Iterator[Table]:
    """One for each panel."""
    exponents = slopes(answers)
    for panel, lines in answers.runs["horizons"].items():
        own = {
            label: f"{exponents[panel, label].value:.2f} ± {exponents[panel, label].se:.2f}"
            + (f", {PROVED[label]}" if label in PROVED else "")
            for label in lines
        }
        title = f"{panel}: regret ({lines[BASELINE][0].setup.reward_unit})"
        last = ("exponent, the bound's", own)
        yield along(title, lines, _t, _regret, last=last, every=2)


def _t(run: AgentRun) -> str:
    return f"T = {run.setup.horizon:,}"


def _regret(run: AgentRun) -> str:
    return mean(run.regret[-1])


def figures(answers: Answers, out: Path) -> Iterator[Path]:
    """Write regret.png into `out`."""
    yield write_atomically(out / "regret.png", partial(_growth, answers))


def _growth(answers: Answers, path: Path) -> None:
    found, exponents = answers.runs["horizons"], slopes(answers)
    size = (5.4 * len(found) / len(SHOPS), 10.4)
    heading = "Private pricing: regret against T"
    with panes(path, found, heading, size, rows=len(SHOPS)) as grid:
        for axes, (panel, lines) in zip(grid, found.items(), strict=True):
            names = {label: f"{label}: {exponents[panel, label].value:.2f}" for label in lines}
            draw_lines(axes, lines, horizon, names=names, grey=[BASELINE])
            loglog(axes, [horizon(run) for run in lines[BASELINE][::2]])
            axes.tick_params(labelbottom=True)  # of every panel
            axes.set_xlabel("customers T")
            axes.set_ylabel(f"regret ({lines[BASELINE][0].setup.reward_unit})")
            legend_below(axes, "agent: exponent on the larger half of T")


def run(sizes: Sizes, out: Path) -> Found:
    """Regret of private pricing against T, beside proved rates. Resumes where it stopped."""
    found = answers("Private pricing", questions(sizes), out, replicas=sizes.replicas)
    frames = {"summary": found.table(), "slopes": slopes_table(slopes(found))}
    return Found(frames, figures(found, out), tables(found))


main = command("private_pricing", run, Sizes(), QUICK)

if __name__ == "__main__":
    start(main)
