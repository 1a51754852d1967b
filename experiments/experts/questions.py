"""What is asked: which agents are run on which problems, along which axis."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf, log
from typing import Any

from dpbandit.agents import (
    DPFTRL,
    BallExperts,
    Centre,
    FollowTheLeader,
    ShrinkingDartboard,
    SparseVectorExperts,
    Uniform,
)
from dpbandit.experiments.experts.families import PRINTED, PUBLIC, SPARSE, STEADY, Family
from dpbandit.experiments.experts.plan import Plan
from dpbandit.experiments.experts.runs import Lines, Panels, Problem, Run
from dpbandit.specs.protocols import AgentConfig

_EVERY = {**SPARSE, **STEADY, **PRINTED}
_COINS = (
    *("Algorithm 1 as printed", "Algorithm 1 as printed, delta", "Algorithm 2 as printed"),
    *("Algorithm 5, threshold 2/eta", "sparse vector"),
)
_SLOW = "noisy sums, delta"
"""R d normals a round: left out where d is 4096."""


def coins(n: int) -> Problem:
    """Expert 0 never errs, the others half of the time; all replicas meet the same coins."""
    return Problem(f"coins-{n}", "Experts", {"n_actions": n, "shared_table": True})


def growth(plan: Plan) -> Panels:
    """Regret against T at epsilon 1."""
    points = [(coins(plan.n_experts), T, 1.0) for T in plan.horizons]
    certified = _lines(plan, points, {**SPARSE, **STEADY})
    return {"certified": certified, "as printed": _lines(plan, points, _some(*_COINS))}


def sizes(plan: Plan) -> Panels:
    """Regret against d at epsilon 1."""
    points = [(coins(d), plan.sizes_horizon, 1.0) for d in plan.sizes]
    certified = {label: family for label, family in {**SPARSE, **STEADY}.items() if label != _SLOW}
    return {
        "certified": _lines(plan, points, certified),
        "as printed": _lines(plan, points, _some(*_COINS)),
    }


def prices(plan: Plan) -> Panels:
    """Regret against epsilon after the longest horizon."""
    points = [(coins(plan.n_experts), plan.horizons[-1], epsilon) for epsilon in plan.epsilons]
    asked = ("sparse vector", "sparse vector, delta", "dartboard, delta", "Algorithm 1 as printed")
    return {f"{plan.n_experts} experts": _lines(plan, points, _some(*asked))}


def counterexample(plan: Plan) -> Panels:
    """Algorithm 5 against Algorithm 1 where its potential stands still, and on coins."""
    horizons = plan.horizons[:1] + plan.horizons[2:]
    two = Problem("counterexample", "Experts", {"kind": "counterexample", "n_actions": 2})
    few = ("Algorithm 5, threshold 2/eta", "Algorithm 5, certified", "sparse vector")
    all_of_them = ("Algorithm 5 as printed", *few, "Algorithm 1 as printed")
    dumb = ("uniform play", "leader")
    return {
        title: _lines(plan, [(problem, T, epsilon) for T in horizons], _some(*labels), dumb)
        for title, problem, epsilon, labels in (
            ("losses (0, 1), epsilon 10", two, 10.0, all_of_them),
            ("losses (0, 1), epsilon 100", two, 100.0, few),
            ("coins of 16 experts, epsilon 10", coins(16), 10.0, few),
        )
    }


def switches(plan: Plan) -> Panels:
    """Lazy agents on halving, with many replicas."""
    lazy: dict[str, Family] = {
        **_some("sparse vector"),
        "lazy leader, no privacy": lambda epsilon, delta: FollowTheLeader(lazy=True),
    }
    run = partial(_run, plan, replicas=plan.audited)
    panels = {}
    for d in plan.stages:
        kwargs = {"kind": "halving", "n_actions": d, "shared_table": True}
        point = (Problem(f"halving-{d}", "Experts", kwargs), plan.users, 1.0)
        panels[f"{d} experts"] = {
            label: [run(label, family(1.0, plan.delta), *point)] for label, family in lazy.items()
        }
    return panels


def tails(plan: Plan) -> Panels:
    """Everybody on the lower bound's instance, with many replicas."""
    run = partial(_run, plan, replicas=plan.audited)
    panels = {}
    for d, epsilon in plan.tails:
        kwargs = {"kind": "lower-bound", "n_actions": d, "epsilon": epsilon}
        point = (Problem(f"tail-{d}-{epsilon:g}", "Experts", kwargs), 100, epsilon)
        lines = {label: [run(label, f(epsilon, plan.delta), *point)] for label, f in _EVERY.items()}
        lines |= {label: [run(label, config, *point)] for label, config in PUBLIC.items()}
        panels[f"{d} experts, epsilon {epsilon:g}"] = lines
    return panels


def points(plan: Plan) -> Panels:
    """DP-FTRL over T: where its bound holds, where it does not, and beside experts on a line."""
    smooth = Problem("realizable-squared", "OnlineConvex", _named("realizable-squared", 2))
    ramps = Problem("ramps-1", "OnlineConvex", {"loss": "ramp", "dim": 1, "gap": 1.0, "size": 0.3})
    run, delta = partial(_run, plan), plan.delta
    dumb: dict[str, AgentConfig] = {"uniform play": Uniform(), "centre": Centre()}

    def lines(problem: Problem, epsilon: float, agents: Mapping[str, AgentConfig]) -> Lines:
        return {
            label: [run(label, config, problem, T, epsilon) for T in plan.horizons]
            for label, config in agents.items()
        }

    false: dict[str, Sequence[Run]] = {}
    for dim in (10, 50):
        problem = Problem(f"linear-{dim}", "OnlineConvex", _named("p-lin", dim))
        label = f"DP-FTRL, printed lambda, {dim} dimensions"
        false[label] = [
            run(label, DPFTRL(tuning=_printed(T, dim, delta)), problem, T, 1.0)
            for T in plan.horizons
        ]
    false |= lines(problem, 1.0, {"centre": Centre()})
    return {
        "smooth losses, epsilon 1": lines(
            smooth,
            1.0,
            {
                "DP-FTRL, paper": DPFTRL(tuning="paper"),
                "DP-FTRL, certified": DPFTRL(tuning="certified"),
                "DP-FTRL, general": DPFTRL(tuning="general"),
                **dumb,
            },
        ),
        "1 - <x, e>, epsilon 1": false,
        "ramps on a line, epsilon 10": lines(
            ramps,
            10.0,
            {
                "points as experts": BallExperts(epsilon=10.0),
                "DP-FTRL, general": DPFTRL(epsilon=10.0, tuning="general"),
                "centre": Centre(),
            },
        ),
    }


def _named(instance: str, dim: int) -> dict[str, Any]:
    return {"instance": instance, "dim": dim}


def _printed(horizon: int, dim: int, delta: float) -> float:
    """The paper's lambda for losses that are 1/T-smooth with gradients of norm 1, epsilon 1."""
    return 32 / horizon + (dim * log(horizon) * log(1 / delta)) ** (1 / 3)


def policies(plan: Plan) -> Panels:
    """Rankers as experts, against epsilon: users who mean what they click, and whims."""
    panels = {}
    for whims in (0.0, 0.05):
        best = 0.8 * whims * plan.users  # a whim is not the best ranker's first 4 times of 5
        kwargs = {"kind": "policies", "n_actions": plan.rankers, "best_loss": whims}
        problem = Problem(f"rankers-{whims:g}", "Experts", kwargs)
        families = {
            "sparse vector": _told(SparseVectorExperts, best),
            "sparse vector, delta": _told(SparseVectorExperts, best, private=True),
            "dartboard, delta": _told(ShrinkingDartboard, best, private=True),
            **_some("sparse vector, L* unknown", "a draw a round, delta"),
        }
        points = [(problem, plan.users, epsilon) for epsilon in plan.epsilons]
        title = f"{whims:.0%} of users click at random"
        panels[title] = _lines(plan, points, families, ("uniform play", "Hedge", "leader"))
    return panels


def _some(*labels: str) -> dict[str, Family]:
    return {label: _EVERY[label] for label in labels}


def _told(kind: Any, best: float, *, private: bool = False) -> Family:
    """`kind`, told L*."""

    def family(epsilon: float, delta: float) -> AgentConfig:
        made: AgentConfig = kind(epsilon=epsilon, delta=delta if private else 0.0, best_loss=best)
        return made

    return family


def _lines(
    plan: Plan,
    points: Sequence[tuple[Problem, int, float]],
    families: Mapping[str, Family],
    public: Sequence[str] = tuple(PUBLIC),
) -> Lines:
    """The families, and some public agents, at (problem, T, epsilon)."""
    lines = {
        label: [_run(plan, label, family(at[2], plan.delta), *at) for at in points]
        for label, family in families.items()
    }
    for label in public:
        lines[label] = [
            _run(plan, label, PUBLIC[label], problem, T, inf) for problem, T, _ in points
        ]
    return lines


def _run(
    plan: Plan,
    label: str,
    config: AgentConfig,
    problem: Problem,
    horizon: int,
    epsilon: float,
    replicas: int | None = None,
) -> Run:
    return Run(
        problem=problem,
        agent=label,
        config=config,
        horizon=horizon,
        epsilon=epsilon,
        replicas=replicas or plan.replicas,
        seed=plan.seed,
    )
