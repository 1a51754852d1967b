#!/usr/bin/env bash
# A wheel or sdist as its users have it: a fresh virtual environment, another folder, and most commands
# once, for each interpreter named (python3 where none is).
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

for interpreter in "${@:-python3}"; do
    echo "-- $("$interpreter" --version)"
    rm -rf "${place:?}"/*
    "$interpreter" -m venv "$place/venv"
    (
        cd "$place"
        export PATH="$place/venv/bin:$PATH"
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
    )
done
