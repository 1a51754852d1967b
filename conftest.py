"""Limit BLAS to one thread, so that CPU-seconds of a process measure its work, and keep byte code,
of libraries too: the tests start a hundred processes, which would compile all they import."""

import os
import sys

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
