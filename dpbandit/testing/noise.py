"""Checks that noise is as large as the ledger says; clipping of the data of each mechanism."""

from collections.abc import Iterator
from functools import singledispatch
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dpbandit.agents.contextual.private_glm import NewtonRefits
from dpbandit.agents.convex.descent import NoisyDescent
from dpbandit.agents.experts.trees_and_potentials import PotentialDraws
from dpbandit.base import Floats, clip_norm, clip_range
from dpbandit.privacy import (
    BLT,
    FadingSum,
    KNorm,
    Laplace,
    Ledger,
    LocalValues,
    OneShotTopK,
    PrefixSum,
    PureSpend,
    SegmentAboveThreshold,
)
from dpbandit.privacy.batches import CountedSums, RestartingTrees
from dpbandit.privacy.factors import Staggered
from dpbandit.privacy.fading import column_norm
from dpbandit.privacy.prefix_sums import Padded
from dpbandit.privacy.pure import KNormSpend, LaplaceSpend
from dpbandit.privacy.sparse_vector import RedrawBit
from dpbandit.privacy.wishart import WishartSpend
from dpbandit.specs import AgentConfig, Spec
from dpbandit.testing.tapes import Tape, expect, extreme_users, run

HEAVY = (LaplaceSpend, KNormSpend, PureSpend)
"""Classes of spends (privacy costs) of noise with heavier tails than a normal law."""


def first_stddev(sums: Any) -> float:
    """Return the standard deviation of a sum's first noise, by its privacy cost, in its units."""
    spend, S = getattr(sums.spend, "part", sums.spend), sums.sensitivity
    if hasattr(sums, "honest"):  # noise of every device
        return float(S * getattr(sums, "person_norm", 1.0) / spend.mu / sums.honest**0.5)
    if isinstance(sums, FadingSum):
        return float(S * column_norm(len(sums._ends), sums.fade) / spend.mu)
    (nodes, drawn), moved = nodes_of(sums), 1.0
    if isinstance(sums, PrefixSum) and isinstance(spend, HEAVY):
        noise: Any = sums._noise
        moved, nodes = noise.noises(sums.leaves)
    paid = getattr(spend, "count", getattr(spend, "nodes", nodes))
    expect(paid == nodes, f"Expected {spend.note!r} to pay for {nodes} nodes, got {paid}.")
    alone = getattr(spend, "dim", 1)
    k = prod(sums._statistic.shape) if isinstance(sums, PrefixSum) else alone
    if hasattr(spend, "law"):
        return float((drawn * spend.law(S).variance(spend.dim)) ** 0.5)
    if isinstance(spend, HEAVY):
        l1 = getattr(getattr(sums, "_statistic", None), "l1_sensitivity", S * k**0.5)
        law = Laplace(l1 / S) if isinstance(spend, LaplaceSpend) else KNorm(1.0)
        return S * (moved * nodes / spend.pure) * (drawn * law.variance(k)) ** 0.5
    if isinstance(spend, WishartSpend):
        rows = sums._statistic
        L2 = rows.context_bound**2 + rows.reward_bound**2
        return (2 * spend.degrees) ** 0.5 * L2 / rows.context_bound**2
    return S * (drawn * nodes) ** 0.5 / spend.mu


def nodes_of(sums: Any) -> tuple[float, int]:
    """Return the squared norm of a user's factor column, and the noise draws per first release."""
    if not isinstance(sums, PrefixSum):
        return 1, 1
    noise: Any = sums._noise
    leaves = sums.leaves
    if isinstance(noise, Staggered):
        others = sums._statistic.shape[0] - 1
        return BLT().column_norm(leaves - others * noise.turns) ** 2, 1
    norm = noise.column_norm(leaves) ** 2
    nodes = round(norm) if isinstance(norm, float) and abs(norm - round(norm)) < 1e-9 else norm
    return nodes, nodes if isinstance(noise, Padded) else 1


@singledispatch
def admitted(mechanism: Any, *datum: Any) -> tuple[Any, ...]:
    """Return the datum of a mechanism's call, clipped to bounds; NaN becomes a public constant.

    For a mechanism of yours that releases no sum, define a method `admissible(*datum)`, or register
    a function like this one by the decorator `admitted.register`.
    """
    name = type(mechanism).__name__
    if hasattr(mechanism, "admissible"):
        return mechanism.admissible(*datum)
    expect(
        mechanism.releases_sum,
        f"Expected admitted.register, or a method `admissible`, to clip the datum of a {name}.",
    )
    return datum  # a sum depends on its query alone, which `noises` subtracts


@admitted.register(NoisyDescent)
def _(mechanism: Any, z: Any, *public: Any) -> tuple[Any, ...]:
    return mechanism._loss.admissible(z), *public


@admitted.register(OneShotTopK)
@admitted.register(PotentialDraws)
@admitted.register(RestartingTrees)
@admitted.register(SegmentAboveThreshold)
@admitted.register(RedrawBit)
def _(mechanism: Any, losses: Any, *public: Any) -> tuple[Any, ...]:
    return clip_range(losses, 0.0, 1.0), *public


@admitted.register
def _(mechanism: CountedSums, value: Any, cell: Any, at_release: Any) -> tuple[Any, ...]:
    shares = mechanism._shares
    return clip_range(value, shares.low, shares.high), cell, at_release


@admitted.register
def _(mechanism: NewtonRefits, x: Any, y: Any, *public: Any) -> tuple[Any, ...]:
    return clip_norm(x, 1.0), clip_range(y, 0.0, 1.0), *public


def noises(tape: Tape) -> list[Floats]:
    """Return the noise of each release of a sum, the release minus all queries, in the sum's units.

    After a release a fading sum keeps its total times `fade`, a running sum keeps its total, a sum
    of locally noised values keeps nothing. Releases of mechanisms that are no sums are left out.
    """
    found: list[Floats] = []
    totals: dict[int, Any] = {}
    for query, mechanism, release in zip(tape.queries, tape.mechanisms, tape.releases, strict=True):
        total = totals.get(id(mechanism), 0.0) + query
        if release is not None and mechanism.releases_sum:
            units = getattr(getattr(mechanism, "_statistic", None), "units", 1.0)
            found.append(release / units - total)
            keeps = 0.0 if isinstance(mechanism, LocalValues) else 1.0
            total = total * getattr(mechanism, "fade", keeps)
        totals[id(mechanism)] = total
    return found


def check_noise_knows_no_data(config: AgentConfig, spec: Spec) -> int:
    """Check that noise does not depend on data; return the number of releases compared.

    Two runs with equal seeds and different users must have the same noise, releases minus all
    queries. In no release may noise be below a hundredth of the first release's noise.
    """
    with np.errstate(all="ignore"):
        tapes = [run(config, spec, extreme_users(spec, 4, seed), remember=False) for seed in (1, 2)]
        one, two = map(noises, tapes)
    expect(one, f"Expected {type(config).__name__} to release a sum in {spec.horizon} rounds.")
    expect(len(one) == len(two), "Expected users not to decide how many releases there are.")
    for a, b in zip(one, two, strict=True):
        expect(
            np.allclose(a, b, rtol=0, atol=1e-8 * max(1.0, float(np.abs(a).max()))),
            "Expected each release to be the sum of all queries and of noise that knows no data.",
        )
    for sums, _, added in releases_of_sums(tapes[0]).values():
        sizes = [float(np.sqrt(np.square(noise).mean())) for noise in added]
        expect(
            min(sizes) > 0.01 * sizes[0],
            f"Expected noise of {sums.spend.note!r} to last, got {min(sizes):.2g} in a release, "
            f"{sizes[0]:.2g} in the first.",
        )
    return len(one)


_MAX_COMPARED_COORDINATES = 500
"""Largest number of coordinates whose noises are compared in pairs, spread evenly over all of them;
time grows with its square."""


class Drawn(NamedTuple):
    """Noise of one sum, in two of its releases."""

    sums: Any
    first: Floats
    """noise of release 1, (R, rows, ..), >= 6,000 numbers, without rows that begin later"""
    last: Floats
    """noise of a later release, of the rows that have begun by then, (R, coordinates)"""


def drawn_by(config: AgentConfig, spec: Spec) -> list[Drawn]:
    """Draw the noise of all noisy sums of an agent; sums of equal size are drawn in one run."""
    with np.errstate(all="ignore"):
        alone = run(config, spec, extreme_users(spec, 1, seed=7), remember=False)
        calls = releases_of_sums(alone)
        needed: dict[int, dict[int, int]] = {}
        for place, (sums, (first, *_), (noise, *_)) in enumerate(calls.values()):
            users = next(n for n, made in enumerate(alone.marks) if made > first)
            if isinstance(process := getattr(sums, "_noise", None), Staggered):
                users += noise.shape[1] * process.turns + 1
            needed.setdefault(_rows(noise, sums).size, {})[place] = users
        heavy = any(isinstance(sums.spend, HEAVY) for sums, _, _ in calls.values())
        found: dict[int, Drawn] = {}
        for size, places in needed.items():
            replicas, users = max(400, (8400 if heavy else 6000) // size), max(places.values())
            world = extreme_users(spec, replicas, seed=7).until(users + spec.delay)
            made = alone.marks[min(users, len(alone.marks) - 1)]
            tape = run(config, spec, world, remember=False, calls=made)
            for place, (sums, _, noises) in enumerate(releases_of_sums(tape).values()):
                if place in places:
                    last = _begun(noises[-1], sums).reshape(replicas, -1)
                    found[place] = Drawn(sums, _rows(noises[0], sums), last)
    expect(
        0 < len(found) == len(calls),
        f"Expected many replicas to release the sums that one does, {len(calls)}, got "
        f"{len(found)}.",
    )
    return [found[place] for place in sorted(found)]


def releases_of_sums(tape: Tape) -> dict[int, tuple[Any, list[int], list[Floats]]]:
    """Return each sum of a tape, the numbers of calls that released it, and its releases' noise."""
    found: dict[int, tuple[Any, list[int], list[Floats]]] = {}
    noise_tape = iter(noises(tape))
    for i, (sums, release) in enumerate(zip(tape.mechanisms, tape.releases, strict=True)):
        if release is not None and sums.releases_sum:
            _, calls, added = found.setdefault(id(sums), (sums, [], []))
            calls.append(i)
            added.append(next(noise_tape))
    return found


def _rows(noise: Floats, sums: Any) -> Floats:
    """Return noise (R, rows, ..) of release 1: of row 0 alone if rows begin one after the other."""
    rows = noise.reshape(len(noise), -1, *noise.shape[2:])
    return rows[:, :1] if isinstance(getattr(sums, "_noise", None), Staggered) else rows


def _begun(noise: Floats, sums: Any) -> Floats:
    """Return the noise of the rows begun so far if rows are staggered, otherwise of all rows."""
    process = getattr(sums, "_noise", None)
    return noise[:, : process.begun] if isinstance(process, Staggered) else noise


def _leaves(spend: Any) -> Iterator[Any]:
    """Yield the elementary privacy costs (spends), without parts, that make up a spend."""
    parts = getattr(spend, "parts", None)
    yield from [spend] if parts is None else [leaf for part in parts for leaf in _leaves(part)]


def check_size(ledger: Ledger, drawn: list[Drawn]) -> None:
    """Check that the first release of each noisy sum has the variance that its spend states.

    The test, at 5 standard errors of 6,000 numbers (8,400 with heavy tails), has false alarms with
    probability 6e-7 per sum, and finds a variance that is off by 10 % (16 % with heavy tails).
    """
    paid = [part for spend in ledger.spends for part in _leaves(spend)]
    for sums, noise, _ in drawn:
        note = sums.spend.note
        expect(sums.spend in paid, f"Expected the ledger to name {note!r}, which adds noise.")
        ratio = np.square(noise / first_stddev(sums))
        error = 5 * ratio.mean(axis=tuple(range(1, ratio.ndim))).std() / len(ratio) ** 0.5
        expect(
            abs(ratio.mean() - 1) < error,
            f"Expected noise of {note!r} as large as its spend says, got {ratio.mean():.3g} times "
            "its variance.",
        )
        power = 0.16 if isinstance(sums.spend, HEAVY) else 0.1
        expect(error < power, f"Expected enough numbers of {note!r} to see {power:.0%}: {error}.")


def check_rows(drawn: list[Drawn]) -> None:
    """Check that the noises of arms, blocks and coordinates are uncorrelated in pairs.

    The test, by mean products, has false alarms with probability 1e-8 for 20,000 pairs. A draw that
    two rows share, which would cancel in their difference, shows as 9 standard errors or more.
    """
    for sums, _, noise in drawn:
        note, noise = sums.spend.note, noise[:, :: -(-noise.shape[1] // _MAX_COMPARED_COORDINATES)]
        expect(noise.any(axis=0).all(), f"Expected noise in every coordinate of {note!r}.")
        product = noise.T @ noise / np.sqrt((noise**2).T @ noise**2)
        most = np.abs(np.triu(product, 1)).max()
        expect(most < 7, f"Expected every coordinate of {note!r} to have noise of its own.")
