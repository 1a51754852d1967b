"""Run the tests with every direct dependency at the lowest version that pyproject.toml allows::

    python tools/lowest.py [arguments of pytest]

The tests run in a new, temporary virtual environment. If another dependency excludes a lowest
version, the program stops. Raise this version in pyproject.toml, and any with which tests fail.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# program that checks that the lowest versions are installed
FLOORS = """
import re, sys
from importlib.metadata import version
from packaging.requirements import Requirement
from packaging.version import Version

for line in sys.argv[1:]:
    wanted = Requirement(line)
    floors = [part.version for part in wanted.specifier if part.operator == ">="]
    if floors and Version(version(wanted.name)) != Version(floors[0]):
        sys.exit(f"Expected {line} to start at {version(wanted.name)}, the lowest that installs.")
"""


def main(arguments: list[str]) -> int:
    """Make a virtual environment, check its versions, run the tests; return pytest's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        scripts = Path(folder, "bin")
        activation = {"VIRTUAL_ENV": folder, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
        env = os.environ | activation

        def run(*command: str) -> int:
            return subprocess.run(command, cwd=ROOT, env=env).returncode

        return (
            run(str(scripts / "pip"), "install", "--quiet", "uv")
            or run("uv", "pip", "install", "--quiet", "--resolution=lowest-direct", "-e", ".[dev]")
            or run(str(scripts / "python"), "-c", FLOORS, *direct())
            or run("pytest", *arguments)
        )


def direct() -> list[str]:
    """Return the requirements of pyproject.toml, including those of the extra `dev`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["dev"]]
    extra_prefix = f"{project['name']}["
    for line in [line for line in lines if line.startswith(extra_prefix)]:
        lines.remove(line)
        names = line[len(extra_prefix) : -1].split(",")
        lines += [part for extra in names for part in extras[extra]]
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
