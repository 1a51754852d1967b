"""Whether an agent keeps what its ledger promises, in one line."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from dpbandit.base.inputs import InputError, whole
from dpbandit.privacy.certificate import Certificate
from dpbandit.running.compare import certify
from dpbandit.specs.protocols import AgentConfig, Spec
from dpbandit.testing.admission import admitted
from dpbandit.testing.company import check_copies, check_replicas
from dpbandit.testing.expectations import expect
from dpbandit.testing.joint_dp import EVERYBODY, SWAPPED, check_joint_dp
from dpbandit.testing.noise import check_noise_knows_no_data, check_rows, check_size, drawn_by
from dpbandit.testing.noise_laws import SUMS
from dpbandit.testing.tapes import run
from dpbandit.testing.worlds import extreme_users

PRINTED = ("paper", "paper-fixed", "heuristic")
"""Calibrations that are known not to keep what they claim."""


def check_agent(
    config: AgentConfig, spec: Spec, *, rounds: int = 24, tested: tuple[type, ...] = ()
) -> tuple[str, ...]:
    r"""Raise `AssertionError` unless the agent keeps what its ledger promises on such problems::

        certificate   the noise buys what is claimed, unless it is a paper's calibration
        replicas      six equal a lone one, a run of two and a run of three, difference 0.0
        actions       are allowed by the spec, and contexts left as they are
        copies        pickles and deep copies go on as the original
        ledger        names every mechanism that is called
        sensitivity   a user as extreme as can be moves no mechanism's input by more than it says
        billboard     with all releases held fixed, nothing else depends on her data
        admission     no later step of a mechanism reads a datum that was not clipped
        noise         is added to what was fed, as large as was paid for, in every row its own

    The last five are for agents whose ledger promises something, claimed or not. They are no proof,
    but what forgets a clip, a factor or a release rarely passes. Noise of sums is measured; a
    mechanism of another kind needs a test of its own, which those of dpbandit have.

    Args:
        config: the agent's config.
        spec: a problem's public facts, as in `MyProblem().spec`; small ones take least time.
        rounds: how many are played, at most; all that the agent does should happen in them.
        tested: mechanisms of yours whose noise you have tested.

    Returns:
        A line for each check, with what it found.

    Raises:
        InputError: the agent does not fit the problem.
        AssertionError: something is not as promised, or nothing was checked.

    >>> from dpbandit.agents import DPUCB
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> print(*check_agent(DPUCB(), ContextualSpec(n_actions=2, dim=2, horizon=24)), sep="\n")
    certificate: epsilon 1 at delta 1e-05
    replicas: six equal three runs
    copies: go on alike
    ledger: names all of 1 mechanisms
    sensitivity: inputs move by 0.9428 of it at most
    billboard: nothing but releases is remembered
    noise: of 1 sums and 23 releases as the ledger says
    """
    if not isinstance(spec, Spec):
        raise InputError(f"Expected the spec of a problem, got {spec!r}: hand over its `.spec`.")
    whole("rounds", rounds, 1)
    horizon = min(spec.horizon, rounds)
    spec = replace(spec, horizon=horizon, delay=min(spec.delay, horizon))
    proof = certify(config, spec, accountants=False)
    found = [check_certificate(config, proof)]
    check_replicas(config, spec)
    check_copies(config, spec)
    found += ["replicas: six equal three runs", "copies: go on alike"]
    if all(spend.mu != inf for spend in proof.ledger.spends):
        found += _private(config, spec, proof, tested)
    return tuple(found)


def check_certificate(config: Any, proof: Certificate) -> str:
    """The noise buys what is claimed, unless it is a paper's that is not believed to."""
    printed = getattr(config, "calibration", "certified") in PRINTED
    shown = f"epsilon {proof.epsilon:.4g} at delta {proof.claimed_delta:.4g}"
    expect(printed or proof.holds, f"Expected the claim to hold, the noise buys {shown}.")
    return f"certificate: {shown}"


def _private(
    config: AgentConfig, spec: Spec, proof: Certificate, tested: tuple[type, ...]
) -> Iterator[str]:
    """Of an agent that promises something."""
    swapped = [t for t in SWAPPED if t == EVERYBODY or int(t) < spec.horizon]
    largest, one = check_joint_dp(config, spec, swapped)
    yield f"ledger: names all of {len(set(map(id, one.mechanisms)))} mechanisms"
    yield f"sensitivity: inputs move by {largest:.4g} of it at most"
    yield "billboard: nothing but releases is remembered"
    kinds = {type(mechanism) for mechanism in one.mechanisms}
    expect(
        bool(kinds) == (proof.epsilon > 0)
        and any(r is not None for r in one.releases) >= bool(kinds),
        f"Expected a mechanism to be called, and to release, within rounds={spec.horizon}: nothing "
        "was checked.",
    )
    for kind in sorted(kinds, key=str):
        expect(
            issubclass(kind, (*SUMS, *tested)) or kind.__module__.startswith("dpbandit."),
            f"Expected tested= to name {kind.__name__}: it is no sum, test its noise by itself.",
        )
    if any(issubclass(kind, SUMS) for kind in kinds):
        count = check_noise_knows_no_data(config, spec)
        drawn = drawn_by(config, spec)
        check_size(proof.ledger, drawn)
        check_rows(drawn)
        yield f"noise: of {len(drawn)} sums and {count} releases as the ledger says"
    elif kinds:
        check_admission(config, spec)
        yield "admission: nothing is read that was not clipped"


def check_admission(config: AgentConfig, spec: Spec) -> None:
    """A query shows a first step; so of mechanisms that go on from there, two live runs with equal
    seeds, one of which has every datum moved into its bounds before it is fed: all releases and
    actions are the same, hence no later step reads a raw datum. (Sums are what was queried.)"""
    users = extreme_users(spec, 8, seed=1)
    with np.errstate(all="ignore"):
        raw, clipped = (run(config, spec, users, admit=a, remember=False) for a in (None, admitted))
    equal = same_to_rounding(raw.actions, clipped.actions) and all(
        same_to_rounding(a, b) for a, b in zip(raw.releases, clipped.releases, strict=True)
    )
    expect(equal, "Expected mechanisms to clip all that they are fed, and to keep nothing else.")


def same_to_rounding(one: Any, two: Any) -> bool:
    """Whether two releases are equal to 1e-9, or both None."""
    if one is None or two is None:
        return one is two
    return np.allclose(one, two, rtol=1e-7, atol=1e-9, equal_nan=True)
