"""Print a digest of every agent's regret on every environment, to compare across refactorings::

    python tools/golden.py > before.txt        # then change the code
    python tools/golden.py | diff before.txt -

It prints a line for each environment, agent and variant of its settings, for 40 rounds and two
replicas. If an agent does not fit, the line has the first words of its error, compared as well.
"""

import os
import sys
import warnings
from hashlib import sha256
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # sums depend on it

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpbandit import ENVIRONMENTS, InputError, compare  # noqa: E402
from dpbandit.agents import AGENTS  # noqa: E402
from tests.harness import variants  # noqa: E402

ARGUMENTS = {  # environment -> its arguments; None to leave out the environment
    "dpbandit/RatingsBandit-v0": None,  # it needs a file
    "dpbandit/RatingsLists-v0": None,
    "dpbandit/OnlineConvex-v0": {"loss": "linear"},
}


def main() -> None:
    """Print digests of regret, in an order that stays if a class moves to another file."""
    warnings.simplefilter("ignore")
    for env in sorted(ENVIRONMENTS):
        arguments = ARGUMENTS.get(env, {})
        if arguments is None:
            continue
        for name, agent in sorted(AGENTS.items()):
            for config in sorted(variants(agent), key=repr):
                print(env, config, _digest(env, arguments, name, config), flush=True)


def _digest(env: str, arguments: dict, name: str, config: object) -> str:
    try:
        results = compare(
            env, {name: config}, horizon=40, replicas=2, env_kwargs=arguments, progress=False
        )
    except InputError as refusal:
        return " ".join(str(refusal).split()[:6])
    (run,) = (run for run in results.runs if run.name == name)
    numbers = np.concatenate([run.regret, run.reward, run.switches.astype(float)])
    numbers = np.append(numbers, [run.certificate.epsilon, run.certificate.delta])
    return sha256(numbers.tobytes()).hexdigest()[:16]


if __name__ == "__main__":
    main()
