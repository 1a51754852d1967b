"""Streams of independent users, and how good the point is that they make.

The reference program gives means alone, of 200 replicas (without privacy) or 100: standard errors
are those of our spread, with half of its last digit.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from dpbandit.agents import STOCHASTIC
from dpbandit.experiments.case import Case, Reference

_AGENTS = (*STOCHASTIC, "dp-ftrl")
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
    agents={name: {} for name in _AGENTS if name not in _BUT},
    references=tuple(_references()),
)
