"""What an agent's noise buys on a problem, beside what it claims."""

from dataclasses import replace

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import JOINT_DP
from dpbandit.privacy.certificate import Certificate, certificate
from dpbandit.specs.protocols import AgentConfig, Spec, check_config


def certify(config: AgentConfig, spec: Spec, *, accountants: bool = True) -> Certificate:
    """What the noise of `config` on `spec` really buys, beside what it claims.

    The claim is the config's `epsilon` and `delta`, where it has them; the notion of privacy is the
    problem's. The ledger is believed: that nothing is missing there is seen by playing. Raises
    `InputError` for what is no config, or does not fit.
    """
    check_config(config)
    ledger = config.make(spec, Streams([0])).ledger
    if ledger.scope == JOINT_DP:  # the words of a ledger that has not met its problem
        ledger = replace(ledger, scope=spec.scope)
    epsilon = getattr(config, "epsilon", None)
    claim = None if epsilon is None else (epsilon, getattr(config, "delta", 0.0))
    return certificate(ledger, claim=claim, accountants=accountants)
