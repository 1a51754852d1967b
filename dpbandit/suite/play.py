"""Write the suite's results as one interactive page with controls for problem and epsilon.

All numbers are computed here and written into the page, which only draws them.
"""

import json
import os
from collections.abc import Iterable, Sequence
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpbandit.auditing.bounds import clopper_pearson
from dpbandit.base import InputError, Streams, short_path, write_atomically
from dpbandit.privacy.calibrated import Target, certified_sum
from dpbandit.privacy.certificate import HONESTY
from dpbandit.privacy.curves import epsilon_of, mu_of
from dpbandit.privacy.fading import certified_fading_sum, growing_batches
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.moments import ClippedVectors
from dpbandit.privacy.prefix_sums import BLT, Tree
from dpbandit.privacy.spends import Spend
from dpbandit.report.page import rendered
from dpbandit.results.runs import AgentRun, standard_error
from dpbandit.running.settings import module_of, parse_agent
from dpbandit.studies import Configuration, certificate_of
from dpbandit.suite.candidates import CLAIM_SLACK
from dpbandit.suite.catalogue import epsilons, problems, version
from dpbandit.suite.playing import Submission, finalists, frozen, read_submission
from dpbandit.suite.scoring import Ends, ends_of

DELTA = 1e-5  # of all certificates on the page
SUM_ROUNDS = 10_000
"""Horizon of the example sums whose epsilon is drawn by the age of a visit."""
FAILURE = 0.05
"""Probability that the confidence bounds of an audit do not hold."""
_AUDITS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)  # numbers of runs
_AGES = (0, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)  # of a visit, in rounds


def write_page(path: str | os.PathLike[str], cards: Iterable[str | os.PathLike[str]] = ()) -> Path:
    """Write the page, one self-contained HTML file, from the suite's shipped results.

    A slider and two lists choose epsilon, problem and agent. The page shows regret with 95 %
    intervals beside uniform play and the best agent without privacy; the certificate's trade-off
    curve, and the curve that an audit could prove with a chosen number of runs; and epsilon by the
    age of a visit, for the agent and for kinds of private sums. `cards` are folders of `run_suite`.
    Their agents and failures are added; an agent without a claim is shown at every epsilon.

    Raises:
        InputError: for a card of the full size, or one that cannot be read.
    """
    runs, submissions = [*frozen("small"), *finalists()], list[Submission]()
    for card in cards:
        submissions.append(done := read_submission(card))
        if done.size != "small":
            raise InputError(f"Expected card={short_path(card)} to be small, got {done.size}.")
    template = files("dpbandit.suite").joinpath("play.html").read_text(encoding="utf-8")
    data = json.dumps(page_facts(runs, submissions), separators=(",", ":")).replace("<", "\\u003c")
    page = rendered(
        template, runs, data=data, rounds=SUM_ROUNDS, version=version(), honesty=HONESTY
    )
    return write_atomically(Path(path), lambda p: p.write_text(page, "utf-8"))


def page_facts(runs: Sequence[AgentRun], cards: Sequence[Submission] = ()) -> dict[str, Any]:
    """Return the data of the page as plain values; of a run that occurs twice, the first counts."""
    ends = ends_of(frozen("small"))
    fpr = [0, *np.geomspace(1e-3, 0.1, 12), *np.linspace(0.15, 1, 18)]
    return {
        "epsilons": epsilons(),
        "delta": DELTA,
        "problems": [_problem(name, runs, ends[name], cards) for name in problems()],
        "fpr": _short(fpr),
        "curves": [_curve(fpr, mu_of(e, DELTA)) for e in epsilons()],
        "audits": _AUDITS,
        "proven": [[_proof(fpr, provable(e, n)) for n in _AUDITS] for e in epsilons()],
        "ages": _AGES,
        "strategies": [_by_age(e) for e in epsilons()],
    }


def _problem(
    name: str, runs: Sequence[AgentRun], ends: Ends, cards: Sequence[Submission]
) -> dict[str, Any]:
    one = problems()[name]
    by_claim = {  # reported runs come first in `runs`, and replace those of the selection
        (run.name, run.certificate.claimed_epsilon): run
        for run in reversed(runs)
        if run.setup.problem == name
    }
    rows = [_row(run, one.counted(run.certificate)) for run in by_claim.values()]
    setup = one.setup("small")
    return {
        "name": name,
        "capability": one.capability,
        "environment": setup.environment.rpartition("/")[2],
        "rounds": setup.horizon,
        "unit": setup.reward_unit,
        "runs": len(ends.best),
        "uniform": float(ends.uniform.mean()),
        "best": float(ends.best.mean()),
        "bestName": ends.name,
        "rows": [row for row in rows if 0 < row["target"] < inf] + _of_cards(name, cards),
        "raised": [
            f"{agent} {failure['told']}"
            for card in cards
            for agent, found in card.findings.items()
            for failure in found.get("raised", ())
            if failure["problem"] == name
        ],
    }


def _of_cards(name: str, cards: Sequence[Submission]) -> list[dict[str, Any]]:
    """Return the rows of the cards' agents, marked "own"; non-private ones have epsilon None."""
    rows = []
    for card in cards:
        for run in card.runs:
            if run.setup.problem != name or run.name not in card.findings:
                continue
            certified = problems()[name].counted(run.certificate)
            row = {**_row(run, certified), "own": True}
            if row["target"] == inf:
                row |= {
                    "target": None,
                    "certified": None,
                    "says": "it promises nothing that counts here",
                }
            rows.append(row)
    return rows


def _row(run: AgentRun, certified: float) -> dict[str, Any]:
    final = run.regret[-1]
    return {
        **_ages_of(run),
        "agent": run.name,
        "certified": certified,
        "says": run.certificate.ledger.brief,
        "gaussian": run.certificate.mu is not None,
        "target": min((e for e in epsilons() if 0 < certified <= e * CLAIM_SLACK), default=inf),
        "regret": round(float(final.mean()), 2),
        "se": round(float(standard_error(final)), 2),
    }


def _ages_of(run: AgentRun) -> dict[str, Any]:
    """Return {"ages": epsilons at each of `_AGES`}; empty if epsilon does not grow with age.

    Stored ledgers omit how a sum's noise is divided over its releases. So the epsilons are computed
    from the agent's newly made ledger, if that is equal to the stored one.
    """
    stated = run.certificate
    if stated.mu is None or not 0 < stated.epsilon < inf or module_of(run.name) is not None:
        return {}  # modules of others are not imported
    target: dict[str, Any] = {"epsilon": stated.claimed_epsilon, "delta": stated.claimed_delta}
    trust = problems()[run.setup.problem].trust
    if trust != "central":
        target["trust"] = trust
    proof = certificate_of(Configuration(run.setup, run.name, parse_agent(run.name, **target)))
    if proof.ledger != stated.ledger or not proof.ages():
        return {}
    return {"ages": [round(proof.by_age(age), 4) for age in _AGES]}


def provable(epsilon: float, runs: int) -> float:
    """Return the mu (GDP) that an audit with `runs` runs proves if Gaussian noise has this epsilon.

    The threshold is the best one, counts equal their means, and the Clopper-Pearson bounds hold
    together with probability 1 - `FAILURE`.
    """
    mu, cuts = mu_of(epsilon, DELTA), np.linspace(-4, 8, 400)
    low, _ = clopper_pearson(np.floor(runs * ndtr(mu - cuts)), runs, FAILURE / 2)
    _, high = clopper_pearson(np.ceil(runs * ndtr(-cuts)), runs, FAILURE / 2)
    return max(0.0, float((ndtri(low) - ndtri(high)).max()))


def _proof(fpr: Any, mu: float) -> dict[str, Any]:
    """Return the epsilon of mu-GDP at `DELTA`, and its trade-off curve at false positive rates."""
    epsilon = epsilon_of(mu, DELTA) if mu else 0.0
    return {"epsilon": round(epsilon, 4), "curve": _curve(fpr, mu)}


def _curve(fpr: Any, mu: float) -> list[float]:
    return _short(ndtr(ndtri(fpr) + mu))


def _by_age(epsilon: float) -> dict[str, list[float]]:
    """Return epsilon at each of `_AGES` of a visit, for four kinds of private sums."""
    statistic = ClippedVectors(1)
    target = Target(epsilon, DELTA, SUM_ROUNDS, 10)
    how: dict[str, Any] = {"horizon": SUM_ROUNDS, "epsilon": epsilon, "delta": DELTA}
    fading = {
        name: certified_fading_sum(
            statistic,
            Streams([0]),
            ends=growing_batches(SUM_ROUNDS, first=50, growth=0.2),
            fade=f,
            **how,
        ).spend
        for name, f in (("disjoint batches", 0.0), ("fading sums", 0.7))
    }
    prefix = {
        name: certified_sum(one, statistic, Streams([0]), target).spend
        for name, one in (("prefix sums, BLT", BLT()), ("prefix sums, tree", Tree()))
    }
    sums: dict[str, Spend] = {**fading, **prefix}
    return {name: [_aged(spend, age) for age in _AGES] for name, spend in sums.items()}


def _aged(spend: Spend, age: int) -> float:
    return round(Ledger((spend,)).within(age).epsilon(DELTA), 4)


def _short(values: Any) -> list[float]:
    return [round(float(value), 5) for value in values]
