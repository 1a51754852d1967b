"""What privacy costs when one of many experts never errs. See README.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, floor, log
from typing import Any, NamedTuple

from dpbandit.base import privacy_target, whole
from dpbandit.experiments.questions import Lines, Panels, agent_of, agents_in
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, setup_of
from dpbandit.studies.configurations import LastRound

WORDS = agents_in("experts")
PUBLIC = WORDS["public"]


def news(n: int, epsilon: float) -> int:
    """k = floor(ln n / epsilon) + 1, rounds after which there is no more to be gained."""
    whole("n", n, 1)
    privacy_target(epsilon, 0.0)
    return floor(log(n) / epsilon) + 1


def least_regret(n: int, epsilon: float, delta: float = 0.0, *, tail: int | None = None) -> float:
    """A lower bound of the regret of every (epsilon, delta)-DP algorithm on the tail instance.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in the
    realizable regime", ICML 2023, Theorem 5, with every round counted. After zeros come k rounds of
    losses 1 for all n experts but one, j, uniform. Then regret is at least::

        sum over m = 0..k-1 of  max(0, 1 - e^(m epsilon) / n - delta c_m),

        c_m = (e^(m epsilon) - 1) / (e^epsilon - 1),

    about (ln n - 1) / epsilon.

    *Proof.* At the (m+1)-st such round m losses separate the stream with good expert j from the one
    of zeros, on which experts are followed with probabilities q_j of sum 1. By group privacy j is
    followed with probability at most e^(m epsilon) q_j + delta c_m; the mean over j is what stands
    above. An agent that follows another one loses 1.

    Args:
        n: experts.
        epsilon, delta: what the algorithm promises for its whole output, replacing one round.
        tail: k, the rounds with news; None: floor(ln n / epsilon) + 1, beyond which terms are 0.

    >>> round(least_regret(256, 1.0), 3)
    5.085
    """
    privacy_target(epsilon, delta)
    k = news(n, epsilon) if tail is None else tail
    whole("tail", k, 0)
    most = floor(log(n) / epsilon)  # later terms are 0
    total = (1 - 1 / n) * (k > 0)
    for m in range(1, min(k - 1, most) + 1):
        grown = expm1(m * epsilon) / expm1(epsilon)
        total += max(0.0, 1 - exp(m * epsilon) / n - delta * grown)
    return total


_CERTIFIED = {**WORDS["sparse"], **WORDS["steady"]}
_EVERY = {**_CERTIFIED, **WORDS["printed"]}
_COINS = (
    *("Algorithm 1 as printed", "Algorithm 1 as printed, delta", "Algorithm 2 as printed"),
    *("Algorithm 5, threshold 2/eta", "sparse vector"),
)
_SLOW = "noisy sums, delta"
"""R d normals a round: left out where d is 4096."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of all questions."""

    horizons: tuple[int, ...] = (1_000, 3_000, 10_000, 100_000)
    """of regret against T"""
    n_experts: int = 256
    """of regret against T and epsilon"""
    sizes: Sequence[int] = (16, 64, 256, 1024, 4096)
    """of regret against d"""
    sizes_horizon: int = 10_000
    epsilons: Sequence[float] = (0.1, 1.0, 10.0)
    """of regret after the last of the horizons, and of clicks"""
    stages: Sequence[int] = (16, 256)
    """d of halving, where switches are counted"""
    users: int = 10_000
    """whose clicks choose among rankers, and rounds of halving"""
    rankers: int = 32
    tails: Sequence[tuple[int, float]] = ((16, 1.0), (256, 1.0), (256, 0.1))
    """(d, epsilon) of the lower bound"""
    audited: int = 400
    """replicas there"""
    delta: float = 1e-6
    """of agents that have one"""
    replicas: int = 40

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are standard errors
        whole("audited", self.audited, 2)
        for name in ("horizons", "sizes", "epsilons"):  # a slope needs two in the larger half
            whole(name, len(getattr(self, name)), 3)


QUICK = Sizes(
    horizons=(100, 200, 300, 400),
    n_experts=16,
    sizes=(4, 8, 16),
    sizes_horizon=200,
    epsilons=(1.0, 10.0, 100.0),
    stages=(4, 16),
    users=200,
    rankers=8,
    tails=((16, 1.0),),
    audited=40,
    replicas=3,
)


class Instance(NamedTuple):
    """An environment and its arguments."""

    name: str
    environment: str
    arguments: Mapping[str, Any]


def questions(asked: Sizes) -> tuple[dict[str, Panels], dict[str, Panels]]:
    """All of them: those of `replicas`, and those of `audited` replicas."""
    return {
        "growth": growth(asked),
        "sizes": sizes(asked),
        "prices": prices(asked),
        "counterexample": counterexample(asked),
        "points": points(asked),
        "policies": policies(asked),
    }, {"switches": switches(asked), "tails": tails(asked)}


def coins(n: int) -> Instance:
    """Expert 0 never errs, the others half of the time; all replicas meet the same coins."""
    return Instance(f"coins-{n}", "Experts", {"n_actions": n, "shared_table": True})


def growth(asked: Sizes) -> Panels:
    """Regret against T at epsilon 1."""
    points = [(coins(asked.n_experts), T, 1.0) for T in asked.horizons]
    certified = _lines(asked, points, _CERTIFIED)
    return {"certified": certified, "as printed": _lines(asked, points, _some(*_COINS))}


def sizes(asked: Sizes) -> Panels:
    """Regret against d at epsilon 1."""
    points = [(coins(d), asked.sizes_horizon, 1.0) for d in asked.sizes]
    certified = {label: words for label, words in _CERTIFIED.items() if label != _SLOW}
    return {
        "certified": _lines(asked, points, certified),
        "as printed": _lines(asked, points, _some(*_COINS)),
    }


def prices(asked: Sizes) -> Panels:
    """Regret against epsilon after the longest horizon."""
    points = [(coins(asked.n_experts), asked.horizons[-1], epsilon) for epsilon in asked.epsilons]
    some = ("sparse vector", "sparse vector, delta", "dartboard, delta", "Algorithm 1 as printed")
    return {f"{asked.n_experts} experts": _lines(asked, points, _some(*some))}


def counterexample(asked: Sizes) -> Panels:
    """Algorithm 5 against Algorithm 1 where its potential stands still, and on coins."""
    horizons = asked.horizons[:1] + asked.horizons[2:]
    two = Instance("counterexample", "Experts", {"kind": "counterexample", "n_actions": 2})
    few = ("Algorithm 5, threshold 2/eta", "Algorithm 5, certified", "sparse vector")
    all_of_them = ("Algorithm 5 as printed", *few, "Algorithm 1 as printed")
    baselines = ("uniform play", "leader")
    return {
        title: _lines(asked, [(problem, T, epsilon) for T in horizons], _some(*labels), baselines)
        for title, problem, epsilon, labels in (
            ("losses (0, 1), epsilon 10", two, 10.0, all_of_them),
            ("losses (0, 1), epsilon 100", two, 100.0, few),
            ("coins of 16 experts, epsilon 10", coins(16), 10.0, few),
        )
    }


def switches(asked: Sizes) -> Panels:
    """Lazy agents on halving, with many replicas."""
    panels = {}
    for d in asked.stages:
        kwargs = {"kind": "halving", "n_actions": d, "shared_table": True}
        point = (Instance(f"halving-{d}", "Experts", kwargs), asked.users)
        panels[f"{d} experts"] = {
            label: [_run(label, agent_of(words, epsilon=1.0), *point)]
            for label, words in WORDS["lazy"].items()
        }
    return panels


def tails(asked: Sizes) -> Panels:
    """Everybody on the lower bound's instance, with many replicas."""
    panels = {}
    for d, epsilon in asked.tails:
        kwargs = {"kind": "lower-bound", "n_actions": d, "epsilon": epsilon}
        point = (Instance(f"tail-{d}-{epsilon:g}", "Experts", kwargs), 100)
        panels[f"{d} experts, epsilon {epsilon:g}"] = {
            label: [_run(label, agent_of(words, epsilon=epsilon, delta=asked.delta), *point)]
            for label, words in {**_EVERY, **PUBLIC}.items()
        }
    return panels


def points(asked: Sizes) -> Panels:
    """DP-FTRL over T: where its bound holds, where it does not, and beside experts on a line."""
    smooth = Instance("realizable-squared", "OnlineConvex", _named("realizable-squared", 2))
    ramps = Instance("ramps-1", "OnlineConvex", {"loss": "ramp", "dim": 1, "gap": 1.0, "size": 0.3})
    printed = "dp-ftrl:tuning={strength}"

    def lines(problem: Instance, agents: Mapping[str, str]) -> Lines:
        return {
            label: [_run(label, agent_of(words), problem, T) for T in asked.horizons]
            for label, words in agents.items()
        }

    false: dict[str, Sequence[Configuration]] = {}
    for dim in (10, 50):
        problem = Instance(f"linear-{dim}", "OnlineConvex", _named("p-lin", dim))
        label = f"DP-FTRL, printed lambda, {dim} dimensions"
        false[label] = [
            _run(label, agent_of(printed, strength=_printed(T, dim, asked.delta)), problem, T)
            for T in asked.horizons
        ]
    false |= lines(problem, {"centre": "centre"})
    return {
        "smooth losses, epsilon 1": lines(smooth, WORDS["smooth"]),
        "1 - <x, e>, epsilon 1": false,
        "ramps on a line, epsilon 10": lines(ramps, WORDS["ramps"]),
    }


def _named(instance: str, dim: int) -> dict[str, Any]:
    return {"instance": instance, "dim": dim}


def _printed(horizon: int, dim: int, delta: float) -> float:
    """The paper's lambda for losses that are 1/T-smooth with gradients of norm 1, epsilon 1."""
    return 32 / horizon + (dim * log(horizon) * log(1 / delta)) ** (1 / 3)


def policies(asked: Sizes) -> Panels:
    """Rankers as experts, against epsilon: users who mean what they click, and whims."""
    panels = {}
    for whims in (0.0, 0.05):
        best = 0.8 * whims * asked.users  # a whim is not the best ranker's first 4 times of 5
        kwargs = {"kind": "policies", "n_actions": asked.rankers, "best_loss": whims}
        problem = Instance(f"rankers-{whims:g}", "Experts", kwargs)
        points = [(problem, asked.users, epsilon) for epsilon in asked.epsilons]
        title = f"{whims:.0%} of users click at random"
        public = ("uniform play", "Hedge", "leader")
        panels[title] = _lines(asked, points, WORDS["policies"], public, best=best)
    return panels


def _some(*labels: str) -> dict[str, str]:
    return {label: _EVERY[label] for label in labels}


def _lines(
    asked: Sizes,
    points: Sequence[tuple[Instance, int, float]],
    agents: Mapping[str, str],
    public: Sequence[str] = tuple(PUBLIC),
    **sizes: float,
) -> Lines:
    """The families at (problem, T, epsilon), and some public agents at (problem, T)."""
    lines = {
        label: [
            _run(label, agent_of(words, epsilon=e, delta=asked.delta, **sizes), problem, T)
            for problem, T, e in points
        ]
        for label, words in agents.items()
    }
    places = {(problem.name, T): (problem, T) for problem, T, _ in points}.values()
    return lines | {
        label: [_run(label, agent_of(PUBLIC[label]), *at) for at in places] for label in public
    }


def _run(label: str, config: AgentConfig, problem: Instance, horizon: int) -> LastRound:
    name, environment, arguments = problem
    setup = setup_of(environment, arguments, horizon=horizon, label=name)
    return LastRound(setup, label, config)
