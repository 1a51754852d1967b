"""Every reference case, by name. Later questions add theirs."""

from dpbandit.experiments.contextual_cases import FIGURE_5_1, P1, P2
from dpbandit.experiments.convex_cases import CONVEX_CASES

CASES = {case.name: case for case in (P1, P2, FIGURE_5_1, *CONVEX_CASES)}
