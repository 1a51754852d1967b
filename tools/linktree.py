"""Make the installed layout as a tree of links, for tools that read code and do not run it.

The folders envs/, agents/ and experiments/ are imported as dpbandit.envs and so on, a mapping that
type checkers and editors cannot follow. `pip install -e` makes such a tree (tools/backend.py); this
program makes one in build/types, for `mypy -p dpbandit` with MYPYPATH=build/types.
"""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAPPED = ("agents", "envs", "experiments")  # folders that are imported as parts of dpbandit


def link(target: Path) -> None:
    """Make `target` a new folder of links to all that is in dpbandit/ and to `MAPPED` folders."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for source in sorted((ROOT / "dpbandit").iterdir()):
        if source.name != "__pycache__":
            (target / source.name).symlink_to(source)
    for name in MAPPED:
        (target / name).symlink_to(ROOT / name)


if __name__ == "__main__":
    link(ROOT / "build" / "types" / "dpbandit")
