"""The shape of the project: imports point one way, packages are complete, imports are cheap."""

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
FOLDERS = {package: SETUP["package-dir"].get(package) for package in SETUP["packages"]}
ORDER = """
    version inputs | arrays files checked | privacy.gdp privacy.zcdp privacy.privacy_loss
    | privacy.composition
    streams privacy.spends privacy.statistics privacy.gradients privacy.directions shrinkage
    privacy.ledger privacy.pure privacy.k_norm privacy.wishart privacy.mechanism privacy.noise
    privacy.inversion
    privacy.laws privacy.prefix_sums privacy.square_root privacy.honaker privacy.k_ary
    privacy.window_tree privacy.staggered
    privacy.generalised_gaussian privacy.printed_laws privacy.subsampling | privacy.certificate
    privacy.sequential privacy.one_point | privacy.books
    privacy.selection privacy.noisy_vertex privacy.padded_tree privacy.unknown_horizon
    privacy.sparse_vector privacy.restarting_trees privacy.remaining privacy.redraw_bits
    privacy.epochs privacy.noisy_total privacy.batch_sums privacy.step_budgets privacy.fading
    privacy.calibrate
    selection_bias
    domains.domain
    domains.subspaces domains.thresholds domains.hit_and_run domains.frank_wolfe_projection
    domains.separation domains.graphs domains.dags domains.set_functions
    domains.balls domains.boxes domains.simplices domains.hypersimplices domains.concave_bases
    domains.submodular_bases domains.spanning_trees domains.flows domains.spectrahedra
    domains.products domains.lp_balls | domains.partition_bases domains.local_oracles
    losses.loss losses.minimise | losses.data_sums losses.quadratic_sums
    losses.linear losses.quadratic losses.predictions losses.revenue
    | losses.kink losses.regressions losses.ramps losses.ridge
    stochastic.features stochastic.truths stochastic.tables stochastic.noise | stochastic.answers
    | stochastic.populations stochastic.users
    convex.user_laws experts.adversaries experts.tables experts.lower_bound experts.drops
    experts.draws
    experts.log_concave
    | convex.adversaries experts.policies experts.calibration experts.dartboard
    experts.ball_sampling experts.potential | convex.scenarios convex.corners experts.resolution
    experts.ball_draws
    protocols links privacy.certified_sums privacy.loss_gradients
    experts.spec convex.spec outside privacy.generalised_sums
    stochastic.spec privacy.shariff_sheffet
    privacy.peeling | privacy.hard_thresholding
    logs ratings problems ridge frank_wolfe lasso batched convex.one_point
    convex.batch_plan | convex.batched_descent
    convex.leaders experts.segments experts.weighted_majority convex.projection_free
    stochastic.frank_wolfe glm optimism frank_wolfe_bandit
    stochastic.blocks stochastic.localised stochastic.gradient_batches experts.ball_players
    convex.value_leaders
    convex.expiring convex.local_steps convex.noisy_descent demand moments fading_regression
    centring convex.problems experts.problems bounds first_rounds
    stochastic.sampled_descent stochastic.problems
    experts.printed_doubling
    | envs.* agents.*
    settings progress plots replay provenance slopes | runs loop | store planned | results
    evaluate auditing.bounds auditing.scores auditing.worlds | auditing.exact
    | auditing.peelings auditing.choices | auditing.witness
    | auditing.contexts auditing.data auditing.advice auditing.views auditing.ratios
    | auditing.search auditing.report | auditing.audit
    auditing.rehearsal auditing.everyone
    clients.answers | clients.bridge clients.foreign clients.logged
    | clients.from_gymnasium clients.mabwiser clients.player clients.river
    experiments.case experiments.cells experiments.releases experiments.command
    experiments.drawing experiments.paper_table experiments.labs.catalogue
    | experiments.grid experiments.labs.notebook
    experiments.contextual_cases experiments.convex_cases experiments.stream_cases
    experiments.window_cases
    experiments.experts_cases
    experiments.sgd.printed
    experiments.sgd.readings experiments.sgd.references experiments.sgd.runs
    experiments.sgd.study | experiments.sgd.figures experiments.sgd.tables
    experiments.window.plan | experiments.window.runs | experiments.window.costs
    experiments.window.questions experiments.window.table_1 | experiments.window.study
    experiments.window.tables experiments.window.figures | experiments.window.command
    experiments.window experiments.window.__main__ experiments.labs experiments.labs.__main__
    experiments.sgd.command | experiments.paper_tables experiments.sgd experiments.sgd.__main__
    experiments.cases experiments.convex.plan experiments.experts.plan
    experiments.experts.families
    | experiments.convex.runs experiments.experts.runs
    experiments.convex.horizons experiments.convex.epsilons experiments.convex.adaptivity
    experiments.experts.questions experiments.experts.audit
    experiments.reproduce experiments.pricing.study experiments.figure_5_1.study
    experiments.convex.study experiments.convex.drawing experiments.experts.study
    experiments.pricing.figure experiments.figure_5_1.figure
    experiments.convex.figures experiments.convex.tables
    experiments.experts.figures experiments.experts.tables
    experiments.pricing experiments.pricing.__main__
    experiments.convex experiments.convex.__main__ experiments.experts
    experiments.experts.__main__
    experiments.figure_5_1 experiments.figure_5_1.__main__
    comparisons sweeps.file | sweeps.plan sweeps.workers | sweeps.folder | sweeps.audits
    sweeps.run | sweeps
    report.drawing | report.figures | report.page | report
    tables | commands.options | commands.listings commands.compare commands.certify commands.audit
    commands.reproduce commands.lab commands.sweep commands.report | commands | cli | __main__
"""
FLOORS = [floor.split() for floor in ORDER.strip().replace("\n", "|").split("|")]
INITS = {package.partition(".")[2] for package in FOLDERS}
TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.splitlines()


def folder(package):
    return ROOT / (FOLDERS[package] or package.replace(".", "/"))


def modules():
    """Dotted name below dpbandit ("" for the root) -> file, of every module in a package."""
    for package in FOLDERS:
        for file in folder(package).glob("*.py"):
            parts = [*package.split(".")[1:], *([file.stem] if file.stem != "__init__" else [])]
            yield ".".join(parts), file


MODULES = dict(modules())


def imports(file):
    """What a file imports of dpbandit, lazily or not, as names of modules; "" is the root."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: relative import"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [n if n.removeprefix("dpbandit.") in MODULES else node.module for n in inner]
        else:
            continue
        yield from (n[9:] for n in names if n.split(".")[0] == "dpbandit")


def floor(module):
    found = [i for i, patterns in enumerate(FLOORS) if any(fnmatch(module, p) for p in patterns)]
    assert len(found) == 1, f"{module} is on {len(found)} floors: give it one"
    return found[0]


def upward(module, file):
    """The imports of `module` that do not come from a floor above it."""
    for target in imports(file):
        inside = [name for name in MODULES if name.startswith(f"{target}.")]
        if target.startswith(f"{module}.") and module in INITS:
            continue  # an __init__ may show its own
        lowest = max(map(floor, inside)) if inside else floor(target) if target else 99
        if lowest >= floor(module):
            yield target


def test_every_module_imports_only_from_floors_above():
    """Siblings are strangers, and nothing inside imports the root package."""
    wrong = {m: list(upward(m, file)) for m, file in MODULES.items() if m != ""}
    assert {module: targets for module, targets in wrong.items() if targets} == {}


def test_the_law_has_teeth(tmp_path):
    """Prey: a sibling, the root, a floor below, each in every way Python can import it."""
    prey = tmp_path / "prey.py"
    for line, target in (
        ("from dpbandit.envs.glm import GLMBandit", "envs.glm"),
        ("from dpbandit.envs import glm", "envs.glm"),
        ("import dpbandit.cli", "cli"),
        ("def f():\n    import dpbandit", ""),
        ("from dpbandit import compare", ""),
        ("from dpbandit.agents import LinUCB", "agents"),
    ):
        prey.write_text(line)
        assert list(upward("envs.pricing", prey)) == [target]


def test_environments_know_no_privacy_and_agents_no_environments():
    forbidden = {"envs": ("privacy", "agents"), "agents": ("envs", "problems", "evaluate")}
    for module, file in MODULES.items():
        for target in imports(file):
            assert not target.startswith(forbidden.get(module.split(".")[0], ("nothing",))), module
        if module.startswith("agents"):
            assert "gymnasium" not in file.read_text()


def test_the_list_of_packages_is_complete():
    """Every folder with Python in it below the four roots is a package (data folders are not)."""
    found = set()
    for package in ("dpbandit", "dpbandit.agents", "dpbandit.envs", "dpbandit.experiments"):
        top = folder(package)
        for file in top.rglob("__init__.py"):
            found.add(".".join([package, *file.parent.relative_to(top).parts]))
    assert found == set(SETUP["packages"])
    loose = {Path(name).parent.as_posix() for name in TRACKED if name.endswith(".py")}
    homes = {folder(package).relative_to(ROOT).as_posix() for package in found}
    tops = tuple(f"{home}/" for home in homes)
    data = {"envs/data", "experiments/labs/notebooks"}
    assert {home for home in loose - homes if home.startswith(tops)} <= data
    assert SETUP["package-data"]["dpbandit.envs"] == ["data/*"]


def test_importing_is_cheap_and_lazy():
    """No plotting, tables or accountants; less than twice the processor time that the libraries
    take which cannot be done without, best of 3 of either (on any machine)."""
    heavy = ("dp_accounting", "matplotlib", "seaborn", "pandas", "pyarrow", "typer")
    fastest = []
    for wanted in ("scipy.optimize, scipy.special, gymnasium", "dpbandit"):
        code = (
            f"import sys, time, {wanted}\n"
            f"print(time.process_time(), *[m for m in {heavy} if m in sys.modules])"
        )
        runs = []
        for _ in range(3):
            done = subprocess.run(
                [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
            )
            assert (done.returncode, done.stderr) == (0, "")
            runs.append(done.stdout.split())
        assert [loaded for _, *loaded in runs] == [[]] * 3
        fastest.append(min(float(seconds) for seconds, *_ in runs))
    assert fastest[1] < 2 * fastest[0]


def importable():
    for package in FOLDERS:
        yield package
        for info in pkgutil.iter_modules([str(folder(package))]):
            if not info.ispkg and info.name != "__main__":
                yield f"{package}.{info.name}"


@pytest.mark.parametrize("name", sorted(importable()))
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(name), verbose=False)
    assert result.failed == 0


def test_there_are_doctests():
    finder = doctest.DocTestFinder()
    found = [finder.find(importlib.import_module(name)) for name in importable()]
    assert sum(len(test.examples) for tests in found for test in tests) > 20


MACHINES = re.compile(
    r"/(?:work|tmp|home|root|Users)/\w+|//[\w.-]*(?:pypi|artifactory|nexus|mirror)[\w-]*\.[\w.]+"
)


def test_no_tracked_file_names_a_machine():
    """Absolute paths of somebody's machine, hosts of package registries."""
    files = [ROOT / name for name in TRACKED if (ROOT / name).is_file()]
    texts = {file: file.read_bytes() for file in files}
    texts = {file: text.decode() for file, text in texts.items() if b"\0" not in text}
    found = {file.name: MACHINES.findall(text) for file, text in texts.items()}
    assert {name: places for name, places in found.items() if places} == {}
    prey = ("/" + "tmp/x", "https:/" + "/test.pypi" + ".org/simple")
    assert all(MACHINES.search(text) for text in prey)
