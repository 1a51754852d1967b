"""What a person of k visits, b slots apart, adds up to in sums of 10,000 slots, in single visits.

    python benchmarks/person_norms.py --out DIR  # norms.csv and prefixes.csv; seconds, no chance

`norms.csv`: S(k, b) of factorisations of prefix sums, and of fading sums in batches from 100 that
grow by a tenth. `prefixes.csv`: largest and root mean square error of 10,000 prefixes whose noise
is scaled to S(k, b), in units of the noise of a single release.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from dpbandit.privacy import BLT, Banded, SquareRoot, Tree
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.people import fading_norm, once_a_batch_norm

T = 10_000
WIDTHS = {(5, 1): 4096, (5, 2000): 4000, (20, 500): 1000, (100, 100): 512}
"""(k, b) -> diagonals of the banded square root."""


def norms():
    """A row for each (k, b)."""
    ends = growing_batches(T, first=100, growth=0.1)
    for k, b in [(1, 1), *WIDTHS]:
        sums = {"tree": Tree(), "square root": SquareRoot(), "BLT": BLT()}
        row = {name: one.person_norm(T, 1, k, b) for name, one in sums.items()}
        fading = {f"fading {fade}": fading_norm(ends, fade, k, b) for fade in (0.7, 0.0)}
        yield {"visits": k, "apart": f"{b:,}"} | row | fading
    once = {f"fading {fade}": once_a_batch_norm(len(ends), fade, 20) for fade in (0.7, 0.0)}
    yield {"visits": 20, "apart": "any, once a batch"} | once


def prefixes():
    """A row for each (k, b): of A = B C the first column of B is 1 / ((1 - x) c(x))."""
    impulse = np.eye(1, T)[0]
    for (k, b), width in WIDTHS.items():
        row = {"visits": k, "apart": f"{b:,}", "width": width}
        sums = {"square root": SquareRoot(), "BLT": BLT(), "banded": Banded(width)}
        for name, one in sums.items():
            answer = lfilter([1.0], np.trim_zeros(one.column(T)), impulse).cumsum()
            stddev = one.person_norm(T, 1, k, b) * np.sqrt(np.square(answer).cumsum())
            row[f"{name}, largest"] = stddev.max()
            row[f"{name}, rms"] = np.sqrt(np.square(stddev).mean())
        yield row


if __name__ == "__main__":
    OUT = Path(sys.argv[sys.argv.index("--out") + 1])
    OUT.mkdir(parents=True, exist_ok=True)
    for name, rows in (("norms", norms()), ("prefixes", prefixes())):
        pd.DataFrame(rows).to_csv(OUT / f"{name}.csv", index=False)
