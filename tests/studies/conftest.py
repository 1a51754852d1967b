"""A sweep on the command line."""

import pytest

SWEEP = (
    'horizons = [9]\nreplicas = 2\n[[environments]]\nid = "OJPricing"\n[[agents]]\nid = "linucb"\n'
)


@pytest.fixture
def sweep(run, tmp_path):
    """Run a small one: exit code, stdout, stderr."""
    file = tmp_path / "sweep.toml"
    file.write_text(SWEEP)
    return lambda *more: run(
        "sweep", file, "--out", tmp_path / "out", "--backend", "threading", *more
    )
