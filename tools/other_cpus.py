"""The tests in the arithmetic of other processors: sums come out in other orders there::

    python tools/other_cpus.py [arguments of pytest]

NumPy runs without the instructions that it found beyond its baseline, and OpenBLAS with the kernels
of each of `KERNELS`, those left out that this machine cannot run or that are its own. Whoever reads
a failure: no test may rest on the last bit of a sum, nor on whom a tie goes to.
"""

import os
import subprocess
import sys

import numpy as np

KERNELS = ("Sandybridge", "Haswell", "SkylakeX", "Zen")
PROBE = """
import numpy, scipy.linalg, threadpoolctl
a = numpy.random.default_rng(0).random((99, 99))
scipy.linalg.svd(numpy.linalg.inv(a @ a.T)) and scipy.linalg.blas.dger(1.0, a[0], a[1])
print(*{library["architecture"] for library in threadpoolctl.threadpool_info()})
"""


def main(arguments: list[str]) -> int:
    """Run the tests once for each environment; 1 if any of them failed."""
    failed = [variables for variables in environments() if not passes(variables, arguments)]
    print("failed under:", *failed or ["none"], sep="\n  ")
    return bool(failed)


def environments() -> list[dict[str, str]]:
    """The variables of each, with a line about every one that is left out."""
    found = []
    if extensions := np.show_config(mode="dicts")["SIMD Extensions"].get("found"):
        found.append({"NPY_DISABLE_CPU_FEATURES": " ".join(extensions)})
    else:
        print("left out: NumPy's baseline, which is all that this machine has")
    own = architectures({})
    for kernel in KERNELS:
        variables = {"OPENBLAS_CORETYPE": kernel}
        taken = architectures(variables)
        if taken == own:
            print(f"left out: OpenBLAS for {kernel}, which takes what it takes by itself here")
        elif kernel not in taken:
            print(f"left out: OpenBLAS for {kernel}, which this machine cannot run")
        else:
            found.append(variables)
    return found


def architectures(variables: dict[str, str]) -> set[str]:
    """Whose kernels OpenBLAS runs; none where they stop at an unknown instruction."""
    command = [sys.executable, "-c", PROBE]
    ran = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    return set(ran.stdout.split()) if ran.returncode == 0 else set()


def passes(variables: dict[str, str], arguments: list[str]) -> bool:
    """Whether the tests do under these variables."""
    print("==", variables, flush=True)
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, env=os.environ | variables).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
