"""The fence: the core imports no shelf, and stands when shelves are deleted."""

import csv
import re
import shutil
import subprocess
import sys

import pytest

from dpbandit.lazy import catalogue
from tests.each import in_turn, turn
from tools.measures import CORE, ROOT, SHELVES, imported, imports_of_shelves, shelf, tracked
from tools.mutants import copy_source

SOURCE = [
    file
    for file in tracked("*.py")
    if not file.is_relative_to(ROOT / "tests") and "notebooks" not in file.parts
]
TABLES = {"agents": "file", "envs": "file", "dpbandit": "module"}
"""Folder with a table of what is there -> its column of modules."""
EVERYTHING = """
from importlib import import_module
from pkgutil import walk_packages
import dpbandit
from dpbandit.shelf import open_shelves
for half in ("dpbandit", "dpbandit.agents", "dpbandit.envs", "dpbandit.experiments"):
    for module in walk_packages(import_module(half).__path__, f"{half}."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
for package in ("auditing", "domains.words", "privacy.certificate"):
    open_shelves(package)
assert all(agent.__name__ for agent in dpbandit.agents.AGENTS.values())
assert dpbandit.recommend("GLMBandit") != "uniform"
dpbandit.compare("GLMBandit", "linucb,dp-ucb", horizon=20, progress=False)
"""
"""Imports all that is left, opens all shelves, and compares two agents."""
CHECKS = """
import dpbandit
from dpbandit.running.settings import parse_agent
from dpbandit.testing import check_agent, check_problem
spec = dpbandit.envs.GLMBandit(horizon=24).spec
for agent in ("linucb", "dp-ucb", "fade", "fade-arms"):
    check_agent(parse_agent(agent), spec)
check_problem(dpbandit.envs.OJPricing(horizon=24))
assert not dpbandit.audit("dp-ucb:epsilon=5", "TwoArms", runs=400, progress=False).flagged
"""
"""Tests some agents and a problem as everybody can, and audits one agent."""
CORE_TESTS = """
    tests/agents/contextual/test_dp_ucb.py tests/agents/contextual/test_ridge.py
    tests/agents/experts/test_multiplicative.py tests/base/test_random_streams.py
    tests/envs/contextual/test_tables.py tests/envs/experts/test_experts.py
    tests/privacy/statistics/test_statistics.py tests/privacy/sums/test_fading.py
    tests/privacy/sums/test_trees.py tests/results/test_comparisons.py tests/results/test_store.py
"""
"""A part of the core's tests that is quick, and touches most of its rooms."""


def test_the_core_imports_no_shelf():
    """Catches an import of a shelf's name by the core, and a row of `shelves.csv`, by which the
    core would import part of itself in a way that nobody reads."""
    core = [file for file in SOURCE if shelf(file) is None]
    assert list(imports_of_shelves(core)) == []
    for row in catalogue("dpbandit", "shelves.csv"):
        half, *rest = row["module"].split(".")
        home = ROOT if half in ("agents", "envs", "experiments") else ROOT / "dpbandit"
        assert shelf(home.joinpath(half, *rest).with_suffix(".py")) is not None, row
    places = [*CORE, *(place for places in SHELVES.values() for place in places)]
    assert [place for place in places if not (ROOT / place).exists()] == []


def without(shelves, copy):
    """A copy of the project without some shelves, and what on other shelves needs them: without
    their files, and without the rows and words of tables that name these or their agents."""
    copy_source(copy)
    gone = {file for file in SOURCE if shelf(file) in shelves}
    needs = {file: {home for home, _ in imported(file)} for file in SOURCE if shelf(file)}
    while more := {file for file, homes in needs.items() if homes & gone} - gone:
        gone |= more
    for file in gone:
        (copy / file.relative_to(ROOT)).unlink()
    for place in (place for name in shelves for place in SHELVES[name]):
        shutil.rmtree(copy / place, ignore_errors=True)
    lost = []
    for folder, column in TABLES.items():
        for table in (copy / folder).glob("*.csv"):
            rows = list(csv.DictReader(table.read_text().splitlines()))
            kept = [row for row in rows if there(copy, folder, row[column])]
            lost += [row["id"] for row in rows if "id" in row and row not in kept]
            with table.open("w", newline="") as out:
                written = csv.DictWriter(out, rows[0], lineterminator="\n")
                written.writeheader()
                written.writerows(kept)
    cases = copy / "experiments" / "cases.toml"
    ids = "|".join(lost) or "-"
    text = re.sub(rf'"({ids})",? ?|^"({ids}):.*\n', "", cases.read_text(), flags=re.M)
    cases.write_text(text)


def there(copy, folder, module):
    """Return True if a table's module is still in the copy."""
    half, *rest = module.split(".")
    home = copy if half in ("agents", "envs", "experiments") else copy / folder
    return home.joinpath(half, *rest).with_suffix(".py").exists()


def ran(copy, *command):
    where = {"cwd": copy, "env": {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, **where)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("place", range(4))
def test_a_shelf_can_be_deleted(place, tmp_path):
    """Catches a core, or another shelf, that breaks without one shelf: every module that is left is
    imported, and agents are compared. Four shelves, others at each commit, as each takes five
    seconds; the test below deletes all of them together."""
    names = [name for name in SHELVES if name != "tools"]
    without([names[(4 * turn() + place) % len(names)]], tmp_path)
    ran(tmp_path, "-W", "ignore", "-c", EVERYTHING)


@in_turn(1, slow=True)
def test_the_core_stands_alone(tmp_path):
    """Catches a core that needs any shelf: all are deleted, and a part of its tests passes that
    takes a minute. At one commit in three: imports of shelves are seen by tools/measures.py."""
    without([name for name in SHELVES if name != "tools"], tmp_path)
    ran(tmp_path, "-W", "ignore", "-c", EVERYTHING + CHECKS)
    ran(tmp_path, "-m", "dpbandit", "--help")
    options = ["-q", "-n", "0", "--tb=short", "-p", "no:cacheprovider"]
    passed = ran(tmp_path, "-m", "pytest", *options, *CORE_TESTS.split())
    assert int(re.findall(r"(\d+) passed", passed)[-1]) > 100
