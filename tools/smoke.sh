#!/usr/bin/env bash
# A wheel or sdist as its users have it: a fresh virtual environment, another folder, and most commands
# once, for each interpreter named (python3 where none is), all at a time.
#   tools/smoke.sh dist/dpbandit-1.1.0-py3-none-any.whl python3.11 python3.12 python3.13
set -euo pipefail
if (($# == 0)); then
    echo "Expected a wheel or an sdist, and interpreters if wanted." >&2
    exit 2
fi
package=$(realpath "$1")
shift
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
unset PYTHONPATH

study='
name = "Smoke"
replicas = 2
horizons = [50]
environments = [{id = "GLMBandit"}]
agents = [{id = "linucb"}, {id = "dp-ucb"}]'

client='
import gymnasium as gym

env = gym.make("dpbandit:dpbandit/GLMBandit-v0", horizon=20)
envs = gym.make_vec("dpbandit:dpbandit/GLMBandit-v0", num_envs=3, horizon=20)
env.reset(seed=0)
envs.reset(seed=0)
assert env.step(env.action_space.sample())[1] <= 1.0
assert envs.step(envs.action_space.sample())[1].shape == (3,)

from dpbandit.agents import DPUCB
from dpbandit.testing import check_agent, check_problem

check_agent(DPUCB(), env.unwrapped.problem.spec)
check_problem(env.unwrapped.problem)'

# A fresh environment of an interpreter, in a folder of its own, and the commands.
smoke() {
    echo "-- $("$1" --version)"
    mkdir "$2"
    "$1" -m venv "$2/venv"
    cd "$2"
    export PATH="$2/venv/bin:$PATH"
    pip install --quiet --disable-pip-version-check "$package"
    dpbandit --version
    python -m dpbandit envs >envs.txt
    grep -q "^OJPricing " envs.txt
    dpbandit compare OJPricing --agents linucb,dp-ucb --horizon 300 --replicas 2 --out out
    test -s out/regret.png -a -s out/results.json
    echo "$study" >study.toml
    dpbandit sweep study.toml --out sweep
    dpbandit report sweep
    test -s sweep/report/index.html
    dpbandit reproduce --list >cases.txt
    dpbandit lab list >labs.txt
    dpbandit --show-completion bash | bash -n
    python -c "$client"
    python -c "import dpbandit; dpbandit.agents.LinUCB(), dpbandit.testing.check_agent"
}

# All interpreters at a time: they wait for downloads and disks more than for each other.
jobs=()
for interpreter in "${@:-python3}"; do
    (set -e && smoke "$interpreter" "$place/${#jobs[@]}") >"$place/${#jobs[@]}.log" 2>&1 &
    jobs+=($!)
done
failed=0
for number in "${!jobs[@]}"; do
    wait "${jobs[$number]}" || failed=1
    cat "$place/$number.log"
done
exit "$failed"
