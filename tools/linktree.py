"""Build build/types/dpbandit from links, so that static tools see the installed layout.

The folders envs/, agents/ and experiments/ are imported as dpbandit.envs and so on, a mapping
that type checkers cannot follow. Run this, then `mypy -p dpbandit` with MYPYPATH=build/types.
"""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAPPED = ("agents", "envs", "experiments")


def main() -> None:
    """Recreate the tree of links."""
    target = ROOT / "build" / "types" / "dpbandit"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for source in sorted((ROOT / "dpbandit").iterdir()):
        if source.name != "__pycache__":
            (target / source.name).symlink_to(source)
    for name in MAPPED:
        (target / name).symlink_to(ROOT / name)


if __name__ == "__main__":
    main()
