"""The command line: what it prints, what it writes, and one sentence for every mistake."""

import json
import re
import subprocess
import sys

import pytest

from dpbandit import ENVIRONMENTS
from dpbandit.agents import AGENTS
from dpbandit.base.fields import described
from tests.each import asserting, each

TINY = ["--horizon", "20", "--replicas", "2"]
OJ = ["compare", "dpbandit/OJPricing-v0", *TINY]
GLM = ["compare", "GLMBandit", *TINY]
P1 = ["reproduce", "contextual/p1", *TINY, "--agent"]
COMPARE_KEYS = ["problem", "horizon", "agent", "replicas", "mean", "se", "q05", "q50", "q95"]
COMPARE_KEYS += ["switches", "clipped", "seconds", "notion", "claimed_epsilon", "claimed_delta"]
COMPARE_KEYS += ["certified_epsilon", "certified_delta", "config"]
REPRODUCE_KEYS = ["case", "agent", "config", "horizon", "replicas", "seed", "measure"]
REPRODUCE_KEYS += ["mean", "se", "seconds", "certified_epsilon", "notion", "reference", "z"]
REPRODUCE_KEYS += ["least"]


def json_of(run, tmp_path, *words):
    path = tmp_path / "numbers.json"
    code, _, errors = run(*words, "--json", path)
    assert (code, errors) == (0, "")
    assert [file.name for file in tmp_path.iterdir()] == ["numbers.json"]
    return json.loads(path.read_text())


def test_module_runs_and_helps(run):
    """Every command shows an example."""
    command = [sys.executable, "-m", "dpbandit", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for name in ("envs", "agents", "compare", "certify", "reproduce"):
        assert name in done.stdout
        assert f"Example: dpbandit {name}" in run(name, "--help")[1]


def test_lists(run):
    """Every registered environment, every agent, every case; every setting says what it is, in a
    docstring below the field."""
    short = [name.removeprefix("dpbandit/").removesuffix("-v0") for name in ENVIRONMENTS]
    envs, agents = run("envs")[1].split(), run("agents", "--all")[1].split()
    assert {*short} <= {*envs}
    assert {*AGENTS, "guarded:ID", "priced:ID", "mapped:ID"} <= {*agents}
    cases = run("reproduce", "--list")[1]
    assert all(text in cases for text in ("contextual/p1", "contextual/p2", "975.6", "dp-ucb"))
    for name, kind in AGENTS.items():
        assert [one.name for one in described(kind) if not one.text] == [], name


@pytest.mark.parametrize("columns", [80, 200])
@each(
    ("words", "said"),
    [
        ("agents fade", ["epsilon=1.0 a number target epsilon, > 0; inf plays without privacy"]),
        ("agents guarded:dp-ucb", ["coins=0", "prefix_sums=blt tree, blt or gradual"]),
        ("agents tests.running.test_own_code:WithoutDefault", ["path=(required)"]),
        ("agents --for OJPricing --private", ["fade", "more have a score below 50: --all"]),
        ("agents --for OJPricing --best", ["fade"]),
        ("envs GLMBandit", ["link=identity identity, logistic, probit or poisson", "tail=4.0"]),
        ("envs OJPricing", ["Dollars: (price - unit cost 0.80)", "delay=0", "`Discrete(12)`"]),
        ("envs RatingsBandit", ["path=none", "Required."]),
        ("compare -h", ["Example: dpbandit compare"]),
    ],
)
def test_what_one_takes(run, words, said, columns):
    """Defaults, kinds of values and what fields say; nothing is cut, however narrow."""
    out = run(*words.split(), columns=columns)[1]
    flat = " ".join(out.split())
    assert all(part in flat for part in said), out
    assert "\u2026" not in out
    assert max(map(len, out.splitlines())) <= columns
    assert "--private" not in words or not {"linucb", "ogd"} & {*flat.split()}


def test_certify(run, tmp_path):
    """After one round nothing is released: no curve, and no warning of the drawing library."""
    proof = json_of(run, tmp_path, "certify", "dp-ucb", "--horizon", 100, "--epsilon", 2)
    assert (proof["claimed_epsilon"], proof["claimed_delta"]) == (2.0, 1e-5)
    assert 1.99 < proof["epsilon"] <= 2.0
    printed = run("certify", "dp-ucb", "--epsilon", 2)[1]
    assert "problem     dpbandit/GLMBandit-v0, 10,000 rounds\n" in printed
    assert "certified   epsilon 2" in printed
    words = ["certify", "dp-tofw", "--env", "StreamingRegression", "--horizon", 1]
    assert run(*words, "--plot", tmp_path / "x.png")[::2] == (0, "")


def test_compare_json(run, tmp_path):
    """A list of objects with exactly the promised keys; both baselines always present."""
    records = json_of(run, tmp_path, *OJ, "--agents", "linucb,dp-ucb:alpha=2:refresh_every=5")
    assert [list(record) for record in records] == [COMPARE_KEYS] * 4
    names = ["linucb", "dp-ucb:alpha=2:refresh_every=5", "Uniform", "BestFixed"]
    assert [record["agent"] for record in records] == names
    config = records[1]["config"]
    assert (config["agent"], config["alpha"], config["refresh_every"]) == ("DPUCB", 2, 5)
    assert records[0]["certified_epsilon"] == "inf"


def test_agents_by_commas_repetition_or_words(run, tmp_path):
    """Baselines are not doubled, and `--set` changes the problem."""
    for words in ("linucb,lints", "linucb --agents lints", "linucb lints", "linucb, lints,"):
        records = json_of(run, tmp_path, *OJ, "--agents", *words.split())
        assert [r["agent"] for r in records] == ["linucb", "lints", "Uniform", "BestFixed"]
    records = json_of(run, tmp_path, *GLM, "--agents", "uniform")
    assert [r["agent"] for r in records] == ["uniform", "BestFixed"]
    assert records[0]["mean"] > 1
    quiet = [*GLM, "--agents", "greedy", "--set", "noise=0", "--set", "signal=0.001"]
    small = json_of(run, tmp_path, *quiet)
    assert all(record["mean"] < 0.1 for record in small)


def test_reproduce_json(run, tmp_path):
    """Exactly the promised keys; a setting goes to the agent or to the problem by its name."""

    def made(*words):
        record = json_of(run, tmp_path, *P1, *words)
        return record, record["config"], record["config"]["env_kwargs"]

    record, config, problem = made("linucb", "--set", "alpha=0.5", "--set", "dim=8")
    assert list(record) == REPRODUCE_KEYS
    assert (config["alpha"], problem["dim"]) == (0.5, 8)
    assert (record["horizon"], record["replicas"]) == (20, 2)
    assert record["reference"] is record["z"] is None
    _, config, _ = made("dp-hdb-choices", "--set", "dim=8", "--calibration", "paper")
    assert (config["calibration"], config["epsilon"]) == ("paper", 1.0)
    words = ["--set", "dim=8", "env.noise=0.2", "--noise", "wishart"]
    _, config, problem = made("shariff-sheffet-ucb", *words)
    assert (config["noise"], problem["noise"]) == ("wishart", 0.2)
    _, config, _ = made("linucb", "--epsilon", "2", "--noise", "gaussian")
    assert "epsilon" not in config


def test_the_reference_number_and_z_at_the_printed_horizon(run, tmp_path):
    """Uniform play needs no patience: z in combined standard errors, recomputed. One replica has no
    standard error, neither in the sentence nor in the numbers, and no distance in units of it."""
    words = ["reproduce", "contextual/p1", "--agent", "uniform", "--replicas"]
    record = json_of(run, tmp_path, *words, 3)
    assert record["reference"] == {"mean": 975.6, "se": 8.7}
    z = (record["mean"] - 975.6) / (record["se"] ** 2 + 8.7**2) ** 0.5
    assert record["z"] == pytest.approx(z)
    assert abs(z) < 5
    code, said, _ = run(*words, 1, "--json", tmp_path / "x.json")
    assert (code, "(no se) after 10000 rounds" in said, "nan" in said) == (0, True, False)
    record = json.loads((tmp_path / "x.json").read_text())
    assert record["se"] is record["z"] is None
    assert record["reference"] is not None


def test_out_writes_four_files_and_replaces_none(run, refused, tmp_path):
    """A folder with any of the four is refused before the work, unless --overwrite."""
    words = [*GLM, "--out", "."]
    (tmp_path / "summary.csv").write_text("hours of work")
    said = refused(words)
    assert all(part in said for part in ("summary.csv", "--overwrite"))
    assert [file.name for file in tmp_path.iterdir()] == ["summary.csv"]
    assert (tmp_path / "summary.csv").read_text() == "hours of work"
    assert "results.json twice" in refused([*words, "--overwrite", "--json", "results.json"])
    code, out, errors = run(*words, "--overwrite")
    names = ["frame.parquet", "regret.png", "results.json", "summary.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (code, errors, all(name in out for name in names)) == (0, "", True)
    assert (tmp_path / "summary.csv").read_text() != "hours of work"
    assert f"found {', '.join(names)}" in refused(words)


@each("words", ["certify", "audit --runs 400 --horizon 4", " ".join([*GLM, "--agents"])])
def test_an_epsilon_that_is_not_used_is_said(run, words):
    """A typed --epsilon that an agent overrides gives a note; the default gives none."""
    for option, said in (["--epsilon", "1"], True), ([], False):
        code, out, errors = run(*words.split(), "dp-ucb:epsilon=2", *option)
        assert (code, errors) == (0, "")
        assert ("dp-ucb:epsilon=2 says epsilon itself" in out) == said
    code, said, _ = run(*P1, "uniform", "--epsilon", "2", "--noise", "gaussian")
    assert code == 0
    assert "uniform has no noise and no epsilon: left out." in said


LINES = {
    "audit fade --runs 0": "Expected --runs=0 to be a whole number",
    "compare OJPricing --agents fade:epsilon=-1 --epsilon 2": "Expected epsilon=-1.0",  # a setting
    "compare OJPricing --agents fade --by shop": "Expected --by='shop' to be left out here",
    "fade": "No such command 'fade'",
    "compar OJPricing": "Did you mean 'compare'",
    "compare": "Expected ENV after dpbandit compare",
    "compare OJPricing --agent linucb": "Unknown option --agent (did you mean --agents?)",
    "compare OJPricing --horizon 10k": "Expected --horizon=10k to be a whole number",
    "compare OJPricing --horizon=1e4": "Expected --horizon=1e4 to be a whole number",
    "compare OJPricing --epsilon one": "Expected --epsilon=one to be a number",
    "compare OJPricing --horizon": "--horizon",
    "compare OJPricing --epsilon -1": "Expected --epsilon=-1.0 to be a number > 0",
    "compare OJPricing --delta 1": "Expected --delta=1.0 to be a number in [0, 1)",
    "compare OJPricing --delta 0 --agents fade": "Expected --delta=0.0 > 0: this noise has no pure",
    "compare GLMBandit --set dim": "Expected KEY=VALUE, got 'dim'",
    "compare GLMBandit --set dim=2,n_actions=3": "one KEY=VALUE in each --set",
    "compare GLMBandit dim=2": "arguments of an environment are --set dim=2",
    "compare GLMBandit --set dim=two": "Expected --set dim='two' to be a whole number",
    "compare GLMBandit --set link=probitt": "'probitt' (did you mean probit?)",
    "compare GLMBandit --agents fade,linucb,fade": "fade and fade are the same",
    "compare GLMBandit --agents priced": "behind per-person:, guarded:, priced: and mapped:",
    "certify": "Expected AGENT after dpbandit certify",
    "certify fade OJPricing": "an environment is --env OJPricing",
    "certify fade,linucb": "agent='fade,linucb' to be one, got several",
    "certify fade --plot curve": "suffix of the plot='' to be one of .png",
    "audit": "either one AGENT",
    "audit fade --all": "either one AGENT",
    "envs OJ": "(did you mean OJPricing?)",
    "agents OJPricing": "an agent, got the environment 'OJPricing'",
    "agents --for fade": "an environment, got the agent 'fade'",
    "agents fade --private": "either agent='fade' or --for and --private",
    "report nowhere": "path='nowhere' to hold results",
    "sweep": "Expected FILE and --out DIR",
    "sweep nowhere.toml --out x": "Cannot read nowhere.toml",
    "reproduce p1": "(did you mean contextual/p1?)",
    "lab 12": "No such command '12'",
    "frontier OJPricing --lost 0%": "--lost=0% to be above 0",  # before anything is played
    "frontier OJPricing --lost nan --from nowhere": "--lost=nan to be above 0",
    "frontier OJPricing --from nowhere": "path='nowhere' to hold results",
    "suite run fade --size huge": "Expected --size='huge' to be one of small, full",
    "suite run ,": "agents to be one or more",
    "suite verify .": "Cannot read suite.parquet",
    "evaluate log.csv": "Expected --policy after dpbandit evaluate",
    "compare OJPricing --epsilon nan": "Expected --epsilon=nan to be a number > 0",
    "compare OJPricing --delta -0.1": "delta=-0.1 to be a number in [0, 1)",
    "compare OJPricing --delta nan": "delta=nan to be a number in [0, 1)",
    "compare OJPricing --horizon 0": "Expected --horizon=0 to be a whole number >= 1",
    "compare OJPricing --seed -1": "Expected --seed=-1 to be a whole number >= 0",
    "compare OJPricing --set delay": "Expected KEY=VALUE, got 'delay'",
    "compare OJPricing --set =3": "Expected KEY=VALUE, got '=3'",
    "compare OJPricing --agents linucb:alpha=": "'alpha='",
    "compare OJPricing --agents dp-ucb,DPUCB:epsilon=1.0": "dp-ucb and DPUCB:epsilon=1.0 are the",
    "compare OJPricing --horizon 9 --horizon 30": "--horizon once",
    "compare OJPricing --out \udcff": "Cannot write",
    "compare OJPricing --out /proc/nope": "Cannot write",
    f"compare OJPricing --out {__file__}": "test_cli.py",
    f"compare OJPricing --json {__file__}/x.json": "x.json",
    "compare ConvexBandit --set radius=1e200": "radius",
    "compare nowhere:nowhere/Bandit-v0": "Cannot import",
    "certify dp-ucb --env OJContinuousPricing": "DPUCB",
    "certify fade --json /proc/nope/x": "Cannot write",
    "certify fade --plot x.gif": "suffix of the plot='.gif'",
    "certify fade --json x.png --plot ./x.png": "x.png twice",
    "certify localised-tofw:shares=.5": "shares=0.5",
    "lab open 1 --solutions --no-solutions": "--solutions once",
    "reproduce --replicas 2": "CASE",
    "reproduce contextual/p9": "contextual/p2",
    "reproduce contextual/p9 --agent linucb": "contextual/p2",
    "reproduce sgd/table-9 --list": "sgd/table-5-1",
    "reproduce --list --replicas 2": "--list alone",
    "reproduce sgd/table-5-1 --rows 99": "1 to 47",
    "reproduce sgd/table-5-1 --reading state": "did you mean stated?",
    "reproduce sgd/table-5-1 --replicas 1": "Expected --replicas=1 to be a whole number >= 2",
    "reproduce sgd/table-5-1 --theta normal": "Expected --theta='normal' to be one of equal",
    "reproduce window/table-1 --theta stated": "window/table-1 without --theta",
    "reproduce sgd/table-5-1 --agent dp-tofw": "without --agent",
    "reproduce sgd/table-5-1 --horizon 10": "it is a table",
    "reproduce sgd/table-5-1 --out /proc/nope": "Cannot write",
    "reproduce contextual/p1 --out x": "only with a table",
    "reproduce sgd/table-5-2 --agent dp-tofw": "sgd/table-5-1",
    "reproduce sco/linear --agent dp-tofw --set p=0.5": "p=0.5",
    "reproduce window/table-1 --replicas 1": "replicas=1 to be a whole number >= 2",
    "reproduce contextual/p1 --agent linuxb": "did you mean linucb",
    "reproduce contextual/p1 --agent linucb --set alhpa=1": "did you mean alpha",
    "reproduce contextual/p1 --agent dp-ucb --epsilon 0": "Expected --epsilon=0.0",
    "reproduce contextual/p1 --agent dp-ucb --epsilon 2 --set epsilon=1": "epsilon once",
    "reproduce contextual/p1 --agent linucb --horizon 9 --set T=5": "--set T=...",
    "reproduce contextual/p1 --agent linucb --json /proc/nope/x.json": "/proc/nope",
}
WRONG_SETTINGS = [
    *(f"linucb:{s}" for s in ("alpha=abc", "alpha=none", "alpha=-1", "alpha=inf", "failure=3")),
    *(f"dp-ucb:{s}" for s in ("epsilon=abc", "refresh_every=0", "refresh_every=2.5")),
    *("epsilon-greedy:exploration=2", "epsilon-greedy:regularization=0", "lints:scale=nan"),
]
WRONG_ARGUMENTS = [
    *("n_actions=two", "n_actions=2.5", "n_actions=1", "dim=none", "delay=1.5", "delay=-1"),
    *("noise=abc", "noise=nan", "shared=maybe", "link=logit", "correlation=2", "drift_rate=-1"),
]
ENV, AGENT = '[[environments]]\nid="OJPricing"\n', '[[agents]]\nid="linucb"\n'
FILES = {
    ENV: "Expected agents in sweep.toml: it is missing",
    ENV + '[[agent]]\nid="linucb"\n': "Unknown key agent in sweep.toml (did you mean agents?)",
    ENV + 'agents=["linucb"]\n': "Unknown key environments.0.agents",
    'agents=["linucb"]\n' + ENV: "agents.0='linucb' in sweep.toml to be a table: [[agents]]",
    ENV + '[[agents]]\nname="fade"\n': "Unknown key agents.0.name",
    ENV + '[[agents]]\nid="fad"\n': "agent='fad' (did you mean fade?)",
    ENV + '[[agents]]\nid="fade:epsilon=2"\n': "to be an id alone: settings stand beside it",
    ENV + '[[agents]]\nid="guarded:fad"\n': "agent='fad' (did you mean fade?)",
    ENV + '[[agents]]\nid="guarded:linucb"\n': "guarded:linucb on OJPricing: Expected LinUCB",
    ENV + '[[agents]]\nid="nowhere:Mine"\n': "Cannot import 'nowhere' of agent 'nowhere:Mine'",
    ENV + AGENT + "alpha=2\n": "Unknown key agents.0.alpha",
    ENV + AGENT + "settings={alfa=2}\n": "'alfa' (did you mean alpha?)",
    ENV + AGENT + 'settings="alpha=2"\n': "to be a table, { KEY = VALUE }",
    ENV + AGENT + "grid={alpha=2}\n": "grid.alpha=2 in sweep.toml to be a list, such as [2]",
    ENV + AGENT + "grid={alpha=[]}\n": "grid.alpha=[] in sweep.toml to be of 1 or more items",
    ENV + "arguments={horizon=9}\n" + AGENT: "the horizon among `horizons`",
    ENV + "arguments={n_arms=9}\n" + AGENT: "argument of OJPricing='n_arms'",
    "epsilons=1.0\n" + ENV + AGENT: "epsilons=1.0 in sweep.toml to be a list, such as [1.0]",
    "epsilon=[1.0]\n" + ENV + AGENT: "Unknown key epsilon in sweep.toml (did you mean epsilons?)",
    "epsilons=[0]\n" + ENV + AGENT: "epsilons.0=0 in sweep.toml to be > 0",
    'deltas=["1e-5"]\n' + ENV + AGENT: "deltas.0='1e-5' in sweep.toml to be a number",
    "horizons=[1e4]\n" + ENV + AGENT: "horizons.0=10000.0 in sweep.toml to be a whole number",
    "replicas=0\n" + ENV + AGENT: "replicas=0 in sweep.toml to be >= 1",
    "name=OJ\n" + ENV + AGENT: "sweep.toml to be TOML",
}


@pytest.fixture
def refused(run, tmp_path, monkeypatch):
    """Run a command line that is refused, with exit code 2; return its one sentence."""
    monkeypatch.chdir(tmp_path)

    def said(words):
        code, out, error = run(*words)
        assert (code, out) == (2, "")
        assert error.startswith("dpbandit: ")
        assert error.endswith((".\n", ").\n"))
        assert error.count("\n") == 1
        assert len(error) < 500
        return error

    return said


def test_a_mistake_gets_one_sentence(refused):
    """Settings and arguments are named with their value."""
    for line, sentence in LINES.items():
        with asserting(line):
            assert sentence in refused(line.split())
    lines = [f"compare OJPricing --agents {agent}" for agent in WRONG_SETTINGS]
    for line in lines + [f"compare GLMBandit --set {setting}" for setting in WRONG_ARGUMENTS]:
        with asserting(line):
            key, value = re.split("[: ]", line)[-1].split("=")
            said = refused(line.split())
            assert key in said
            assert value.replace("none", "None") in said


def test_a_mistake_in_a_sweep_file_gets_one_sentence(refused, tmp_path):
    for text, sentence in FILES.items():
        with asserting(text):
            (tmp_path / "sweep.toml").write_text(text)
            assert sentence in refused(["sweep", "sweep.toml", "--out", "results"])
            assert [file.name for file in tmp_path.iterdir()] == ["sweep.toml"]


def test_an_unwritable_place_is_found_before_the_work(refused, monkeypatch):
    """Hours of replicas must not be lost to a typing error in --out."""
    monkeypatch.setattr("dpbandit.running.compare.compare", None)  # would not be callable
    for option in (["--out", "/proc/nope"], ["--json", "/proc/nope/x.json"]):
        assert "/proc/nope" in refused([*OJ, *option])
