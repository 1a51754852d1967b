"""What an agent's noise buys on a problem, beside what it claims."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.certificate import Certificate, certificate
from dpbandit.privacy.ledger import JOINT_DP, NO_DATA, not_covered
from dpbandit.privacy.mechanism import checked_ledger
from dpbandit.running.given import AnyAgent, AnyProblem, agent_given, spec_given
from dpbandit.specs.contract import made_agent
from dpbandit.specs.protocols import Spec


def certify(
    config: AnyAgent,
    spec: Spec | AnyProblem,
    *,
    horizon: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    accountants: bool = True,
) -> Certificate:
    """What the noise of `config` on `spec` really buys, beside what it claims.

    The claim is the config's `epsilon` and `delta`, where it has them; the notion of privacy is the
    problem's. Where the world itself tells users of others (`Spec.carries`), agents whose ledger
    does not say that they stand between are not covered: epsilon is infinite. The ledger is
    believed: that nothing is missing there is seen by playing.

    Args:
        config: an agent's config, or its id with settings, "fade:epsilon=2".
        spec: the public facts of a problem, or an environment in any form that `compare` takes.
        horizon: rounds of an environment; its own by default, or 10,000.
        env_kwargs: further arguments of an environment.
        accountants: beside it what every accountant says, some of which are slow to import.

    Raises:
        InputError: what is no config or environment, or an agent that does not fit.

    >>> round(certify("fade", "OJPricing", accountants=False).epsilon, 3)
    1.0
    """
    config = agent_given(config)
    spec = spec_given(spec, horizon=horizon, env_kwargs=env_kwargs)
    agent = made_agent(config, spec, Streams([0]))
    ledger = checked_ledger(type(config).__name__, getattr(agent, "ledger", None))
    if spec.carries and ledger.scope in (JOINT_DP, NO_DATA):
        ledger = not_covered(ledger)
    if ledger.scope == JOINT_DP:  # the words of a ledger that has not met its problem
        ledger = replace(ledger, scope=spec.scope)
    epsilon = getattr(config, "epsilon", None)
    claim = None if epsilon is None else (epsilon, getattr(config, "delta", 0.0))
    return certificate(ledger, claim=claim, accountants=accountants)
