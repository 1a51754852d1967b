"""Empirical audits: a lower bound on epsilon, with a stated probability of being wrong.

Steps of an audit, each with its module::

    1. choose two neighbouring streams, play many seeded runs on each `users`
    2. record what an adversary sees of each run                      `views`
    3. learn a score on training runs                                 `views`
    4. choose a threshold on further runs, evaluate it once on others `bounds`
       or bet on one pair of runs after the other                     `sequential`

Steps 2 to 4 follow white-box audits of differentially private learning (Nasr et al., USENIX
Security 2023) with the trade-off curve of f-DP (Dong, Roth and Su, JRSS B 2022). A proof bounds
epsilon from above; an audit bounds it from below, so it can refute a certificate, never confirm it.
"""

import itertools
import multiprocessing
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dpbandit.auditing.bounds import Claim, Finding, epsilon_of_mu, judge
from dpbandit.auditing.users import Pair, Users, users_of
from dpbandit.auditing.views import (
    VIEWS,
    Columns,
    Ends,
    Scorer,
    View,
    all_see_actions,
    columns_of,
    halves,
    joined,
    learned_scores,
    public_ends,
    rounds,
    separation,
)
from dpbandit.auditing.witness import Witness
from dpbandit.base import (
    MOST_JOBS,
    MOST_RUNS,
    Floats,
    InputError,
    Progress,
    Seed,
    Streams,
    check_guarded,
    check_picklable,
    html_lines,
    inside,
    one_of,
    rounded,
    whole,
    write_atomically,
)
from dpbandit.privacy import Ledger
from dpbandit.running.compare import certify, check_played
from dpbandit.running.resolve import AnyAgent, AnyProblem, resolve_agent, resolve_spec
from dpbandit.shelf import from_shelf
from dpbandit.specs import AgentConfig, Spec, made_agent

_SEARCH_RUNS = 16  # number of runs with each candidate as the first user


def pairs(config: AgentConfig, spec: Spec, seed: int) -> list[Pair]:
    """Return pairs of neighbouring streams: extreme ones, and those of `most_moving_pairs`."""
    users = users_of(spec)
    extreme = list(users.extreme_pairs(np.random.default_rng((seed, 7))))
    return extreme + list(most_moving_pairs(config, spec, users, seed))


def most_moving_pairs(config: AgentConfig, spec: Spec, users: Users, seed: int) -> list[Pair]:
    """Find for each mechanism two users of round 1 whose contributions to its input differ most::

        1. every candidate c is the first user of a few runs r; the agent acts and learns
        2. q_cr is the contribution of c to the mechanism's input in run r, given her action there
        3. c and c' maximise |mean_r (q_cr - q_c'r)|; if actions are released, mean_r |q_cr - q_c'r|

    The search reads inputs of mechanisms, not releases, and takes no runs from the audit.
    """
    found = users.candidates(np.random.default_rng((seed, 8)))
    one, *_ = found
    worlds = [users.neighbours(0, one, other, "").second for other in found]
    seeds: list[Seed] = [(seed, 0, run) for run in range(_SEARCH_RUNS)]
    witness = Witness()
    with closing(rounds(config, spec, worlds, (0,), seeds, witness)) as play:
        for event, *_ in play:
            if event == "after":
                break
    pairs = []
    for place, known in enumerate(witness.sums):
        if known.contribution is None:
            continue
        contribution = known.contribution.reshape(len(found), _SEARCH_RUNS, -1)
        moves = _distances(contribution, action_released=all_see_actions(spec))
        i, j = np.unravel_index(int(moves.argmax()), moves.shape)
        if moves[i, j] > 0:
            note = f"round 1, what moves mechanism {place + 1} most: "
            note += f"from {found[i].note} to {found[j].note}"
            pairs.append(users.neighbours(0, found[i], found[j], note))
    return pairs


def _distances(queries: Floats, *, action_released: bool) -> Floats:
    """Return the L2 distances (C, C) between the queries (C, R, n) of C candidates in R runs."""
    if not action_released:  # an adversary knows her query only on average over her actions
        queries = queries.mean(axis=1, keepdims=True)
    return np.array([np.linalg.norm(queries - one, axis=2).mean(axis=1) for one in queries])


_CLAIM_TOLERANCE = 1e-6
"""Share of the claimed epsilon by which a certificate, rounded up, may exceed the claim."""


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditReport:
    """Report of an audit: what `runs` runs on each of two neighbouring data sets prove.

    `eps_lower` and, if GDP is claimed, `mu_lower` are lower bounds of epsilon at `delta` and of mu.
    `eps_lower_gdp` is the epsilon that Gaussian noise of mu = `mu_lower` has at `delta`; other
    noise may have less. The agent's true trade-off curve passes at or above the point (`fpr`,
    `tpr`), an upper bound of the false and a lower bound of the true positive rate of the
    adversary's test; `above_curve` is True if the certificate's curve passes below the point. All
    statements together are wrong with probability at most `failure`.
    """

    agent: str
    config: str
    problem: str
    view: View
    claimed_epsilon: float
    certified_epsilon: float
    restricted: str
    """restrictions of the certificate in words, see `Ledger.brief`"""
    delta: float
    certified_mu: float | None
    eps_lower: float
    eps_lower_gdp: float | None
    mu_lower: float | None
    fpr: float
    tpr: float
    above_curve: bool
    flagged: bool
    """True if the certificate is refuted"""
    breaks_claim: bool
    """True if the claimed epsilon is refuted, whether or not the certificate is"""
    failure: float
    pair: str
    score: str
    direction: str
    runs: int
    seed: int
    seconds: float
    claim: Claim
    """the certificate that was tested, with its trade-off curve"""
    until_known: bool = False
    """True if the audit could stop early, as soon as the certificate was refuted"""

    @property
    def verdict(self) -> str:
        """Verdict in a few words, the worst finding first.

        "over-noised" means that the certified epsilon is below half of the claimed epsilon.
        "certificate exceeds claim" follows from accounting alone, "CLAIM BROKEN" from runs.
        """
        if self.claimed_epsilon == inf:
            return "nothing is claimed"
        found = []
        if self.flagged:
            found.append("FLAGGED: certificate refuted")
        if self.breaks_claim:
            found.append("CLAIM BROKEN by measurement")
        elif self.certified_epsilon > self.claimed_epsilon * (1 + _CLAIM_TOLERANCE):
            found.append("certificate exceeds claim")
        elif self.certified_epsilon < self.claimed_epsilon / 2:
            found.append("over-noised")
        return ", ".join(found or ["not refuted"])

    def proven(self, fpr: Floats) -> Floats:
        """Return the proven lower bound of the agent's trade-off curve: TPR at `fpr`, elementwise.

        If GDP is claimed, the bound is the curve of `mu_lower`. Otherwise it is the polygon through
        (0, 0), the report's (`fpr`, `tpr`), its mirror image (1 - `tpr`, 1 - `fpr`) and (1, 1).
        """
        if self.mu_lower is not None:
            return Claim(self.eps_lower, self.delta, self.mu_lower).highest(fpr)
        if self.tpr <= self.fpr:
            return fpr
        # true curves are concave, and symmetric because neighbours are
        point, mirrored = (self.fpr, self.tpr), (1 - self.tpr, 1 - self.fpr)
        x, y = np.array(sorted([(0.0, 0.0), point, mirrored, (1.0, 1.0)])).T
        return np.asarray(np.interp(fpr, x, y))

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the verdict as plain values, ready for JSON."""
        return asdict(self) | {"verdict": self.verdict}

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_lines(str(self))

    def __str__(self) -> str:
        gdp = ""
        if self.mu_lower is not None:
            gdp = f", mu >= {self.mu_lower:.3f} (certified {self.certified_mu:.3f})"
        if self.eps_lower_gdp is not None:
            gdp += f", as Gaussian noise epsilon >= {self.eps_lower_gdp:.3f}"
        point = [f"point       TPR >= {self.tpr:.4f} at FPR <= {self.fpr:.4f}"]
        point = [] if self.until_known else point
        at = f"at delta {rounded(self.delta, 6)}"
        return "\n".join(
            [
                f"claimed     epsilon {rounded(self.claimed_epsilon, 6)} {at}",
                f"certified   epsilon {rounded(self.certified_epsilon, 6)}"
                + (f" ({self.restricted})" if self.restricted else ""),
                f"measured    epsilon >= {self.eps_lower:.3f}{gdp}",
                *point,
                f"verdict     {self.verdict}",
                f"pair        {self.pair}; score: {self.score}, {self.direction}",
                f"runs        {self.runs:,} of each world, view {self.view}; anything here is "
                f"wrong with probability <= {rounded(self.failure, 6)}; {self.seconds:.1f} s",
            ]
        )


SUFFIXES = (".png", ".svg", ".pdf")
"""File suffixes of the pictures that `plot_audit` writes."""


def plot_audit(report: AuditReport, path: Path, *, title: str) -> Path:
    """Plot the trade-off curves of the certificate and of `proven`, with the measured point."""
    one_of("suffix of the plot", path.suffix, SUFFIXES)
    if report.until_known:
        raise InputError(
            "Expected an audit with a fixed number of runs to plot, which has a point."
        )
    from dpbandit.results.plots import tradeoff

    what = f"epsilon below {report.eps_lower:.3f}, curves below this"
    if report.mu_lower is not None:
        what = f"GDP below {report.mu_lower:.3f}"
    return write_atomically(
        path,
        lambda p: tradeoff(
            p,
            report.claim.highest,
            report.proven,
            (report.fpr, report.tpr),
            title=title,
            certified=f"certified: epsilon {rounded(report.certified_epsilon)}, "
            f"delta {rounded(report.delta, 6)}",
            measured=f"ruled out: {what}",
        ),
    )


Sampler: TypeAlias = Callable[[int, Sequence[Seed]], Columns]
"""Function of 0 or 1 (two neighbouring data sets) and of seeds; returns a run's view per seed."""
TwinSampler: TypeAlias = Callable[[Sequence[Seed]], tuple[Columns, Columns]]
"""Function that plays a run on both data sets for each seed, and returns both views."""

_CHUNK_RUNS = 500
"""Number of runs played together; their views are discarded once they are scored."""
_DEFAULT_HORIZON = 40
"""Number of rounds if an environment, not a spec, is audited and `horizon` is not given."""
_MAX_PILOT_RUNS = 160
"""Largest number of pilot runs on each stream, which choose the pair; at most `runs` / 10."""
_MAX_TRAINING_RUNS = 5000  # largest number of runs that train scores; at most `runs` / 4
_STAGES = {"pilot": 1, "training": 2, "selection": 3, "evaluation": 4, "bets": 7}  # seed numbers


def audit(
    config: AnyAgent,
    spec: Spec | AnyProblem,
    *,
    horizon: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    runs: int = 20_000,
    view: View = "released",
    seed: int = 0,
    failure: float = 0.05,
    jobs: int = 1,
    until_known: bool = False,
    progress: bool = True,
) -> AuditReport:
    """Try to refute the certificate of `config` on `spec` by running it many times.

    The audit plays the agent on two neighbouring streams, which differ in one user, and tests how
    well an adversary can tell the runs apart. A pilot with its own seeds chooses the two streams. A
    quarter of the runs (at most 5,000) trains scores to be high on the second stream; the rest of
    the first half chooses a score, a threshold and a direction; the other half is used once, for
    the result. Both streams are played with the same seeds, and no seed serves two of these
    purposes. The adversary does not see the differing user's own action.

    Args:
        config: an agent's config, or its id with settings. An agent without privacy can be audited,
            but has no certificate to refute.
        spec: public facts of a problem, such as bounds, or an environment as `compare` takes it.
            Small problems suffice: horizons of 20 to 60 show as much as longer ones.
        horizon: number of rounds of an environment that is not a spec; 40 by default. If people
            return, at most `horizon` + 1 of them take part.
        env_kwargs: further arguments of the environment.
        runs: number of runs on each stream, >= 400.
        view: what the adversary sees, "released" (white box) or "actions" (black box).
        seed: random seed; the result depends on it alone, not on `jobs`.
        failure: largest probability that anything in the report is wrong; divide it by the number
            of audits that are read together.
        jobs: number of processes.
        until_known: bet on pairs of runs, one after the other, and stop when the certificate is
            refuted, after `runs` pairs at the latest; see `dpbandit.auditing.sequential`. The
            report is valid whenever the audit stops, but has no point (FPR, TPR).
        progress: show a progress bar after two seconds.

    Raises:
        InputError: a number out of range, an agent that does not fit the spec, or one whose privacy
            expires before the horizon.

    >>> from dpbandit.agents import DPUCB
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=1, horizon=4)
    >>> report = audit(DPUCB(epsilon=1.0), spec, runs=400, progress=False)
    >>> report.flagged, report.eps_lower < 1
    (False, True)
    """
    whole("runs", runs, 400, MOST_RUNS)
    whole("seed", seed, 0, 2**32 - 1)
    whole("jobs", jobs, 1, MOST_JOBS)
    inside("failure", failure, 0, 1, ends=False)
    one_of("view", view, VIEWS)
    config = resolve_agent(config)
    original, spec = (
        spec,
        resolve_spec(spec, horizon=horizon, short=_DEFAULT_HORIZON, env_kwargs=env_kwargs),
    )
    spec = spec if spec is original else spec.with_few_people()
    start, name = time.perf_counter(), type(config).__name__
    if jobs > 1:
        check_picklable(f"agent {name}", config, f"jobs={jobs}", dumps=pickle.dumps)
        check_guarded(f"audit with jobs={jobs}")
    proof = certify(config, spec, accountants=False)
    replicas = 2 * min(runs, _CHUNK_RUNS)
    probe = made_agent(config, spec, Streams(range(replicas)))
    check_played(name, proof, probe.ledger.on(spec), replicas)
    _check_promise(proof.ledger)
    claim = Claim.of(proof.ledger, proof.claimed_delta)
    candidates = pairs(config, spec, seed)
    pilot = _seeds(seed, "pilot", min(_MAX_PILOT_RUNS, runs // 10))
    with Progress(2 * (len(candidates) * len(pilot) + runs), visible=progress) as bar:
        bar.working_on(f"{name}: choosing", rate=2)
        pair, ends = _best_pair(config, spec, candidates, view, pilot, seed, bar.advance)
        sample = partial(columns_of, config, spec, pair, view=view, ends=ends)
        bar.working_on(f"{name}: playing", rate=2)
        how: dict[str, Any] = {"seed": seed, "jobs": jobs, "advance": bar.advance}
        if until_known:
            finding, runs = _bet(sample, claim, runs=runs, failure=failure, **how)
        else:
            finding = _judge_runs(sample, claim, runs=runs, failure=failure, **how)
    return AuditReport(
        agent=name,
        config=repr(config),
        problem=repr(spec),
        view=view,
        claimed_epsilon=proof.claimed_epsilon,
        certified_epsilon=claim.epsilon,
        restricted=proof.ledger.brief,
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
        until_known=until_known,
        seed=seed,
        seconds=time.perf_counter() - start,
        claim=claim,
    )


def _check_promise(ledger: Ledger) -> None:
    """Raise `InputError` for a guarantee that expires, or that does not cover contexts."""
    window = ledger.notion.window
    if window is not None:
        raise InputError(
            f"Expected a promise for ever, got one for the last {window} rounds only: "
            "what is released after a user expired may reveal them completely, and would seem to "
            "refute it. Choose a window of the horizon or more."
        )
    if ledger.notion.contexts == "public":
        raise InputError(
            "Expected a promise that covers contexts, in which two worlds differ, got one for a "
            "user's answers alone. Choose a certified calibration."
        )


def audit_views(
    sample: Sampler,
    claim: Claim,
    *,
    runs: int,
    seed: int = 0,
    chunk: int = _CHUNK_RUNS,
    scores: Mapping[str, Scorer] | None = None,
) -> Finding:
    """Audit anything that can be sampled on two neighbouring data sets, such as a mechanism.

    Args:
        sample: function that plays runs, see `Sampler`.
        claim: the claim to be tested.
        runs: number of runs on each data set, >= 400.
        seed: see `audit`.
        chunk: number of runs in one call of `sample`.
        scores: known scores, such as those of `exact`, in place of learned ones. Then a quarter of
            the runs chooses the score and the threshold, and three quarters evaluate them.
    """
    return _judge_runs(
        partial(_sample_worlds, sample),
        claim,
        runs=runs,
        seed=seed,
        chunk=chunk,
        scores=scores,
    )


def _judge_runs(
    sample: TwinSampler,
    claim: Claim,
    *,
    runs: int,
    seed: int,
    failure: float = 0.05,
    jobs: int = 1,
    advance: Callable[[int], None] = lambda runs: None,
    chunk: int = _CHUNK_RUNS,
    scores: Mapping[str, Scorer] | None = None,
) -> Finding:
    """Learn scores, choose a threshold and evaluate a claim, each step on runs of its own."""
    whole("runs", runs, 400, MOST_RUNS)
    training = 0 if scores else min(runs // 4, _MAX_TRAINING_RUNS)
    first = runs // 4 if scores else runs // 2
    seeds = {
        "training": _seeds(seed, "training", training),
        "selection": _seeds(seed, "selection", first - training),
        "evaluation": _seeds(seed, "evaluation", runs - first),
    }
    with _processes(jobs) as walk:

        def over(part: str, work: Callable[[Sequence[Seed]], Any]) -> list[Any]:
            chunks = [seeds[part][i : i + chunk] for i in range(0, len(seeds[part]), chunk)]
            done = []
            for piece, result in zip(chunks, walk(work, chunks), strict=True):
                done.append(result)
                advance(len(piece))
            return done

        if not scores:
            trained = over("training", sample)
            scores = learned_scores(*map(joined, zip(*trained, strict=True)))
            del trained
        score = partial(_scored, sample, scores)
        selection, evaluation = (_concatenated(over(p, score)) for p in ("selection", "evaluation"))
    return judge(selection, evaluation, claim, failure=failure)


def _bet(
    sample: TwinSampler,
    claim: Claim,
    *,
    runs: int,
    seed: int,
    failure: float,
    jobs: int,
    advance: Callable[[int], None],
) -> tuple[Finding, int]:
    """Bet on blocks of runs until the claim is refuted; return the finding and number of runs."""
    seeds = _seeds(seed, "bets", runs)
    with _processes(jobs) as walk:

        def play(block: range) -> tuple[Columns, Columns]:
            ends = [*block[::_CHUNK_RUNS], block.stop]
            pieces = [seeds[i:j] for i, j in itertools.pairwise(ends)]
            done = list(walk(sample, pieces))
            advance(len(block))
            one, two = map(joined, zip(*done, strict=True))
            return one, two

        stop = from_shelf("auditing", "bet_until_known", "until_known=True")
        return stop(play, claim, runs=runs, failure=failure)


@contextmanager
def _processes(jobs: int) -> Iterator[Any]:
    """Yield a function like `map` that spreads its work over `jobs` processes."""
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) if jobs > 1 else None
    with pool or nullcontext():
        yield map if pool is None else pool.map


def _best_pair(
    config: AgentConfig,
    spec: Spec,
    candidates: Sequence[Pair],
    view: View,
    pilot: Sequence[Seed],
    seed: int,
    advance: Callable[[int], None],
) -> tuple[Pair, Ends]:
    """Return the pair of streams separated best by learned scores, and its users' `public_ends`."""
    found = []
    for pair in candidates:
        ends = public_ends(config, spec, pair, seed) if view == "released" else []
        worlds = columns_of(config, spec, pair, pilot, view, ends)
        train, test = zip(*map(halves, worlds), strict=True)
        scores = learned_scores(*train).values()
        found.append((max(separation(score, *test) for score in scores), pair, ends))
        advance(len(pilot))
    _, pair, ends = max(found, key=lambda one: one[0])
    return pair, ends


def _sample_worlds(sample: Sampler, seeds: Sequence[Seed]) -> tuple[Columns, Columns]:
    one, two = sample(0, seeds), sample(1, seeds)
    if one.family != two.family:
        raise InputError(
            "The two worlds release different numbers of values: what is released must not "
            "depend on a user."
        )
    return one, two


def _scored(
    sample: TwinSampler, scores: Mapping[str, Scorer], seeds: Sequence[Seed]
) -> dict[str, tuple[Floats, Floats]]:
    one, two = sample(seeds)
    return {name: (score(one), score(two)) for name, score in scores.items()}


def _concatenated(
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
