"""Check whether your own agent or problem keeps its contract, in one line each::

    check_agent(MyAgent(epsilon=1.0), spec)
    check_problem(MyProblem())

Both return a line for each check, and raise `AssertionError` with a sentence if a check fails. All
agents and problems of dpbandit are tested by these checks.
"""

from dpbandit.testing.checks import check_agent, check_problem
from dpbandit.testing.noise import admitted

__all__ = ["admitted", "check_agent", "check_problem"]
