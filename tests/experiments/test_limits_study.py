"""The study of limits: its table by hand, and that its command writes everything."""

import pandas as pd
import pytest

from dpbandit.experiments.limits import __main__ as command
from dpbandit.experiments.limits.__main__ import QUICK, Sizes, questions
from tests.experiments.runs import quick


def test_the_command_writes_everything(tmp_path):
    """Every ratio is that of its columns, the bound falls in epsilon and is below what is
    measured."""
    sizes = Sizes(horizon=30, noises=(0.5,), epsilons=(1.0, 10.0), replicas=2)
    quick(command, sizes, tmp_path, 2)
    found = pd.read_csv(tmp_path / "limits.csv")
    assert found["epsilon"].tolist() == pytest.approx([1, 10])
    assert (found["FADE"] / found["bound"]).tolist() == pytest.approx(
        found["FADE / bound"].tolist()
    )
    assert found["bound"][1] < found["bound"][0]
    assert (found["bound"] < found["FADE"]).all()
    for name in ("limits.png", "shapes.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"


def test_every_line_meets_the_same_users():
    """One problem a panel, at a seed from 1000 on, the quick sizes too."""
    for sizes in (Sizes(), QUICK):
        for lines in questions(sizes).values():
            assert len({str(one.setup) for line in lines.values() for one in line}) == 1
        assert sizes.seed >= 1000
