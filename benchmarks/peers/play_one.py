"""Play another library's agent in this interpreter; print CPU-seconds and regrets as JSON.

python play_one.py NAME DIM ARMS ROUNDS SEED REPLICAS
"""

import json
import sys
import time
from contextlib import redirect_stdout
from importlib import import_module, metadata

from world import draw


def main(name, dim, arms, rounds, first, replicas):
    library, _, algorithm = name.partition(":")
    peer = import_module(f"players.{library}")  # in a package, not to shadow the library
    play = getattr(peer, algorithm or "play")
    play(draw(dim, arms, 100, seed=0))  # warm-up: costs of the first use are not counted
    seconds, regrets = [], []
    for seed in range(first, first + replicas):
        start = time.process_time()
        regret = play(draw(dim, arms, rounds, seed))
        seconds.append(time.process_time() - start)
        regrets.append(float(regret[-1]))
    return {"version": metadata.version(library), "seconds": seconds, "regrets": regrets}


if __name__ == "__main__":
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        try:
            found = main(sys.argv[1], *map(int, sys.argv[2:]))
        except ImportError as error:
            found = {"missing": f"{type(error).__name__}: {error}"}
    json.dump(found, out)
