"""The command line: what it prints, what it writes, and one sentence for every mistake."""

import json
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from dpbandit import ENVIRONMENTS, InputError, cli, compare
from dpbandit.agents import AGENTS
from dpbandit.base.fields import described
from dpbandit.envs import OJPricing
from dpbandit.privacy.ledger import no_data
from tests.each import each

TINY = ["--horizon", "20", "--replicas", "2"]
OJ = ["compare", "dpbandit/OJPricing-v0", *TINY]
GLM = ["compare", "GLMBandit", *TINY]
P1 = ["reproduce", "contextual/p1", *TINY, "--agent"]
COMPARE_KEYS = ["problem", "horizon", "agent", "replicas", "mean", "se", "q05", "q50", "q95"]
COMPARE_KEYS += ["switches", "clipped", "seconds", "notion"]
COMPARE_KEYS += [
    "claimed_epsilon",
    "claimed_delta",
    "certified_epsilon",
    "certified_delta",
    "config",
]
REPRODUCE_KEYS = ["case", "agent", "config", "horizon", "replicas", "seed", "measure"]
REPRODUCE_KEYS += ["mean", "se", "seconds", "certified_epsilon", "notion", "reference", "z"]
REPRODUCE_KEYS += ["least"]


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command line in-process: exit code, stdout, stderr."""

    def command(*words, columns=200):
        monkeypatch.setattr(sys, "argv", ["dpbandit", *map(str, words)])
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("dpbandit.base.progress.PATIENCE", 1e9)  # no bar on a busy machine
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return command


def json_of(run, tmp_path, *words):
    path = tmp_path / "numbers.json"
    code, _, errors = run(*words, "--json", path)
    assert (code, errors) == (0, "")
    assert [file.name for file in tmp_path.iterdir()] == ["numbers.json"]
    return json.loads(path.read_text())


def test_module_runs_and_helps():
    command = [sys.executable, "-m", "dpbandit", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for name in ("envs", "agents", "compare", "certify", "reproduce"):
        assert name in done.stdout


@pytest.mark.parametrize("name", ["envs", "agents", "compare", "certify", "reproduce"])
def test_every_command_shows_an_example(run, name):
    code, out, _ = run(name, "--help")
    assert code == 0
    assert f"Example: dpbandit {name}" in out


def test_lists(run):
    """Every registered environment, every agent, every case; a line is as wide as a terminal."""
    short = [name.removeprefix("dpbandit/").removesuffix("-v0") for name in ENVIRONMENTS]
    envs, agents = run("envs")[1].split(), run("agents")[1].split()
    assert {*short} <= {*envs}
    assert {*AGENTS, "guarded:ID", "priced:ID"} <= {*agents}
    cases = run("reproduce", "--list")[1]
    assert all(text in cases for text in ("contextual/p1", "contextual/p2", "975.6", "dp-ucb"))


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["agents", "fade"], ["epsilon=1.0 a number target, > 0; inf plays without privacy"]),
        (
            ["agents", "guarded:dp-ucb"],
            ["coins=0", "prefix_sums=blt tree, blt or gradual"],
        ),
        (["agents", "tests.running.own:WithoutDefault"], ["path=(has to be said)"]),
        (["agents", "--for", "OJPricing", "--private"], ["fade", "dp-ucb"]),
        (["agents", "--for", "OJPricing", "--best"], ["fade"]),
        (
            ["envs", "GLMBandit"],
            ["link=identity identity, logistic, probit or poisson", "tail=4.0"],
        ),
        (["envs", "OJPricing"], ["Dollars: (price - unit cost 0.80)", "delay=0", "`Discrete(12)`"]),
        (["envs", "RatingsBandit"], ["path=none", "Required."]),
        (["compare", "-h"], ["Example: dpbandit compare"]),
    ],
    ids=str,
)
def test_what_one_takes(run, words, said, columns):
    """Defaults, kinds of values and what fields say; nothing is cut, however narrow."""
    out = run(*words, columns=columns)[1]
    flat = " ".join(out.split())
    assert all(part in flat for part in said), out
    assert "\u2026" not in out
    assert max(map(len, out.splitlines())) <= columns
    for absent in ("linucb", "ogd"):
        assert "--private" not in words or absent not in flat.split()


def test_every_setting_says_what_it_is():
    """In a docstring below the field."""
    for name, kind in AGENTS.items():
        lacks = [one.name for one in described(kind) if not one.text]
        assert not lacks, (name, lacks)


def test_certify(run, tmp_path):
    proof = json_of(run, tmp_path, "certify", "dp-ucb", "--horizon", 100, "--epsilon", 2)
    assert (proof["claimed_epsilon"], proof["claimed_delta"]) == (2.0, 1e-5)
    assert 1.99 < proof["epsilon"] <= 2.0
    assert "certified   epsilon 2" in run("certify", "dp-ucb", "--epsilon", 2)[1]


def test_a_certificate_of_nothing_is_drawn(run, tmp_path):
    """Of one round nothing is released: no curve, and no warning of the drawing library."""
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


@pytest.mark.parametrize(
    "words",
    [
        ["--agents", "linucb,lints"],
        ["--agents", "linucb", "--agents", "lints"],
        ["--agents", "linucb", "lints"],
        ["--agents", "linucb,", "lints,"],
    ],
    ids=" ".join,
)
def test_agents_by_commas_repetition_or_words(run, tmp_path, words):
    records = json_of(run, tmp_path, *OJ, *words)
    assert [r["agent"] for r in records] == ["linucb", "lints", "Uniform", "BestFixed"]


def test_baselines_are_not_doubled(run, tmp_path):
    records = json_of(run, tmp_path, *OJ, "--agents", "uniform")
    assert [r["agent"] for r in records] == ["uniform", "BestFixed"]


def test_set_changes_the_problem(run, tmp_path):
    small = json_of(run, tmp_path, *GLM, "--set", "noise=0", "--set", "signal=0.001")
    assert all(record["mean"] < 0.1 for record in small)
    assert json_of(run, tmp_path, *GLM)[0]["mean"] > 1


def test_reproduce_json(run, tmp_path):
    """Exactly the promised keys; a setting goes to the agent or to the problem by its name."""
    words = ["linucb", "--set", "alpha=0.5", "--set", "dim=8"]
    record = json_of(run, tmp_path, *P1, *words)
    assert list(record) == REPRODUCE_KEYS
    assert (record["config"]["alpha"], record["config"]["env_kwargs"]["dim"]) == (0.5, 8)
    assert (record["horizon"], record["replicas"]) == (20, 2)
    assert record["reference"] is record["z"] is None
    paper = json_of(
        run, tmp_path, *P1, "dp-hdb-choices", "--set", "dim=8", "--calibration", "paper"
    )
    assert (paper["config"]["calibration"], paper["config"]["epsilon"]) == ("paper", 1.0)
    words = ["shariff-sheffet-ucb", "--set", "dim=8", "env.noise=0.2", "--noise", "wishart"]
    wishart = json_of(run, tmp_path, *P1, *words)
    assert (wishart["config"]["noise"], wishart["config"]["env_kwargs"]["noise"]) == (
        "wishart",
        0.2,
    )
    plain = json_of(run, tmp_path, *P1, "linucb", "--epsilon", "2", "--noise", "gaussian")
    assert "epsilon" not in plain["config"]


def test_the_reference_number_and_z_at_the_printed_horizon(run, tmp_path):
    """Uniform play needs no patience: z in combined standard errors, recomputed."""
    words = ["reproduce", "contextual/p1", "--agent", "uniform", "--replicas", 3]
    record = json_of(run, tmp_path, *words)
    assert record["reference"] == {"mean": 975.6, "se": 8.7}
    z = (record["mean"] - 975.6) / (record["se"] ** 2 + 8.7**2) ** 0.5
    assert record["z"] == pytest.approx(z)
    assert abs(z) < 5


def test_one_replica_has_no_standard_error(run, tmp_path):
    """Neither in the sentence nor in the numbers, and no distance in units of it."""
    words = ["reproduce", "contextual/p1", "--agent", "uniform", "--replicas", 1]
    code, said, _ = run(*words, "--json", tmp_path / "x.json")
    assert (code, "(no se) after 10000 rounds" in said, "nan" in said) == (0, True, False)
    record = json.loads((tmp_path / "x.json").read_text())
    assert record["se"] is record["z"] is None
    assert record["reference"] is not None


def test_out_writes_four_files_and_nothing_else(run, tmp_path):
    code, out, errors = run(*OJ, "--agents", "dp-ucb", "--out", tmp_path / "new")
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert (code, errors) == (0, "")
    assert names == ["frame.parquet", "regret.png", "results.json", "summary.csv"]
    assert all(name in out for name in names)


def test_results_that_are_there_stay(run, tmp_path):
    """A folder with any of the four files is refused before the work, unless --overwrite."""
    (tmp_path / "summary.csv").write_text("hours of work")
    words = [*GLM, "--out", tmp_path]
    assert_one_sentence(run(*words), str(tmp_path), "summary.csv", "--overwrite")
    assert [file.name for file in tmp_path.iterdir()] == ["summary.csv"]
    assert (tmp_path / "summary.csv").read_text() == "hours of work"
    twice = [*words, "--overwrite", "--json", tmp_path / "results.json"]
    assert_one_sentence(run(*twice), "results.json twice")
    assert run(*words, "--overwrite")[::2] == (0, "")
    assert (tmp_path / "summary.csv").read_text() != "hours of work"
    assert_one_sentence(run(*words), "found frame.parquet, regret.png, results.json, summary.csv")


def test_reproduce_says_what_an_agent_does_not_have(run):
    code, said, _ = run(*P1, "uniform", "--epsilon", "2", "--noise", "gaussian")
    assert code == 0
    assert "uniform has no noise and no epsilon: left out." in said


@pytest.mark.parametrize(
    "words",
    [["certify"], ["audit", "--runs", "400", "--horizon", "4"], [*GLM, "--agents"]],
    ids=lambda w: w[0],
)
def test_an_epsilon_that_is_not_used_is_said(run, words):
    """Where it was given; the default is nobody's wish."""
    for option, said in (["--epsilon", "1"], True), ([], False):
        code, out, errors = run(*words, "dp-ucb:epsilon=2", *option)
        assert (code, errors) == (0, "")
        assert ("dp-ucb:epsilon=2 says epsilon itself" in out) == said


MISTAKES = {  # command line -> what the sentence must name
    "unknown id": (["compare", "OJPrizing"], "OJPrizing", "did you mean OJPricing?"),
    "not ours": (["compare", "CartPole-v1"], "CartPole-v1", "FromGymnasium"),
    "unknown agent": ([*OJ, "--agents", "lincub"], "lincub", "did you mean linucb"),
    "unknown setting": ([*OJ, "--agents", "linucb:alhpa=1"], "alhpa", "did you mean alpha"),
    "unknown argument": ([*GLM, "--set", "dimm=3"], "dimm", "did you mean dim"),
    "horizon twice": ([*GLM, "--set", "horizon=3"], "horizon", "--horizon"),
    "epsilon 0": ([*OJ, "--epsilon", "0"], "epsilon=0", "> 0"),
    "epsilon -1": ([*OJ, "--epsilon", "-1"], "epsilon=-1", "> 0"),
    "epsilon nan": ([*OJ, "--epsilon", "nan"], "epsilon=nan", "> 0"),
    "delta -0.1": ([*OJ, "--delta", "-0.1"], "delta=-0.1", "[0, 1)"),
    "delta 1": ([*OJ, "--delta", "1"], "delta=1", "[0, 1)"),
    "delta nan": ([*OJ, "--delta", "nan"], "delta=nan", "[0, 1)"),
    "delta 0": ([*OJ, "--agents", "dp-ucb", "--delta", "0"], "delta=0.0", "> 0"),
    "horizon 0": (["compare", "OJPricing", "--horizon", "0"], "horizon=0", ">= 1"),
    "replicas 0": (["compare", "OJPricing", "--replicas", "0"], "replicas=0", ">= 1"),
    "seed -1": ([*OJ, "--seed", "-1"], "seed=-1", ">= 0"),
    "no arms": (["compare", "OJContinuousPricing", "--agents", "linucb"], "LinUCB", "choose"),
    "certify no arms": (["certify", "dp-ucb", "--env", "OJContinuousPricing"], "DPUCB", "choose"),
    "out no text": ([*OJ, "--out", "\udcff"], "Cannot write", "surrogates"),
    "certify first": (["certify", "fade", "--json", "/proc/nope/x"], "/proc/nope", "Cannot write"),
    "certify gif": (["certify", "fade", "--plot", "x.gif"], "suffix of the plot", ".gif", ".svg"),
    "a file twice": (["certify", "fade", *["--json", "x.png", "--plot", "./x.png"]], "x.png twice"),
    "out in /proc": ([*OJ, "--out", "/proc/nope"], "/proc/nope", "Cannot write"),
    "out a file": ([*OJ, "--out", __file__], "test_cli.py", "Cannot write"),
    "json in a file": ([*OJ, "--json", __file__ + "/x.json"], "x.json", "Cannot write"),
    "no equals": ([*OJ, "--set", "delay"], "'delay'", "KEY=VALUE"),
    "no key": ([*OJ, "--set", "=3"], "'=3'", "KEY=VALUE"),
    "no value": ([*OJ, "--agents", "linucb:alpha="], "'alpha='", "KEY=VALUE"),
    "case": (["reproduce", "contextual/p9", "--agent", "linucb"], "p9", "contextual/p2"),
    "case agent": ([*P1, "linuxb"], "linuxb", "did you mean linucb"),
    "case setting": ([*P1, "linucb", "--set", "alhpa=1"], "alhpa", "did you mean alpha"),
    "case epsilon": ([*P1, "dp-ucb", "--epsilon", "0"], "epsilon=0", "> 0"),
    "case alone": (["reproduce", "contextual/p9"], "contextual/p9", "contextual/p2"),
    "case listed": (["reproduce", "sgd/table-9", "--list"], "sgd/table-9", "sgd/table-5-1"),
    "list and more": (["reproduce", "--list", "--replicas", "2"], "--list alone"),
    "case twice": ([*P1, "dp-ucb", "--epsilon", "2", "--set", "epsilon=1"], "epsilon once"),
    "T twice": ([*P1, "linucb", "--set", "T=5"], "horizon once", "--set T=..."),
    "no spread": (["reproduce", "window/table-1", "--replicas", "1"], "replicas=1", ">= 2"),
    "case json": ([*P1, "linucb", "--json", "/proc/nope/x.json"], "/proc/nope"),
    "agent twice": ([*OJ, "--agents", "linucb,lints,linucb"], "linucb and linucb are the same"),
    "agent by default": ([*OJ, "--agents", "dp-ucb,DPUCB:epsilon=1.0"], "dp-ucb and DPUCB:eps"),
    "option twice": ([*OJ, "--horizon", "30"], "--horizon once", "2 times"),
    "flags": (["lab", "open", "1", "--solutions", "--no-solutions"], "--solutions once"),
    "no case": (["reproduce"], "CASE", "--agent"),
    "no full name": (["compare", ".x:GLM"], ".x:GLM", "full name"),
    "a tuple": (["certify", "localised-tofw:shares=.5"], "shares=0.5", "(0.4, 0.6)"),
    "powers overflow": (["compare", "ConvexBandit", "--set", "radius=1e200"], "radius", "1e+50"),
    "no module": (["compare", "nowhere:nowhere/Bandit-v0"], "nowhere", "Cannot import"),
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


def assert_one_sentence(answer, *parts):
    """Exit code 2, nothing but one line on stderr, before any work; every part in it."""
    code, said, errors = answer
    assert (code, said) == (2, "")
    assert errors.startswith("dpbandit: ")
    assert errors.count("\n") == 1
    assert errors.endswith((".\n", ").\n"))
    for part in parts:
        assert part in errors


@each("mistake", MISTAKES)
def test_a_mistake_gets_one_sentence(run, mistake):
    words, *parts = MISTAKES[mistake]
    assert_one_sentence(run(*words), *parts)


@each("agent", WRONG_SETTINGS)
def test_a_wrong_setting_is_named_with_its_value(run, agent):
    key, value = agent.split(":")[1].split("=")
    assert_one_sentence(run(*OJ, "--agents", agent), key, value.replace("none", "None"))


@each("setting", WRONG_ARGUMENTS)
def test_a_wrong_argument_is_named_with_its_value(run, setting):
    key, value = setting.split("=")
    assert_one_sentence(run(*GLM, "--set", setting), key, value.replace("none", "None"))


@pytest.mark.parametrize("words", [["--horizon", "abc"], ["--epsilon", "abc"], ["--nosuch", "1"]])
def test_typer_refuses_with_the_same_exit_code(run, words):
    assert run("compare", "OJPricing", *words)[0] == 2


def test_an_unwritable_place_is_found_before_the_work(run, monkeypatch):
    """Hours of replicas must not be lost to a typing error in --out."""
    monkeypatch.setattr(
        "dpbandit.running.compare.compare", lambda *a, **k: pytest.fail("ran first")
    )
    for option in (["--out", "/proc/nope"], ["--json", "/proc/nope/x.json"]):
        assert_one_sentence(run(*OJ, *option), "/proc/nope")


@dataclass(frozen=True)
class Strange:
    """A third party's agent that plays `then` from round 3 on."""

    then: object

    def make(self, spec, streams):
        """A running agent."""
        agent = type("Agent", (), {"ledger": no_data(), "update": lambda *a: None})()
        turns = iter([np.zeros(len(streams), dtype=int)] * 2 + [np.array(self.then)] * 99)
        agent.act = lambda context: next(turns)
        return agent


@pytest.mark.parametrize(
    ("then", "told"),
    [
        ((0, 99), "99"),
        ((-1, 0), "-1"),
        ((0.5, 0.5), "0.5"),
        ((float("nan"), 0), "nan"),
        ((0,), "(1,)"),
        (((0,), (0,)), "(2, 1)"),
        (0, "()"),
    ],
)
def test_strange_actions_are_refused_with_round_and_value(then, told):
    with pytest.raises(InputError, match=r"(?s)round 3\b") as caught:
        compare("OJPricing", {"strange": Strange(then)}, horizon=5, replicas=2, progress=False)
    assert told in str(caught.value)


@pytest.mark.parametrize("field", ["reward", "regret"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused_with_round_and_value(field, value):
    class Broken(OJPricing):
        def step(self, action):
            self.rounds = getattr(self, "rounds", 0) + 1
            bad = {field: np.array([1.0, value])} if self.rounds == 3 else {}
            return super().step(action)._replace(**bad)

    with pytest.raises(InputError, match=r"round 3\b"):
        compare(Broken, {}, horizon=5, replicas=2, progress=False)


@each("name", ["horizon", "replicas", "seed"])
@each("value", ["abc", 2.5, float("nan")])
def test_compare_refuses_numbers_of_the_wrong_type(name, value):
    with pytest.raises(InputError, match=name):
        compare("OJPricing", {}, **{"horizon": 3, "replicas": 2, "progress": False, name: value})


def test_compare_takes_the_names_gymnasium_takes():
    names = ["OJPricing", "OJPricing-v0", "dpbandit/OJPricing-v0", "dpbandit:dpbandit/OJPricing-v0"]
    arguments = {"horizon": 5, "replicas": 2, "progress": False}
    runs = [compare(name, {}, **arguments).summary()["mean"].tolist() for name in names]
    assert runs == [runs[0]] * 4
