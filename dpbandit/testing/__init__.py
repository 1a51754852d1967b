"""Check whether your own agent or problem keeps its contract, in one line each::

    check_agent(MyAgent(epsilon=1.0), spec)
    check_problem(MyProblem())

Both raise `AssertionError` in a sentence, and return what they have found, a line for each check.
They are what this project runs on its own agents and problems.
"""

from dpbandit.testing.checks import check_agent, check_problem
from dpbandit.testing.noise import admitted

__all__ = ["admitted", "check_agent", "check_problem"]
