"""Audit agents on small problems."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any

from dpbandit.auditing.audit import AuditReport, audit
from dpbandit.base import InputError, inside
from dpbandit.domains.balls import Ball
from dpbandit.losses.decisions import Linear
from dpbandit.running.compare import certify
from dpbandit.shelf import open_shelves
from dpbandit.specs import AgentConfig, ContextualSpec, ConvexSpec, ExpertsSpec, PriceListSpec, Spec

PRINTED_SUFFIX = ":calibration=paper"
"""Suffix of the name of an agent that has the constants printed in its paper."""

SMALL_PROBLEMS: list[Spec] = [
    *(
        ContextualSpec(
            n_actions=2, dim=2, horizon=24, reward_low=-1.0, reward_high=1.0, shared=shared
        )
        for shared in (False, True)
    ),
    *(
        ConvexSpec(loss=Linear(Ball(2)), horizon=24, feedback=feedback)
        for feedback in ("value", "datum")
    ),
    ExpertsSpec(n_actions=2, horizon=60),
    PriceListSpec(n_actions=2, dim=2, horizon=24, prices=(1.0, 2.0), reward_high=2.0),
]
"""Problems on which agents are audited, quick to play; optional modules add further ones.

Users' data reach all clipping bounds. The problem of experts has more rounds, because tests of
sparse vectors fire only after some 30 losses."""


def audit_all(
    configs: Mapping[str, AgentConfig], *, failure: float = 0.05, **options: Any
) -> dict[str, AuditReport]:
    """Audit every private agent of `configs`, on the first of `SMALL_PROBLEMS` that it fits.

    `failure` is for all reports together; each gets an equal share. `options` are further arguments
    of `audit`. Left out are agents that claim no privacy or never read data, so that nothing can be
    refuted; agents that fit none of the problems (streams on l_p balls, ridge regression); and
    agents whose guarantee is window-DP or does not cover contexts, which audits refuse.
    """
    inside("failure", failure, 0, 1, ends=False)
    found = {name: spec for name, config in configs.items() if (spec := _fitting_problem(config))}
    return {
        name: audit(configs[name], spec, failure=failure / len(found), **options)
        for name, spec in found.items()
    }


def with_printed(configs: Mapping[str, AgentConfig]) -> dict[str, AgentConfig]:
    """Return `configs`, and each config once more with its paper's constants, if there are any.

    >>> from dpbandit.agents import PFTAL, LinUCB
    >>> list(with_printed({"linucb": LinUCB(), "pftal": PFTAL()}))
    ['linucb', 'pftal', 'pftal:calibration=paper']
    """
    found = dict[str, AgentConfig]()
    for name, config in configs.items():
        found[name] = config
        if vars(config).get("calibration", "paper") != "paper":  # a setting, no constant
            with suppress(InputError):  # other settings, or this epsilon, were never printed
                printed: Any = replace(config, calibration="paper")
                found[name + PRINTED_SUFFIX] = printed
    return found


def _fitting_problem(config: AgentConfig) -> Spec | None:
    open_shelves("auditing")
    for spec in SMALL_PROBLEMS:
        with suppress(InputError):
            proof = certify(config, spec, accountants=False)
            limited = proof.notion.window is not None or proof.notion.contexts == "public"
            if 0 < proof.epsilon < inf and not limited:
                return spec
    return None
