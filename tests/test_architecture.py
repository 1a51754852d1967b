"""The shape of the project: imports point one way, packages are complete, imports are cheap."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import find_spec
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest

from tests.each import by_rota
from tools.measures import statements
from tools.mutants import TABLE, sources

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUP, PROJECT = PYPROJECT["tool"]["setuptools"], PYPROJECT["project"]
PACKAGES, PARENTS = SETUP["packages"], SETUP["package-dir"]
"""Names of all packages; package -> its folder, of those that stand beside dpbandit/."""
FLOORS = """
    version checkout lazy
    base
    shelf
    domains privacy.curves privacy.loss_distributions privacy.premises privacy.notion
    losses privacy.spends
    privacy.ledger privacy.pure
    privacy.mechanism privacy.people privacy.wishart
    specs privacy.moments privacy.gradients
    agent privacy.residuals privacy.clicks privacy.sales
    privacy.noise
    privacy.prefix_sums privacy.batches privacy.choices privacy.vertices privacy.sparse_vector
    privacy.factors privacy.peeling privacy.messages
    privacy.calibrated privacy.fading
    privacy.person_sums
    privacy.certificate
    privacy.bits privacy.generalised privacy.gradual privacy.subsampling
    offline
    privacy
    envs agents
    limits results
    running
    auditing clients report testing
    studies
    suite
    experiments
    commands
    cli
    __main__
"""
"""Rooms: a package with all below it, or a lone module. Imports go up, to floors above."""
FAMILIES = ("arms", "choice", "contextual", "convex", "experts", "lists", "people", "streams")
MAY_USE = {
    (half, name): {"contextual"} for half in ("agents", "envs") for name in ("choice", "lists")
}
MAY_USE |= {("envs", "arms"): {"contextual"}, ("agents", "contextual"): {"arms"}}
MAY_USE |= {(half, "streams"): {"convex"} for half in ("agents", "envs")}
"""Families are strangers but for these."""
INITS = {package.partition(".")[2] for package in PACKAGES}
LISTED = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
TRACKED = subprocess.run(LISTED, cwd=ROOT, capture_output=True, text=True, check=True)
TRACKED = TRACKED.stdout.splitlines()


def folder(package):
    """Below the nearest parent that has a folder of its own, as setuptools finds it."""
    if package in PARENTS:
        return ROOT / PARENTS[package]
    parent, dot, name = package.rpartition(".")
    return folder(parent) / name if dot else ROOT / name


def modules():
    """Dotted name below dpbandit ("" for the root) -> file, of every module in a package."""
    for package in PACKAGES:
        for file in folder(package).glob("*.py"):
            parts = [*package.split(".")[1:], *([file.stem] if file.stem != "__init__" else [])]
            yield ".".join(parts), file


MODULES = dict(modules())


parsed = cache(ast.parse)


@cache
def imported(text):
    """Return two lists of the modules that a source imports: at its top, and anywhere."""
    body, found = parsed(text).body, {}
    for node in statements(body):
        if isinstance(node, ast.Import):
            found[node] = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, ast.unparse(node)
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found[node] = [
                n if n.removeprefix("dpbandit.") in MODULES else node.module for n in inner
            ]
    at_the_top = [name for node in body for name in found.get(node, ())]
    return at_the_top, [name for names in found.values() for name in names]


def imports(text):
    """Return the modules of dpbandit that a source imports anywhere; "" is the root."""
    return [name[9:] for name in imported(text)[1] if name.split(".")[0] == "dpbandit"]


def room(module):
    """The longest name of a room that `module` is, or is inside of, and its floor."""
    inside = [r for r in ROOMS if module == r or module.startswith(f"{r}.")]
    assert inside, f"{module} is in no room: give it one"
    return max(inside, key=len)


ROOMS = {name: i for i, line in enumerate(FLOORS.split("\n")) for name in line.split()}


def family(module):
    half, _, rest = module.partition(".")
    name = rest.partition(".")[0]
    return (half, name) if half in ("agents", "envs") and name in FAMILIES else None


def forbidden(module, file):
    """Yield imports of `module` not allowed: the root, rooms on its floor or below, strangers."""
    for target in imports(file.read_text()):
        if target == "" or target not in MODULES:
            yield target
        elif room(target) != room(module):
            if ROOMS[room(target)] >= ROOMS[room(module)]:
                yield target
        elif target in INITS and not module.startswith(f"{target}."):
            yield from () if family(module) is None else (target,)
        elif family(module) and family(target):
            half, mine = family(module)
            may = (mine, *MAY_USE.get((half, mine), ()))
            if family(target) not in [(half, name) for name in may]:
                yield target


def test_imports_go_up_and_families_are_strangers():
    """Nothing imports the root, a room on its own floor or below, or another family; environments
    know no privacy, and agents no environments, nor Gymnasium."""
    strange = {"envs": ("privacy", "agents"), "agents": ("envs",)}
    wrong = {m: list(forbidden(m, file)) for m, file in MODULES.items() if m != ""}
    assert {module: targets for module, targets in wrong.items() if targets} == {}
    for module, file in MODULES.items():
        for target in imports(file.read_text()):
            assert not target.startswith(strange.get(module.split(".")[0], ("nothing",))), module
        if module.startswith("agents"):
            assert "gymnasium" not in file.read_text()


def test_what_is_imported_first_is_asked_for():
    """Catches a library that is there because another one needs it: at the top of modules stand
    Python's own and those that pyproject.toml names for everybody."""
    named = {re.split(r"[<>=]", one)[0].replace("-", "_") for one in PROJECT["dependencies"]}
    known = sys.stdlib_module_names | named | {"dpbandit"}
    used = {
        m: {name.split(".")[0] for name in imported(file.read_text())[0]}
        for m, file in MODULES.items()
    }
    other = {module: names - known for module, names in used.items()}
    assert {m: names for m, names in other.items() if names} == {"results.plots": {"PIL"}}
    assert "pillow" in named


def test_no_import_circles():
    """Inside of rooms, too: every module can be read after those that it imports."""
    graph = {
        m: {t for t in imports(file.read_text()) if t not in INITS or m in INITS}
        for m, file in MODULES.items()
        if m != ""
    }
    assert len([*TopologicalSorter(graph).static_order()]) >= len(graph)


def test_the_law_has_teeth(tmp_path):
    """Broken modules: a stranger, the root, a floor below, in every way Python can import it."""
    broken = tmp_path / "broken.py"
    for line, target in (
        ("from dpbandit.envs.convex.problems import Law", "envs.convex.problems"),
        ("from dpbandit.envs.convex import problems", "envs.convex.problems"),
        ("import dpbandit.cli", "cli"), ("def f():\n    import dpbandit", ""),
        ("from dpbandit import compare", ""), ("from dpbandit.agents import LinUCB", "agents"),
        ("from dpbandit.running.loop import play", "running.loop"),
    ):  # fmt: skip
        broken.write_text(line)
        assert list(forbidden("envs.contextual.glm", broken)) == [target]
    broken.write_text("from dpbandit.agents.convex.leaders import slope")
    assert list(forbidden("agents.streams.frank_wolfe", broken)) == []
    assert list(forbidden("agents.experts.ball", broken)) == ["agents.convex.leaders"]


def test_the_list_of_packages_is_complete():
    """Every folder with Python in it below the four roots is a package, data folders are not; of
    the folders beside the package three are modules of it."""
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
    assert set(PARENTS) == {"dpbandit.agents", "dpbandit.envs", "dpbandit.experiments"}
    assert SETUP["package-data"]["dpbandit.envs"] == ["data/*"]
    beside = {path.name for path in ROOT.iterdir() if path.stem.isidentifier()} - {"__pycache__"}
    known = {name for name in beside if find_spec(f"dpbandit.{Path(name).stem}")}
    assert known - {"dpbandit"} == {"agents", "envs", "experiments"}
    assert find_spec("dpbandit.dpbandit") is None


HEAVY = ["pandas", "pydantic", "joblib", "rich", "matplotlib", "seaborn", "pyarrow", "scipy"]
HEAVY += [f"scipy.{part}" for part in ("special", "linalg", "optimize", "stats")]
START = "import sys, time\nfrom dpbandit.cli import main\nsys.argv = 'dpbandit {}--help'.split()\n"
START += "try: main()\nexcept SystemExit: pass\n"
MAKE = "import gymnasium, dpbandit\ndpbandit.compare, dpbandit.agents.LinUCB\n"
MAKE += "gymnasium.make('dpbandit/OJPricing-v0')"
LOADS = {"import numpy, gymnasium": "", "import dpbandit": "", START.format(""): "", MAKE: "scipy"}
LOADS[START.format("compare ")] = "pydantic rich"  # Typer's own


def test_importing_is_cheap_and_lazy():
    """Nothing loads more than `LOADS`, and the package takes at most 1.3 times as long as NumPy and
    Gymnasium, the best of up to 8 turns of these two."""
    fastest = dict.fromkeys(LOADS, inf)
    for turn in range(8):
        for code, best in list(fastest.items())[: 2 if turn else None]:
            tail = f"print(time.process_time(), *[m for m in {HEAVY} if m in sys.modules])"
            command = [sys.executable, "-c", f"import sys, time\n{code}\n{tail}"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, "")
            seconds, *loaded = done.stdout.splitlines()[-1].split()
            assert {*loaded} <= {*LOADS[code].split()}
            fastest[code] = min(best, float(seconds))
        libraries, ours, *_ = fastest.values()
        if ours < 1.3 * libraries:
            return
    raise AssertionError(f"{ours:.2f} seconds, of libraries {libraries:.2f}")


def importable(package):
    yield package
    for info in pkgutil.iter_modules([str(folder(package))]):
        if not info.ispkg and f"{package}.{info.name}" != "dpbandit.__main__":
            yield f"{package}.{info.name}"


OF_CATALOGUES = [name for name in PACKAGES if re.match(r"dpbandit\.(agents|envs)\.", name)]
TURNS = {param.values[0]: param for param in by_rota(OF_CATALOGUES, 3, slow=False)}


@pytest.mark.parametrize("package", [TURNS.get(name, name) for name in PACKAGES])
def test_doctests(package):
    """Families of agents and environments, whose examples are all of one form, come in turns."""
    for name in importable(package):
        assert doctest.testmod(importlib.import_module(name), verbose=False).failed == 0, name


CLASSES = {}
"""Class -> its source, of every module that can be imported."""


def read_classes():
    for name in (name for package in PACKAGES for name in importable(package)):
        module = importlib.import_module(name)
        for node in statements(parsed(Path(module.__file__).read_text()).body):
            cls = vars(module).get(getattr(node, "name", None))
            if isinstance(node, ast.ClassDef) and getattr(cls, "__module__", "") == name:
                CLASSES[cls] = node


def methods(cls):
    return [node for node in CLASSES[cls].body if isinstance(node, ast.FunctionDef)]


@cache
def documented(cls):
    """Names of methods, properties and attributes with a docstring in a class's source."""
    body = CLASSES[cls].body if cls in CLASSES else []
    told = {a.target.id for a, b in pairwise(body) if isinstance(a, ast.AnnAssign) and string(b)}
    return told | {m.name for m in body if isinstance(m, ast.FunctionDef) and string(m.body[0])}


def string(node):
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


@cache
def members(cls):
    found = {n for c in cls.__mro__[:-1] for n in (*vars(c), *inspect.get_annotations(c))}
    return {name for name in found if not name.startswith("_")}


def parameters(cls, name):
    thing = vars(cls).get(name)
    thing = getattr(thing, "fget", None) or getattr(thing, "func", None) or thing
    return [*inspect.signature(thing).parameters] if inspect.isfunction(thing) else None


@cache
def protocols():
    return [cls for cls in CLASSES if getattr(cls, "_is_protocol", False)]


@cache
def stored(cls):
    """Attributes that methods set."""
    nodes = (node for node in ast.walk(CLASSES[cls]) if isinstance(node, ast.Attribute))
    return {node.attr for node in nodes if isinstance(node.ctx, ast.Store)}


@cache
def implemented(cls):
    """The project's protocols whose members a class has; of a family's own only those of its own,
    and none by a protocol, so that no two document each other."""
    have = members(cls).union(*(stored(base) for base in cls.__mro__ if base in CLASSES))
    found = []
    for protocol in () if cls in protocols() else protocols():
        home = protocol.__module__.rpartition(".")[0]
        near = cls.__module__.startswith(home) or home.split(".")[1] not in ("agents", "envs")
        if near and protocol not in cls.__mro__:
            found += [protocol] if members(protocol) and members(protocol) <= have else []
    return found


@cache
def overridden(cls, name):
    """The class, protocol or library's class that documents what `cls` defines under a name."""
    for base in cls.__mro__[1:-1]:
        if base in CLASSES:
            if name in documented(base) or (name in vars(base) and overridden(base, name)):
                return base
        elif getattr(vars(base).get(name), "__doc__", None):
            return base
    for base in (base for protocol in implemented(cls) for base in protocol.__mro__):
        if name in documented(base) and parameters(base, name) in (None, parameters(cls, name)):
            return base
    return None


def test_a_method_is_documented_once_where_it_is_defined_first():
    """Catches a public method or property without a docstring, and a docstring of an override,
    which repeats the base's or contradicts it: what is special there is a comment, or stands in the
    docstring of the class."""
    read_classes()
    missing, again = [], []
    for cls in CLASSES:
        public = not any(
            part.startswith("_") for part in f"{cls.__module__}.{cls.__name__}".split(".")
        )
        for method in methods(cls):
            base = overridden(cls, method.name)
            place = f"{cls.__module__}.{cls.__name__}.{method.name}"
            if base and string(method.body[0]):
                again.append(f"{place} of {base.__module__}.{base.__name__}")
            elif public and not base and not method.name.startswith("_"):
                missing += [] if method.name in documented(cls) else [place]
    assert (missing, again) == ([], [])


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
    broken = ("/" + "tmp/x", "https:/" + "/test.pypi" + ".org/simple")
    assert all(MACHINES.search(text) for text in broken)


def test_faults_are_where_mutants_puts_them():
    """Catches a fault of tools/mutants.toml whose line has changed, or whose tests have moved."""
    groups = tomllib.loads(TABLE.read_text())["group"]
    assert sum(len(group["faults"]) for group in groups) > 200
    for group in groups:
        text = "\0".join(text for _, text in sources(ROOT / group["where"]))
        assert [old for old, _ in group["faults"] if text.count(old) != 1] == []
        tests = [part for part in group["tests"].split() if part.startswith("tests/")]
        assert all((ROOT / part).exists() for part in tests), tests
