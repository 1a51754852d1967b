"""Empirical audits: a lower bound on epsilon, with a stated probability of being wrong.

    1. two neighbouring streams, many seeded runs of each             `audit_worlds`
    2. what an adversary sees of a run                                `audit_views`
    3. a score learned on training runs                               `audit_scores`
    4. a threshold chosen on further runs, evaluated once on the rest `audit_bounds`

Steps 2 to 4 follow white-box audits of differentially private learning (Nasr et al., USENIX
Security 2023) with the trade-off curve of f-DP (Dong, Roth and Su, JRSS B 2022). A proof bounds
epsilon from above, an audit from below: it can refute a certificate, never confirm it.
"""

import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from math import inf
from typing import Any, TypeAlias

import numpy as np

from dpbandit.arrays import Floats
from dpbandit.audit_bounds import Claim, Finding, epsilon_of_mu, judge
from dpbandit.audit_report import AuditReport
from dpbandit.audit_scores import Columns, Score, learned_scores, separation
from dpbandit.audit_views import VIEWS, Directions, View, columns_of, moving_directions
from dpbandit.audit_worlds import Pair, pairs
from dpbandit.evaluate import certify
from dpbandit.inputs import BadInput, inside, one_of, whole
from dpbandit.progress import Progress
from dpbandit.protocols import AgentConfig, BanditSpec, ContextualSpec
from dpbandit.streams import Seed

Sampler: TypeAlias = Callable[[int, Sequence[Seed]], Columns]
"""(world, 0 or 1; one seed a run) -> what is seen of these runs."""

_CHUNK = 500
"""Runs that are played together: memory does not depend on `runs`."""
_PILOT = 160
"""Runs of each world that choose the pair, on seeds of their own."""
_MOST_TRAINING = 5000
_STAGES = {"pilot": 1, "training": 2, "selection": 3, "evaluation": 4}


SMALL = tuple(
    ContextualSpec(n_actions=2, dim=2, horizon=24, reward_low=-1.0, reward_high=1.0, shared=shared)
    for shared in (False, True)
)
"""Where all agents are audited: small, fast, and at the bounds of every clip."""


def audit(
    config: AgentConfig,
    spec: BanditSpec,
    *,
    runs: int = 20_000,
    view: View = "released",
    seed: int = 0,
    failure: float = 0.05,
    jobs: int = 1,
    progress: bool = True,
) -> AuditReport:
    """Try to refute the certificate of `config` on `spec`.

    A pilot on seeds of its own chooses the pair of neighbouring streams, so choosing is free. A
    quarter of the runs (at most 5,000) trains the scores, the rest of the first half chooses score,
    threshold and direction, the other half is looked at once. Runs of both worlds share seeds, and
    no seed is in two parts. The differing user's own action is in neither view.

    Args:
        config: an agent; one without privacy can be audited, but has nothing to refute.
        spec: a small one will do: horizons of 20 to 60 show what longer ones would.
        runs: of each world, >= 400.
        view: "released" (white box) or "actions" (black box).
        seed: everything depends on it alone, not on `jobs`.
        failure: probability with which anything in the report may be wrong; divide it by the
            number of audits that are read together.
        jobs: processes.
        progress: show a bar once it takes longer than two seconds.

    Raises:
        BadInput: a number out of range, an agent that does not fit the spec.

    >>> from dpbandit.agents import DPUCB
    >>> from dpbandit.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=1, horizon=4)
    >>> report = audit(DPUCB(epsilon=1.0), spec, runs=400, progress=False)
    >>> report.flagged, report.eps_lower < 1
    (False, True)
    """
    whole("runs", runs, 400)
    whole("seed", seed, 0, 2**32 - 1)
    whole("jobs", jobs, 1)
    inside("failure", failure, 0, 1, ends=False)
    one_of("view", view, VIEWS)
    start = time.perf_counter()
    proof = certify(config, spec, accountants=False)
    claim = Claim.of(proof.ledger, proof.claimed_delta)
    candidates = list(pairs(spec, seed))
    with Progress(2 * (len(candidates) * _PILOT + runs), shown=progress) as bar:
        bar.working_on("choosing a pair", rate=2)
        pair, directions = _best_pair(config, spec, candidates, view, seed, bar.advance)
        sample = partial(_sample, config, spec, pair, view, directions)
        bar.working_on("playing", rate=2)
        finding = audit_views(
            sample, claim, runs=runs, seed=seed, failure=failure, jobs=jobs, advance=bar.advance
        )
    return AuditReport(
        agent=type(config).__name__,
        view=view,
        claimed_epsilon=proof.claimed_epsilon,
        certified_epsilon=claim.epsilon,
        delta=claim.delta,
        certified_mu=claim.mu,
        eps_lower=finding.eps_lower,
        eps_lower_gdp=epsilon_of_mu(finding.mu_lower, claim.delta),
        mu_lower=finding.mu_lower,
        fpr=finding.fpr,
        tpr=finding.tpr,
        above_curve=finding.above_curve,
        flagged=finding.flagged,
        breaks_claim=finding.eps_lower > proof.claimed_epsilon,
        failure=failure,
        pair=pair.note,
        score=finding.score,
        direction=finding.direction,
        runs=runs,
        seed=seed,
        seconds=time.perf_counter() - start,
        claim=claim,
    )


def audit_all(
    configs: Mapping[str, AgentConfig],
    *,
    runs: int = 20_000,
    view: View = "released",
    seed: int = 0,
    failure: float = 0.05,
    jobs: int = 1,
    progress: bool = True,
) -> dict[str, AuditReport]:
    """Audit every private agent among `configs` at a small size, on the first of `SMALL` it fits.

    `failure` is for all reports together: each gets an equal share. Agents without privacy, or
    that never look at data, have nothing to refute and are left out.
    """
    inside("failure", failure, 0, 1, ends=False)
    found = {name: spec for name, config in configs.items() if (spec := _small(config))}
    return {
        name: audit(
            configs[name],
            spec,
            runs=runs,
            view=view,
            seed=seed,
            failure=failure / len(found),
            jobs=jobs,
            progress=progress,
        )
        for name, spec in found.items()
    }


def _small(config: AgentConfig) -> BanditSpec | None:
    for spec in SMALL:
        with suppress(BadInput):
            if 0 < certify(config, spec, accountants=False).epsilon < inf:
                return spec
    return None


def audit_views(
    sample: Sampler,
    claim: Claim,
    *,
    runs: int,
    seed: int = 0,
    failure: float = 0.05,
    jobs: int = 1,
    chunk: int = _CHUNK,
    advance: Callable[[int], None] = lambda runs: None,
) -> Finding:
    """The audit of anything that can be sampled in two worlds, such as a bare mechanism.

    Args:
        sample: see `Sampler`; with `jobs` > 1 it has to be picklable.
        claim: what is tested.
        runs: of each world, >= 400.
        seed: see `audit`.
        failure: see `audit`.
        jobs: processes.
        chunk: runs asked for at once.
        advance: called with the runs that are done.
    """
    whole("runs", runs, 400)
    training = min(runs // 4, _MOST_TRAINING)
    seeds = {
        "training": _seeds(seed, "training", training),
        "selection": _seeds(seed, "selection", runs // 2 - training),
        "evaluation": _seeds(seed, "evaluation", runs - runs // 2),
    }
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) if jobs > 1 else None
    with pool or nullcontext():
        walk: Any = map if pool is None else pool.map

        def over(part: str, work: Callable[[Sequence[Seed]], Any]) -> list[Any]:
            chunks = [seeds[part][i : i + chunk] for i in range(0, len(seeds[part]), chunk)]
            done = []
            for piece, result in zip(chunks, walk(work, chunks), strict=True):
                done.append(result)
                advance(len(piece))
            return done

        trained = over("training", partial(_both, sample))
        scores = learned_scores(*(_joined([both[w] for both in trained]) for w in (0, 1)))
        del trained
        score = partial(_scored, sample, scores)
        selection, evaluation = (_together(over(p, score)) for p in ("selection", "evaluation"))
    return judge(selection, evaluation, claim, failure=failure)


def _best_pair(
    config: AgentConfig,
    spec: BanditSpec,
    candidates: Sequence[Pair],
    view: View,
    seed: int,
    advance: Callable[[int], None],
) -> tuple[Pair, Directions]:
    """The pair whose worlds the scores of a pilot tell apart best, on the pilot's other half."""
    found = []
    for pair in candidates:
        directions = moving_directions(config, spec, pair, seed)
        halves = np.split(np.array(_seeds(seed, "pilot", _PILOT)), 2)
        train, test = (
            _both(
                partial(_sample, config, spec, pair, view, directions),
                [tuple(map(int, one)) for one in half],
            )
            for half in halves
        )
        scores = learned_scores(*train).values()
        found.append((max(separation(score, *test) for score in scores), pair, directions))
        advance(_PILOT)
    _, pair, directions = max(found, key=lambda one: one[0])
    return pair, directions


def _sample(
    config: AgentConfig,
    spec: BanditSpec,
    pair: Pair,
    view: View,
    directions: Directions,
    world: int,
    seeds: Sequence[Seed],
) -> Columns:
    stream = (pair.first, pair.second)[world]
    return columns_of(config, spec, stream, pair, seeds, view, directions)


def _both(sample: Sampler, seeds: Sequence[Seed]) -> tuple[Columns, Columns]:
    one, two = sample(0, seeds), sample(1, seeds)
    if one.family != two.family:
        raise BadInput(
            "The two worlds release different numbers of values: what is released must not "
            "depend on a user."
        )
    return one, two


def _scored(
    sample: Sampler, scores: dict[str, Score], seeds: Sequence[Seed]
) -> dict[str, tuple[Floats, Floats]]:
    one, two = _both(sample, seeds)
    return {name: (score(one), score(two)) for name, score in scores.items()}


def _joined(parts: Sequence[Columns]) -> Columns:
    return parts[0]._replace(values=np.concatenate([part.values for part in parts]))


def _together(
    parts: Sequence[dict[str, tuple[Floats, Floats]]],
) -> dict[str, tuple[Floats, Floats]]:
    return {
        name: (
            np.concatenate([part[name][0] for part in parts]),
            np.concatenate([part[name][1] for part in parts]),
        )
        for name in parts[0]
    }


def _seeds(seed: int, part: str, runs: int) -> list[Seed]:
    return [(seed, _STAGES[part], run) for run in range(runs)]
