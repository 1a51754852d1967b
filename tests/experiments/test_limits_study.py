"""The study of limits: its table by hand, and that its command writes everything and resumes."""

import pandas as pd
import pytest

from dpbandit.experiments.limits import QUICK, Sizes, __main__ as command, questions
from tests.experiments.runs import run_command


def test_the_command_writes_everything_and_the_second_does_no_work(tmp_path, monkeypatch):
    """Every ratio is that of its columns, the bound falls in epsilon and is below what is measured;
    a second run plays nothing."""
    sizes = Sizes(horizon=60, noises=(0.5,), epsilons=(1.0, 10.0), replicas=2)
    monkeypatch.setattr(command, "QUICK", sizes)
    monkeypatch.setattr("dpbandit.base.progress.PATIENCE", 1e9)
    words = ["--quick", "--out", tmp_path]
    done = run_command(command.main, *words)
    assert done.exit_code == 0, done.output
    found = pd.read_csv(tmp_path / "limits.csv")
    assert found["epsilon"].tolist() == pytest.approx([1, 10])
    assert (found["FADE"] / found["bound"]).tolist() == pytest.approx(
        found["FADE / bound"].tolist()
    )
    assert found["bound"][1] < found["bound"][0]
    assert (found["bound"] < found["FADE"]).all()
    for name in ("limits.png", "shapes.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"
    monkeypatch.setattr("dpbandit.studies.sweeps.play_any", None)  # would not be callable
    assert run_command(command.main, *words).exit_code == 0


def test_every_line_meets_the_same_users():
    """One problem a panel, at a seed from 1000 on, the quick sizes too."""
    for sizes in (Sizes(), QUICK):
        for lines in questions(sizes).values():
            assert len({str(one.setup) for line in lines.values() for one in line}) == 1
        assert sizes.seed >= 1000
