"""Imports in a checkout, where three sub-packages are folders beside this one."""

from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

BESIDE = ("dpbandit.agents", "dpbandit.envs", "dpbandit.experiments")


class Beside:
    """Finds those three, and nothing else, in the folder that has `dpbandit` in it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where `name` is, or None: ask the next finder."""
        if name not in BESIDE:
            return None
        return PathFinder.find_spec(name, [str(Path(__file__).resolve().parents[1])])
