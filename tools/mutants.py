"""Insert faults into a copy of the source, one at a time, and check that tests fail.

    python tools/mutants.py                   every fault of `mutants.toml`
    python tools/mutants.py choices streams   faults or groups with one of these words

Exits with 1 if a fault survives, if its text does not occur exactly once (it is stale: correct the
table), or if tests fail without a fault.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".toml")  # of faults
TIMEOUT = 900
"""Seconds after which tests are stopped; a fault that slows them so much counts as noticed"""


def main(words: list[str]) -> int:
    """Try the faults of the table, or those with one of the words; return the exit code."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder)
        copy_source(copy)
        for group in tomllib.loads(TABLE.read_text())["group"]:
            where, tests = group["where"], group["tests"]
            faults = [
                (old, new)
                for old, new in group["faults"]
                if not words or any(word in f"{where} {tests} {old} {new}" for word in words)
            ]
            if faults and run(copy, tests) != "survived":
                print(f"FAILS without any fault: {tests}", flush=True)
                found["fails without"] += len(faults)
                continue
            for old, new in faults:
                result = try_fault(copy, where, old, new, tests)
                found[result] += 1
                print(f"{result:<9} {where}: {old.strip()}  ->  {new.strip()}", flush=True)
    print(", ".join(f"{count} {result}" for result, count in sorted(found.items())))
    return int(set(found) != {"killed"})


def try_fault(copy: Path, where: str, old: str, new: str, tests: str) -> str:
    """Replace `old` by `new` in a copy; return "killed" if tests fail, "survived" or "stale"."""
    holding = [(path, text) for path, text in sources(copy / where) if old in text]
    if len(holding) != 1 or holding[0][1].count(old) != 1:
        return "stale"
    ((path, text),) = holding
    path.write_text(text.replace(old, new))
    try:
        return run(copy, tests)
    finally:
        path.write_text(text)


def sources(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the Python files of a folder, with their text."""
    for path in sorted(folder.rglob("*.py")):
        yield path, path.read_text()


def run(copy: Path, tests: str) -> str:
    """Run tests of the copy until one fails; return "survived" if none does."""
    options = ["-x", "-q", "-n", "0", "--tb=no", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *shlex.split(tests)]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return "killed"
    return {0: "survived", 1: "killed"}.get(done.returncode, "not run")


def copy_source(copy: Path) -> None:
    """Copy every file that Git does not ignore, with uncommitted changes, into a folder."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
