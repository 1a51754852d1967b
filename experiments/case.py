"""Reference cases: problems, agents set up for them, and numbers an independent program measured.

A reference number is a mean with its standard error over replicas; ours must agree within 4
combined standard errors.

Clicks that follow a probit or a logistic model of what is shown: 20 items with 3 features each.

The experiment of Sarmasarkar, "Shuffle and joint differential privacy for generalized linear
contextual bandits", arXiv 2602.00417 (2026): items uniform in the unit ball, one parameter of known
length, the `signal`. It has 5,000 rounds for the probit link and 10,000 for the logistic.

Streams of independent users, and how good the point is that they make.

The reference program gives means alone, of 200 replicas (without privacy) or 100: standard errors
are those of our spread, with half of its last digit.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from math import inf, sqrt
from typing import Any, Literal, TypeAlias

from dpbandit.agents import AGENTS, CONTEXTUAL, STOCHASTIC
from dpbandit.base import InputError
from dpbandit.privacy import Certificate
from dpbandit.specs import AgentConfig

Settings: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A measured number, and the settings under which it was measured."""

    agent: str
    """command-line id"""
    settings: Settings
    """what was set on top of the case's own settings, of that agent or of the problem"""
    mean: float
    se: float
    horizon: int = 10_000
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A problem at its printed size; every argument of it can be set otherwise."""

    name: str
    summary: str
    environment: str
    env_kwargs: Settings
    agents: Mapping[str, Settings] = field(default_factory=dict)
    """command-line id -> its settings for this problem"""
    variants: Mapping[tuple[str, str, Any], Settings] = field(default_factory=dict)
    """(id, setting, value) -> what replaces its settings once that is set; the first one counts"""
    references: tuple[Reference, ...] = ()
    data_environment: str = ""
    """the same problem for agents that are told data in place of rewards"""
    told_data: tuple[str, ...] = ()
    """the ids of those agents"""
    measure: Literal["regret", "suboptimality"] = "regret"
    """regret after all rounds, or SubOpt of the point released after all users (see `releases`)"""
    pure_noise: bool = False
    """noise that meets its target at delta = 0 (Laplace, K-norm, local) is made for that, whatever
    delta is set: the references' delta is that of their Gaussian noise"""
    delta_per_user: bool = False
    """private agents have delta = 1 / horizon, unless it is set"""
    common: tuple[str, ...] = ()
    """settings that the problem takes, too, where the agent has them"""
    least: Callable[[Certificate, Settings], float] | None = None
    """(what is certified, arguments of the problem) -> what a private agent loses at least"""

    def __post_init__(self) -> None:
        unknown = {*self.agents, *(agent for agent, *_ in self.variants)} - set(AGENTS)
        if unknown:
            raise KeyError(f"{self.name} names unknown agents {unknown}.")

    def environment_of(self, agent: str) -> str:
        """The id of the problem that `agent` plays."""
        return self.data_environment if agent in self.told_data else self.environment

    def config(
        self,
        agent: str,
        settings: Settings,
        *,
        horizon: int = 10_000,
        rounds_an_arm: float = inf,
    ) -> AgentConfig:
        """The agent, set up for this problem, with `settings` on top.

        A warm-up of the case is at most half of `rounds_an_arm`, all rounds over all arms.
        """
        own = dict(self.agents[agent])
        for (name, key, value), variant in self.variants.items():
            if name == agent and settings.get(key) == value:
                own = dict(variant)
                break
        if "warm_up" in own:
            own["warm_up"] = max(1, int(min(own["warm_up"], rounds_an_arm / 2)))
        if self.delta_per_user and "delta" in {field.name for field in fields(AGENTS[agent])}:
            own.setdefault("delta", 1 / horizon)
        made: Any = AGENTS[agent](**{**own, **settings})
        if self.pure_noise and getattr(made, "delta", None):
            with suppress(InputError):  # Gaussian noise needs it
                made = replace(made, delta=0.0)
        config: AgentConfig = made
        return config


_TARGET = {"epsilon": 1.0, "delta": 1e-4}
_NOISE = {"reward_noise": 0.05}
_THEORY = {**_NOISE, "parameter_norm": 1.0}
_FRANK_WOLFE = {"warm_up": 120, "radius": 1.0}
_SHARING = ("private-glm", "private-glm-as-coded")
"""They play arms that share a parameter: see `generalised_linear_cases`."""
_DP_HDB = {**_TARGET, **_FRANK_WOLFE}


def _set_up(
    *, context_clip: float, moment_clip: float, lone_moment_clip: float, subset_gap: float = inf
) -> dict[str, Any]:
    """`agents` and `variants` of a case: every agent there is, by what its rows are clipped to."""
    gap = {"subset_gap": subset_gap}
    ucb = {**_TARGET, **_THEORY, "refresh_every": 50, "alpha": "theory"}
    ucb |= {"context_clip": context_clip}
    clips = {"context_clip": context_clip, "moment_clip": moment_clip}
    known: dict[str, Settings] = {
        "epsilon-greedy": {"exploration": 0.01},
        "lints": {"scale": 0.5, **_NOISE},
        "linucb": {"alpha": 1.0, **_THEORY},
        "glm-ucb": {"alpha": 0.1},
        "logistic-ts": {"scale": 0.05},
        "dp-ucb": {**ucb, "moment_weight": 0.91, "moment_clip": moment_clip},
        "shariff-sheffet-ucb": ucb,
        "ada-c-oful": {**_TARGET, **clips, "alpha": 0.0},
        "ada-private-ts": {**_TARGET, **clips, "scale": 0.02},
        "batched-elimination": {**_TARGET, **clips, "width": 0.02},
        "dp-moments": {"refresh_every": 50, "moment_clip": lone_moment_clip},
        "online-frank-wolfe": {**_FRANK_WOLFE, **gap},
        "dp-hdb": {**_DP_HDB, **gap, "gradient_clip": moment_clip},
        "dp-hdb-choices": {**_DP_HDB, **gap},
    }
    return {
        "agents": {
            name: {**_target_of(name), **known.get(name, {})}
            for name in CONTEXTUAL
            if name not in _SHARING
        },
        "variants": {
            ("shariff-sheffet-ucb", "calibration", "paper"): {**_TARGET, **_THEORY},
            ("dp-hdb-choices", "calibration", "paper"): {
                **_DP_HDB,
                **gap,
                "beyond_validity": True,
            },
        },
    }


def _target_of(agent: str) -> Settings:
    return {f.name: _TARGET[f.name] for f in fields(CONTEXTUAL[agent]) if f.name in _TARGET}


P1 = Case(
    name="contextual/p1",
    summary="sparse positive parameters, Gaussian contexts scaled to max-norm 1, two arms",
    environment="dpbandit/GLMBandit-v0",
    env_kwargs={
        "n_actions": 2,
        "dim": 50,
        "contexts": "sphere",
        "context_order": inf,
        "parameters": "sparse-ones",
        "sparsity": 5,
        "noise": 0.05,
    },
    **_set_up(context_clip=3.2, moment_clip=0.8, lone_moment_clip=0.32),
    references=(
        Reference(agent="uniform", settings={}, mean=975.6, se=8.7),
        Reference(agent="linucb", settings={}, mean=6.7, se=0.1),
        Reference(agent="linucb", settings={"alpha": "theory"}, mean=15.6, se=0.2),
        Reference(
            agent="shariff-sheffet-ucb", settings={"calibration": "paper"}, mean=971.3, se=8.6
        ),
        Reference(
            agent="dp-ucb",
            settings={"prefix_sums": "tree", "refresh_every": 1},
            mean=925.1,
            se=7.7,
            note="measured with 3.7 % less noise",
        ),
        Reference(
            agent="dp-ucb", settings={}, mean=793.5, se=6.2, note="measured with 3.7 % less noise"
        ),
        Reference(
            agent="dp-ucb",
            settings={"alpha": 0},
            mean=294.4,
            se=3.8,
            note="measured with 3.7 % less noise",
        ),
        Reference(
            agent="dp-moments",
            settings={"prefix_sums": "tree", "refresh_every": 1},
            mean=539.1,
            se=4.4,
        ),
        Reference(agent="dp-moments", settings={}, mean=214.0, se=2.8),
        Reference(agent="batch-moment", settings={"blocks": "blocks"}, mean=135.7, se=2.7),
        Reference(agent="batch-moment", settings={}, mean=118.3, se=2.5),
        Reference(
            agent="batch-moment",
            settings={"n_actions": 5},
            mean=731.0,
            se=8.0,
            note="first batch 1,000 rounds, the default",
        ),
        Reference(agent="online-frank-wolfe", settings={}, mean=57.9, se=1.4),
        Reference(agent="dp-hdb-choices", settings={"calibration": "paper"}, mean=969.4, se=19.1),
        Reference(
            agent="dp-hdb-choices",
            settings={"selection": "laplace", "profile": "inverse-sqrt", "bound": "printed"},
            mean=962.8,
            se=19.2,
        ),
        Reference(
            agent="dp-hdb-choices",
            settings={"profile": "inverse-sqrt", "bound": "printed"},
            mean=952.2,
            se=19.1,
        ),
        Reference(
            agent="dp-hdb-choices",
            settings={"profile": "inverse-sqrt"},
            mean=937.1,
            se=18.8,
        ),
        Reference(agent="dp-hdb-choices", settings={}, mean=905.2, se=18.4),
        Reference(agent="dp-hdb-choices", settings={"residual_clip": 0.6}, mean=738.7, se=15.4),
        Reference(
            agent="dp-hdb-choices",
            settings={"residual_clip": 0.3, "radius": 0.2},
            mean=562.9,
            se=11.8,
        ),
        Reference(agent="dp-hdb", settings={}, mean=411.7, se=9.5),
        Reference(
            agent="dp-hdb", settings={"gradient_clip": 0.4, "radius": 0.2}, mean=230.1, se=5.0
        ),
    ),
)

P2 = Case(
    name="contextual/p2",
    summary="sparse parameters of both signs, contexts on the corners of the cube, two arms",
    environment="dpbandit/GLMBandit-v0",
    env_kwargs={**P1.env_kwargs, "contexts": "signs", "parameters": "sparse-signs"},
    **_set_up(context_clip=sqrt(50), moment_clip=3.5, lone_moment_clip=1.4),
)

FIGURE_5_1 = Case(
    name="contextual/figure-5-1",
    summary="the paper's bandit experiment; context_order=1 scales contexts to l_1 norm 1 instead",
    environment="dpbandit/GLMBandit-v0",
    env_kwargs={**P1.env_kwargs, "parameters": "sparse-draws"},
    **_set_up(context_clip=3.2, moment_clip=0.8, lone_moment_clip=0.32, subset_gap=1.0),
    references=(
        Reference(
            agent="uniform",
            settings={},
            mean=949.0,
            se=10.9,
            note="standard deviation over problems 77, se as of 50",
        ),
        Reference(
            agent="uniform",
            settings={"context_order": 1},
            mean=58.4,
            se=0.72,
            note="standard deviation over problems 5.1, se as of 50",
        ),
    ),
)


_LONG, _SHORT = 10_000, 5_000
_AGENTS = (
    *("uniform", "greedy", "epsilon-greedy", "linucb", "lints", "glm-ucb", "logistic-ts"),
    *("dp-ucb", "shariff-sheffet-ucb", "dp-moments", "fade"),
    *("ada-c-oful", "ada-private-ts", "batched-elimination"),
)


def _measured(
    agent: str, by_epsilon: Mapping[float, tuple[float, float]], **settings: Any
) -> tuple[Reference, ...]:
    """(mean, se) of an agent at several epsilons; its case sets the horizon."""
    return tuple(
        Reference(
            agent=agent,
            settings=settings if epsilon == inf else {"epsilon": epsilon, **settings},
            mean=mean,
            se=se,
        )
        for epsilon, (mean, se) in by_epsilon.items()
    )


def _glm_case(
    name: str, link: str, signal: float, horizon: int, references: tuple[Reference, ...] = ()
) -> Case:
    return Case(
        name=f"contextual/{name}",
        summary=f"20 items with 3 features, {link} clicks, parameter of length {signal:g}",
        environment="dpbandit/GLMBandit-v0",
        env_kwargs={
            "n_actions": 20,
            "dim": 3,
            "shared": True,
            "contexts": "ball",
            "parameters": "dense",
            "link": link,
            "signal": signal,
        },
        agents={
            **{agent: {} for agent in _AGENTS},
            "private-glm": {"parameter_norm": signal},
            "private-glm-as-coded": {"parameter_norm": signal},
        },
        references=tuple(replace(reference, horizon=horizon) for reference in references),
    )


_PAPER = {"calibration": "paper"}

PR2 = _glm_case(
    "pr2",
    "probit",
    2.0,
    _SHORT,
    (
        *_measured("uniform", {inf: (2150.0, 5.0)}),
        *_measured(
            "fade", {1.0: (69.6, 6.8), 4.0: (33.2, 2.8), 8.0: (27.8, 2.6)}, coding="rewards"
        ),
        *_measured("private-glm", {1.0: (178.0, 21.0), 4.0: (55.7, 4.1), 8.0: (35.4, 2.6)}),
        *_measured("private-glm-as-coded", {4.0: (670.7, 16.6), 8.0: (438.5, 10.7)}),
        *_measured(
            "private-glm-as-coded", {4.0: (334.5, 32.9), 8.0: (288.2, 6.3)}, revision="first"
        ),
        *_measured("ada-c-oful", {1.0: (85.4, 10.8), 4.0: (35.5, 4.0), 8.0: (26.5, 2.1)}),
        *_measured(
            "ada-c-oful", {1.0: (132.0, 16.0), 4.0: (38.4, 2.8), 8.0: (27.7, 3.7)}, **_PAPER
        ),
        *_measured("ada-private-ts", {1.0: (89.8, 8.6), 4.0: (36.4, 3.8), 8.0: (28.7, 2.8)}),
        *_measured(
            "batched-elimination",
            {1.0: (307.0, 5.0), 4.0: (122.0, 3.0), 8.0: (83.7, 1.7)},
            width=0.1,  # of widths that were a tenth narrower
        ),
    ),
)
PR3 = _glm_case("pr3", "probit", 3.0, _SHORT)
LO3 = _glm_case(
    "lo3",
    "logistic",
    3.0,
    _LONG,
    (
        *_measured("uniform", {inf: (4028.0, 6.0)}),
        *_measured("fade", {1.0: (75.9, 8.1), 4.0: (35.8, 3.5)}, coding="rewards"),
        *_measured("private-glm", {1.0: (185.0, 12.0), 4.0: (69.9, 7.3)}),
        *_measured("ada-c-oful", {1.0: (104.0, 14.0), 4.0: (38.0, 3.3)}),
        *_measured("ada-c-oful", {1.0: (135.0, 14.0), 4.0: (57.5, 8.3)}, **_PAPER),
        *_measured("ada-private-ts", {1.0: (105.0, 10.0), 4.0: (39.7, 3.9)}),
        *_measured("batched-elimination", {1.0: (341.0, 6.0), 4.0: (139.0, 4.0)}, width=0.1),
    ),
)
LO4 = _glm_case("lo4", "logistic", 4.0, _LONG)

GENERALISED_LINEAR_CASES = (PR2, PR3, LO3, LO4)


_STREAM_AGENTS = (*STOCHASTIC, "dp-ftrl")
_BUT = ("uniform", "best-fixed")
"""What learns nothing, and what asks for the answer."""

_PUBLIC = {
    # (p, T): (mean, se) at d = 5, 10, 20, the best step scale
    (1.5, 1000): ((0.003, 0.00014), (0.007, 0.0005), (0.015, 0.0006)),
    (1.5, 2000): ((0.0015, 0.00008), (0.0033, 0.00011), (0.0073, 0.0002)),
    (1.5, 5000): ((0.0006, 0.00006), (0.0013, 0.00006), (0.0030, 0.00009)),
    (1.5, 10_000): ((0.0003, 0.00005), (0.0007, 0.00005), (0.0016, 0.00006)),
    (inf, 1000): ((0.0047, 0.0003), (0.011, 0.0006), (0.022, 0.0007)),
    (inf, 2000): ((0.0023, 0.0001), (0.0048, 0.00014), (0.011, 0.0006)),
    (inf, 5000): ((0.0009, 0.00007), (0.0020, 0.00009), (0.0041, 0.00012)),
}
_STEP = {1.5: 0.4, inf: 0.6}

_SHAPED = {"noise": "generalised-gaussian", "clip": "lipschitz"}
_TREE, _ROOT = {"prefix_sums": "tree"}, {"prefix_sums": "square-root"}
_NATURAL = {"clip": "lipschitz"}
_RESIDUAL = {"clip": "residual", "clip_bound": 2.0}
_CERTIFIED: Mapping[tuple[float, int, int], tuple[tuple[Any, ...], ...]] = {
    # (p, d, T): (settings, best step scale, mean, se)
    (1.5, 5, 1000): (
        (_SHAPED, 0.4, 0.776, 0.029),
        ({**_TREE, **_NATURAL}, 0.4, 0.750, 0.029),
        ({**_TREE, **_RESIDUAL}, 0.4, 0.199, 0.0084),
        ({**_ROOT, **_RESIDUAL}, 0.4, 0.070, 0.0030),
        ({**_ROOT, "clip_bound": 1.0}, 0.4, 0.023, 0.0011),
        ({**_TREE, "clip_bound": 1.0}, 0.4, 0.081, 0.0041),
    ),
    (1.5, 20, 10_000): (
        (_SHAPED, 0.4, 0.852, 0.015),
        ({**_TREE, **_NATURAL}, 0.4, 0.811, 0.012),
        ({**_TREE, **_RESIDUAL}, 1.0, 0.170, 0.0038),
        ({**_ROOT, **_RESIDUAL}, 1.0, 0.056, 0.0019),
        ({**_ROOT, "clip_bound": 1.0}, 0.4, 0.008, 0.0006),
        ({**_TREE, "clip_bound": 1.0}, 0.4, 0.052, 0.0011),
    ),
    (inf, 10, 1000): (
        ({**_TREE, **_NATURAL}, 0.4, 1.03, 0.023),
        ({**_TREE, **_RESIDUAL}, 0.4, 0.770, 0.018),
        ({**_ROOT, **_RESIDUAL}, 1.0, 0.596, 0.021),
        ({**_ROOT, "clip_bound": 0.35}, 0.4, 0.104, 0.0040),
        ({**_TREE, "clip_bound": 0.35}, 0.4, 0.289, 0.0081),
    ),
    (inf, 20, 10_000): (
        ({**_TREE, **_NATURAL}, 0.4, 0.959, 0.011),
        ({**_TREE, **_RESIDUAL}, 1.0, 0.504, 0.0081),
        ({**_ROOT, **_RESIDUAL}, 1.0, 0.236, 0.0063),
        ({**_ROOT, "clip_bound": 0.35}, 0.4, 0.015, 0.0007),
        ({**_TREE, "clip_bound": 0.35}, 1.0, 0.085, 0.0017),
    ),
}


def _references() -> Iterator[Reference]:
    for (p, T), numbers in _PUBLIC.items():
        for d, (mean, se) in zip((5, 10, 20), numbers, strict=True):
            settings = {"p": p, "dim": d, "step": _STEP[p]}
            yield Reference(
                agent="recursive-frank-wolfe", settings=settings, mean=mean, se=se, horizon=T
            )
    for (p, d, T), columns in _CERTIFIED.items():
        for settings, step, mean, se in columns:
            settings = {"p": p, "dim": d, "step": step, **settings}
            yield Reference(agent="dp-tofw", settings=settings, mean=mean, se=se, horizon=T)


LINEAR = Case(
    name="sco/linear",
    summary="a linear regression of Table 5.1, any p, d and T: SubOpt after T users",
    environment="dpbandit/StreamingRegression-v0",
    env_kwargs={"p": 1.5, "dim": 20},
    measure="suboptimality",
    delta_per_user=True,
    agents={name: {} for name in _STREAM_AGENTS if name not in _BUT},
    references=tuple(_references()),
)
