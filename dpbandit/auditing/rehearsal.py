"""Audits of a suspected fault: what to look for is decided before the mechanism is run at all.

A fault that can be named can be played: `rehearsal` samples the mechanism with that fault. It
chooses score, threshold and direction, on as many runs as one likes, and every run of the mechanism
itself is evaluated. A wrong suspicion costs power, never honesty.
"""

from collections.abc import Mapping

import numpy as np

from dpbandit.auditing.audit import Sampler
from dpbandit.auditing.bounds import Claim, Finding, judge
from dpbandit.auditing.scores import Scorer
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import MOST_RUNS, inside, whole
from dpbandit.base.random_streams import Seed

_REHEARSED, _PLAYED = 5, 6
"""Stages of seeds that no other audit uses."""


def audit_rehearsed(
    sample: Sampler,
    rehearsal: Sampler,
    claim: Claim,
    *,
    scores: Mapping[str, Scorer],
    runs: int,
    rehearsals: int = 200_000,
    seed: int = 0,
    failure: float = 0.05,
    chunk: int = 500,
) -> Finding:
    """Hold `claim` against `sample`, with a threshold that `rehearsal` chooses.

    Args:
        sample: the mechanism in world 0 or 1, see `auditing.Sampler`.
        rehearsal: the mechanism as it is suspected to be; its runs share no seed with `sample`.
        claim: what is tested.
        scores: known ones, such as the ratios of `ratios`.
        runs: of `sample`, in each world, all evaluated, >= 400.
        rehearsals: of `rehearsal`, in each world. About ten times `runs` will do.
        seed: everything depends on it alone.
        failure: probability that anything in the finding is wrong.
        chunk: runs asked for at once.
    """
    whole("runs", runs, 400, MOST_RUNS)
    whole("rehearsals", rehearsals, 400, MOST_RUNS)
    inside("failure", failure, 0, 1, ends=False)
    choosing = _scored(rehearsal, scores, seed, _REHEARSED, rehearsals, chunk)
    played = _scored(sample, scores, seed, _PLAYED, runs, chunk)
    return judge(choosing, played, claim, failure=failure)


def _scored(
    sample: Sampler, scores: Mapping[str, Scorer], seed: int, stage: int, runs: int, chunk: int
) -> dict[str, tuple[Floats, Floats]]:
    """name -> (values in world 0, in world 1)."""
    parts: dict[str, tuple[list[Floats], list[Floats]]] = {name: ([], []) for name in scores}
    for start in range(0, runs, chunk):
        seeds: list[Seed] = [(seed, stage, run) for run in range(start, min(start + chunk, runs))]
        for world in (0, 1):
            columns = sample(world, seeds)
            for name, score in scores.items():
                parts[name][world].append(score(columns))
    return {name: (np.concatenate(a), np.concatenate(b)) for name, (a, b) in parts.items()}
