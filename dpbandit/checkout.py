"""Imports in a checkout, where agents, envs and experiments are folders beside `dpbandit`."""

from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

SIBLING_PACKAGES = ("dpbandit.agents", "dpbandit.envs", "dpbandit.experiments")  # beside dpbandit


class SiblingFinder:
    """Import finder for sub-packages of `dpbandit` that a checkout has as sibling folders."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the import spec of a sibling package, or None for other modules."""
        if name not in SIBLING_PACKAGES:
            return None
        return PathFinder.find_spec(name, [str(Path(__file__).resolve().parents[1])])
