"""Run the tests with other processors' arithmetic, which adds terms in another order::

    python tools/other_cpus.py [arguments of pytest]

NumPy runs without instructions beyond its baseline, and OpenBLAS with each of `KERNELS`, except
those that this machine cannot run or uses anyway. A failure means that a test depends on the last
bit of a sum, or on the order of ties.
"""

import os
import subprocess
import sys

import numpy as np

KERNELS = ("Sandybridge", "Haswell", "SkylakeX", "Zen")  # of OpenBLAS
# program that prints the OpenBLAS kernels in use
PROBE = """
import numpy, scipy.linalg, threadpoolctl
a = numpy.random.default_rng(0).random((99, 99))
scipy.linalg.svd(numpy.linalg.inv(a @ a.T)) and scipy.linalg.blas.dger(1.0, a[0], a[1])
print(*{library["architecture"] for library in threadpoolctl.threadpool_info()})
"""


def main(arguments: list[str]) -> int:
    """Run the tests with each set of environment variables; return 1 if any failed."""
    failed = [variables for variables in environments() if not passes(variables, arguments)]
    print("failed under:", *failed or ["none"], sep="\n  ")
    return bool(failed)


def environments() -> list[dict[str, str]]:
    """Return sets of environment variables to test with; print those that are left out."""
    found = []
    if extensions := np.show_config(mode="dicts")["SIMD Extensions"].get("found"):
        found.append({"NPY_DISABLE_CPU_FEATURES": " ".join(extensions)})
    else:
        print("left out: NumPy's baseline, which is all that this machine has")
    default = architectures({})
    for kernel in KERNELS:
        variables = {"OPENBLAS_CORETYPE": kernel}
        taken = architectures(variables)
        if taken == default:
            print(f"left out: OpenBLAS for {kernel}, which is the default here")
        elif kernel not in taken:
            print(f"left out: OpenBLAS for {kernel}, which this machine cannot run")
        else:
            found.append(variables)
    return found


def architectures(variables: dict[str, str]) -> set[str]:
    """Return the OpenBLAS kernels in use under these variables; empty if the CPU lacks them."""
    command = [sys.executable, "-c", PROBE]
    ran = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    return set(ran.stdout.split()) if ran.returncode == 0 else set()


def passes(variables: dict[str, str], arguments: list[str]) -> bool:
    """Run the tests under these environment variables; return True if they pass."""
    print("==", variables, flush=True)
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, env=os.environ | variables).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
