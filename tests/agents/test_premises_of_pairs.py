"""Every agent of the registry, behind every wrapper, on every kind of problem: what premises accept
passes the billboard, and what they refuse is of the kinds that docs/concepts/certificates.md lists.

Pairs are generated. Budgets are large and settings extreme: guards explore often and veto by narrow
widths, batches are short, so that whatever exact counts decide happens within few rounds.
"""

from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest

from dpbandit import ENVIRONMENTS, InputError
from dpbandit.agents import AGENTS
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.notion import Visits
from dpbandit.running.resolve import resolve_spec
from dpbandit.running.settings import WRAPPER_KINDS, agent_config, setting_names
from dpbandit.specs.contract import made_agent
from dpbandit.specs.premises import Premises
from dpbandit.testing.checks import billboard_differences, check_sensitivity, two_worlds
from tests.each import turn

T = 60
EXTREME = {"first_batch": 2, "first": 1, "refresh_every": 3, "rate": 1.0, "told": 1}
EXTREME["n_features"] = 4  # 300 by default, of which pickles of 60 rounds take minutes
WRAPPERS = ["".join(words) for n in range(3) for words in combinations(WRAPPER_KINDS, n)]
CHANGES = ({}, {"delay": 7}, {"masks": "public"}, {"masks": "user"})
ENOUGH = 400
"""Pairs that are accepted, at least, or nothing is said of the registry"""
SHARE = 3
"""Number of parts of the registry of which one is looked at by a commit, beside `OWING`"""
ROTA = 8
"""Number of accepted pairs of which one is replayed at a commit; an agent's are neighbours"""
OWING = "allocation-ts"
"""The agent of which pairs are refused"""


@cache
def problems():
    """Name -> spec: one for each kind of public facts, each changed in every way that fits."""
    found = {}
    for env in ENVIRONMENTS:
        with suppress(InputError):  # it needs a file
            spec = resolve_spec(env, horizon=T)
            visits = [Visits(3, 2, pattern) for pattern in ("public", "private")]
            changes = [{"visits": one} for one in visits] if spec.returning else CHANGES
            kind = (type(spec), getattr(spec, "shared", None), type(getattr(spec, "visit", None)))
            kind += (type(spec.domain), getattr(spec, "feedback", None), spec.carries)
            for place, change in enumerate(changes):
                with suppress(InputError):
                    found.setdefault((*kind, place), (env, replace(spec, **change)))
    return {(env, *kind[-1:]): spec for kind, (env, spec) in found.items()}


def configs():
    """The agents of this commit behind every wrapper, with large budgets: id -> config."""
    due = [n for place, n in enumerate(AGENTS) if n == OWING or not (place + turn()) % SHARE]
    for words in WRAPPERS:
        for name in due:
            known = setting_names(words + name)
            epsilon = 3.0 if "per-person:" in words else 1.0  # noise is Gaussian where it is less
            extreme = {key: value for key, value in EXTREME.items() if key in known}
            for settings in (extreme, {}):
                with suppress(InputError, TypeError):
                    yield (
                        words + name,
                        agent_config(words + name, settings, epsilon=epsilon, delta=0.2),
                    )
                    break


def pairs():
    """(id, config, spec, sentence of the refusal or None) of all that would promise something."""
    found = []
    for name, config in configs():
        for spec in problems().values():
            why = []
            with suppress(InputError), patch.object(Premises, "check", noting(why)):
                agent = made_agent(config, spec, Streams([0]))
                if not Premises("", agent, spec).promises or not agent.ledger.spends:
                    continue
                found.append((name, config, spec, why[0] if why else None))
    return found


def noting(why):
    """`Premises.check`, which keeps its sentence to itself."""
    check = Premises.check

    def note(self):
        try:
            check(self)
        except InputError as error:
            why.append(str(error))

    return note


def owed(name, spec):
    """True if the docs say that a proof is owed: exact counts of an arm under a veto that reads
    contexts, or of a null round at a private time."""
    *words, agent = name.split(":")
    guarded = "guarded" in words and not getattr(spec, "constant_context", False)
    moved = spec.returning and spec.visits.pattern == "private"
    return agent == OWING and (guarded or moved or spec.masks == "user")


@pytest.mark.slow
def test_refusals_are_owed_and_whatever_is_accepted_passes_the_billboard():
    """Refused are exactly the pairs that a proof is owed for, of a third of the agents, others at
    each commit. Replays one accepted pair of them in `ROTA`. Refused pairs are replayed, too:
    behind each wrapper some of them fail, which shows that the check can fail. One test, as two
    workers would make all pairs twice."""
    failed, found = [], pairs()
    refused = {(name, spec) for name, _, spec, why in found if why}
    assert len(found) - len(refused) > ENOUGH
    assert refused == {(name, spec) for name, _, spec, _ in found if owed(name, spec)}
    assert {name.rpartition(":")[0] for name, _ in refused} == {
        *("", "mapped", "guarded", "guarded:mapped"),
        *("per-person", "per-person:mapped", "per-person:guarded"),
    }
    for _, _, _, why in found:
        assert why is None or "which 'Gaussian sums released by counts'" in why
    narrow = patch("dpbandit.agents.contextual.guard.SafetyNet.widths", narrow_widths)
    for place, (name, config, spec, why) in enumerate(found):
        if spec.masks == "user" if why else (place + turn()) % ROTA:
            continue
        with narrow, patch.object(Premises, "promises", False):
            one, two, t = two_worlds(config, spec, (0, 14), replicas=4)
            leaks = billboard_differences(one, two, t)
            if why is None:
                check_sensitivity(one, two, t)
        assert why or not leaks, (name, spec, leaks)
        failed += [name.rpartition(":")[0]] if leaks else []
    assert {"guarded", "per-person"} <= set(failed)


def narrow_widths(self, x):
    """So narrow that arms are vetoed all the time."""
    return np.full((len(x), self._plan.spec.n_actions), 1e-3)
