#!/usr/bin/env bash
# What a client sees of the dpbandit that is installed: types, and no module that is none. In another
# folder, with the Python and the mypy on the path.
set -euo pipefail
checkout=$(realpath "$(dirname "$0")/..")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
unset PYTHONPATH

cat >client.py <<'END'
import dpbandit
from dpbandit.agents import DPUCB
from dpbandit.envs import OJPricing
from dpbandit.testing import check_agent

checks: tuple[str, ...] = check_agent(DPUCB(epsilon=1.0), OJPricing().spec)
results: dpbandit.Results = dpbandit.compare(OJPricing, {"DP-UCB": DPUCB()}, horizon=100)
END
mypy --strict client.py
echo 'DPUCB(epsilon="one")' >>client.py
if mypy --strict client.py >found.txt; then
    echo "Expected mypy to see that epsilon is no string." >&2
    exit 1
fi
grep -q 'Argument "epsilon" to "DPUCB" has incompatible type "str"' found.txt

python - "$checkout" <<'END'
import sys
from importlib.util import find_spec
from subprocess import check_output

import dpbandit.agents
from dpbandit.base.files import source_digest

assert not any(map(find_spec, ("dpbandit.dpbandit", "dpbandit.tests", "dpbandit.docs")))
if "__editable__" in dpbandit.__file__:  # the same program as the checkout's
    code = "from dpbandit.base.files import source_digest; print(source_digest())"
    digest = check_output([sys.executable, "-c", code], cwd=sys.argv[1], text=True).strip()
    assert digest == source_digest(), (digest, source_digest())
END
