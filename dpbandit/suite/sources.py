"""Which files an agent is written in, and a hash of them."""

import ast
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.machinery import PathFinder
from importlib.util import find_spec, resolve_name
from inspect import getsourcefile
from pathlib import Path
from sysconfig import get_path

from dpbandit.specs import AgentConfig

_INSTALLED = {"site-packages", "dist-packages"}


def source_of(config: AgentConfig) -> str:
    """A hash of the files of a config's class, and of those of configs inside it.

    Of the class's own file, and of all Python files that it imports and that these import, at the
    top or in a function, by an `import` statement. Not of what `importlib.import_module` gets by a
    name, of data that an agent reads, nor of installed packages. What is in dpbandit itself has a
    hash of its own, the `source` of a provenance.
    """
    inner = getattr(config, "agent", None)
    digest = sha256(Path(getsourcefile(type(config)) or "").read_bytes())
    for name, file in sorted(files_of(type(config)).items()):
        digest.update(name.encode() + file.read_bytes())
    source = digest.hexdigest()[:16]
    return source if inner is None else f"{source} {source_of(inner)}"


def files_of(kind: type) -> dict[str, Path]:
    """Module -> file of all that a class's file imports and that is in no installed package."""
    found, waiting = dict[str, Path](), [*_with_packages(kind.__module__)]
    while waiting:
        name = waiting.pop()
        file = None if name in found else _file(name)
        if file is not None:
            found[name] = file
            waiting += _imported(name, file)
    found.pop(kind.__module__, None)
    return found


@cache
def program_of(*modules: str) -> str:
    """A hash of the files of dpbandit that these modules of it are written in and import.

    It says what a result was made by. A change of it need not change a result, so results are held
    to the program by playing them, see `dpbandit.suite.replaying`.
    """
    found, waiting = dict[str, Path](), [*modules]
    while waiting:
        name = waiting.pop()
        if name in found or name.partition(".")[0] != "dpbandit" or name in _FACES:
            continue
        with suppress(ModuleNotFoundError):  # the last part may be a class or a function
            spec = find_spec(name)
            if spec is not None and spec.origin is not None:
                found[name] = Path(spec.origin)
                waiting += _imported(name, found[name])
    digest = sha256()
    for name, file in sorted(found.items()):
        digest.update(name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]


_FACES = {"dpbandit", "dpbandit.agents", "dpbandit.envs"}
"""Packages that name all agents and environments, and import them when they are used"""


def _imported(module: str, file: Path) -> Iterator[str]:
    """Names that may be modules and that a file imports."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_packages(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            with suppress(ImportError):  # beyond the top: nobody can import it
                base = resolve_name(base, package)
                for alias in node.names:
                    yield from _with_packages(f"{base}.{alias.name}")


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[: many + 1]) for many in range(len(parts)))


def _file(module: str) -> Path | None:
    """The Python file of a module outside of dpbandit, of Python and of what is installed."""
    top = module.partition(".")[0]
    if top == "dpbandit" or top in sys.stdlib_module_names:
        return None
    loaded = sys.modules.get(module)
    path = _looked_for(module) if loaded is None else getattr(loaded, "__file__", None)
    file = Path(path or "").resolve()
    outside = not _INSTALLED & {*file.parts} and Path(get_path("stdlib")) not in file.parents
    return file if file.suffix == ".py" and file.is_file() and outside else None


def _looked_for(module: str) -> str | None:
    """Where a module is that is not loaded, which is not run for that."""
    path, origin = None, None
    for name in _with_packages(module):
        spec = PathFinder.find_spec(name, path)
        if spec is None or (name != module and spec.submodule_search_locations is None):
            return None
        path, origin = spec.submodule_search_locations, spec.origin
    return origin
