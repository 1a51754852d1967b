"""Table 5.1: distances by hand, runs that resume, and tables that say what they must."""

from dataclasses import replace
from math import hypot, inf, isnan, sqrt
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpbandit import Results
from dpbandit.agents import DPTOFW
from dpbandit.experiments.sgd import Entry, Sizes, __main__ as command, measure, printed
from dpbandit.experiments.sgd.printed import (
    COMPETITORS,
    LOCALISED,
    Line,
    Setting,
    chosen_rows,
    rows,
)
from tests.experiments.runs import quick

SMALL = Setting(1.5, 5, 1000)
TINY = Sizes(rows=chosen_rows("1-3"), scales_at=(SMALL,), replicas=2)


def entry(values, *, number=2, reading="printed", epsilon=6.8):
    """A line beside row 2, printed .0172 with a standard deviation of .00987, reference .0098."""
    run = SimpleNamespace(
        measures={"suboptimality": np.array(values)}, certificate=SimpleNamespace(epsilon=epsilon)
    )
    return Entry(rows()[number - 1], Line("DP-TOFW", reading, {1.0: DPTOFW()}), {1.0: run})


def test_distances_by_hand():
    """Golden: mean .0198 of 4, s = .001, se .0005. To printed: .0026 over root(.0005^2 +
    .00987^2/10). To the reference, 200 replicas of the same s: .01 less .00005 of rounding over
    .0005 root(1 + 4/200)."""
    a = 0.001 * sqrt(3) / 2
    one = entry([0.0198 - a, 0.0198 + a, 0.0198 - a, 0.0198 + a])
    assert one.se == pytest.approx(0.0005)
    assert one.z_printed == pytest.approx(0.0026 / hypot(0.0005, 0.00987 / sqrt(10)))
    assert one.z_reference == pytest.approx(0.00995 / (0.0005 * sqrt(1.02)))
    assert not one.reached
    assert entry([0.0171, 0.0173], reading="certified").reached
    assert isnan(entry([0.01, 0.02], reading="certified").z_reference)
    assert not entry([0.01, 0.02], number=7, reading="certified").reached  # of another theta*
    assert entry([0.00976, 0.00985]).z_reference == pytest.approx(0, abs=1e-9)  # .0098, rounded


def test_the_program_did_not_clip():
    """Golden: S = 2 (2 * 4 + 6.5) = 29, not 2 (4 + 4) = 16, at p = infinity, T = 1,000; nothing
    changes where nothing is proved, or for what is clipped by its own agent."""
    assert entry([0.1, 0.2], number=4, epsilon=6.779089).unclipped_epsilon == pytest.approx(
        15.1, abs=0.05
    )
    assert entry([0.1, 0.2], number=2, epsilon=inf).unclipped_epsilon == inf
    assert entry([0.1, 0.2], number=4, reading="certified", epsilon=1.0).unclipped_epsilon == 1


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder, and what was printed while it was filled, with few scales of steps."""
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printed, "BATCH_SCALES", (0.1,))
        patch.setattr(printed, "FRANK_WOLFE_SCALES", {1.5: (0.4, 1.0)})
        patch.setattr(printed, "_MORE_SCALES", (0.4, 1.0))
        patch.setenv("COLUMNS", "300")
        yield folder, quick(command, TINY, folder, 2)


def test_quick_runs_write_everything(written):
    folder, _ = written
    images = {path.stem: path for path in folder.glob("*.png")}
    assert set(images) == {"sensitivity", "time", "growth"}
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in images.values())
    table = pd.read_csv(folder / "summary.csv")
    assert set(table["row"]) == {1, 2, 3}
    assert (table["suboptimality_se"] > 0).all()
    assert not list(folder.rglob(".*"))  # nothing half written


def test_the_best_step_scale_counts_and_cells_are_shared(written):
    """Oracle: the least mean of the scales tried, recomputed from the files; noisy-sfw and
    noisy-sgd stand in two tables and are run once."""
    folder, _ = written
    table = pd.read_csv(folder / "summary.csv").set_index(["row", "line"])
    runs = {run.name: run for run in Results.load(folder).where(problem="p = 1.5, d = 5").runs}
    for label in ("DP-TOFW, printed", "DP-TOFW, stated", "online Frank-Wolfe"):
        means = {c: runs[f"{label} {c}"].measures["suboptimality"].mean() for c in ("0.4", "1")}
        best = min(means, key=means.__getitem__)
        assert table.loc[(2, label), "suboptimality"] == pytest.approx(means[best])
        assert table.loc[(2, label), "scale"] == float(best)
        assert table.loc[(2, label), "scales_tried"] == 2
    assert (
        table.loc[(1, "noisy-sfw"), "suboptimality"] == table.loc[(2, "noisy-sfw"), "suboptimality"]
    )
    assert {name for name in runs if "noisy-s" in name} == {"noisy-sfw", "noisy-sgd"}


def test_tables_say_what_they_must(written):
    """Printed values, all readings, the choice of step scales, certificates, marks, seconds."""
    _, printed = written
    for words in (
        *("0.0172 ± 0.0031", "DP-TOFW, printed (best of 2)", "DP-TOFW, stated (best of 2)"),
        *("chosen after looking", "certified epsilon at delta = 1/T"),
        *("Everybody at the same true (1, 1/T)", "least squares", " *"),
        *("NoisySFW: Risk", "0.0885 ± 0.0029", "NoisySFW: Time", "0.0189 ± 0.00068"),
        *("ours minus printed in combined standard errors", LOCALISED, *COMPETITORS),
    ):
        assert words in printed, words
    assert "\\" not in printed


def test_nothing_is_played_twice_and_another_seed_is_run_anew(written, monkeypatch):
    def none(*arguments, **more):
        raise ZeroDivisionError

    monkeypatch.setattr("dpbandit.experiments.releases.play", none)
    measure(TINY, written[0], progress=False)
    with pytest.raises(ZeroDivisionError):
        measure(replace(TINY, rows=chosen_rows("3"), seed=5), written[0], progress=False)
