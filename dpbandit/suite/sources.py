"""Find the source files of an agent, and hash them."""

import ast
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.machinery import PathFinder
from importlib.util import find_spec, resolve_name
from inspect import getsourcefile
from pathlib import Path
from sysconfig import get_path

from dpbandit.specs import AgentConfig

_INSTALLED = {"site-packages", "dist-packages"}  # folders of packages that pip installs


def source_of(config: AgentConfig) -> str:
    """Return the hash of an agent's source files; of a wrapper, then a blank and the inner agent's.

    The hash covers the file of the config's class and all Python files that it imports, directly or
    not, by `import` statements. It omits modules of `importlib.import_module`, data that an agent
    reads, installed packages, and dpbandit, whose hash is the `source` of a provenance.
    """
    inner = getattr(config, "agent", None)
    digest = sha256(Path(getsourcefile(type(config)) or "").read_bytes())
    for name, file in sorted(files_of(type(config)).items()):
        digest.update(name.encode() + file.read_bytes())
    source = digest.hexdigest()[:16]
    return source if inner is None else f"{source} {source_of(inner)}"


def files_of(kind: type) -> dict[str, Path]:
    """Return the files that a class's file imports, installed packages excepted, by module."""
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
    """Return a hash of the files of these modules of dpbandit and of its modules that they import.

    The hash identifies the program that made a result. As another program may give the same
    result, results with another hash are played again, see `dpbandit.suite.replaying`.
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
                waiting += _imports_of_ours(name, found[name])
    digest = sha256()
    for name, file in sorted(found.items()):
        digest.update(name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]


_FACES = {"dpbandit", "dpbandit.agents", "dpbandit.envs"}
"""Packages that import all agents and environments, and so are left out of hashes."""


@cache
def _imports_of_ours(module: str, file: Path) -> tuple[str, ...]:
    return (*_imported(module, file),)


def _imported(module: str, file: Path) -> Iterator[str]:
    """Yield full names of all that a file imports: modules, but also classes and functions."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in _statements(ast.parse(file.read_bytes()).body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_packages(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            with suppress(ImportError):  # a relative import beyond the top package fails anyway
                base = resolve_name(base, package)
                for alias in node.names:
                    yield from _with_packages(f"{base}.{alias.name}")


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield statements, however deep, but no expressions, which import nothing."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _statements(getattr(node, part, ()))


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[: many + 1]) for many in range(len(parts)))


def _file(module: str) -> Path | None:
    """Return a module's file; None for dpbandit, the standard library and installed packages."""
    top = module.partition(".")[0]
    if top == "dpbandit" or top in sys.stdlib_module_names:
        return None
    loaded = sys.modules.get(module)
    path = _path_of(module) if loaded is None else getattr(loaded, "__file__", None)
    file = Path(path or "").resolve()
    outside = not _INSTALLED & {*file.parts} and Path(get_path("stdlib")) not in file.parents
    return file if file.suffix == ".py" and file.is_file() and outside else None


def _path_of(module: str) -> str | None:
    """Return the file of a module that is not loaded, without importing it; None if unknown."""
    path, origin = None, None
    for name in _with_packages(module):
        spec = PathFinder.find_spec(name, path)
        if spec is None or (name != module and spec.submodule_search_locations is None):
            return None
        path, origin = spec.submodule_search_locations, spec.origin
    return origin
