"""Command lines over all commands: most of them nearly right, each from a seed."""

import random
from typing import NamedTuple

from gymnasium.envs.registration import load_env_creator

from dpbandit import ENVIRONMENTS
from dpbandit.agents import AGENTS, CHOICE, CONTEXTUAL, CONVEX, EXPERTS, LISTS, PEOPLE, STOCHASTIC
from dpbandit.experiments import CASES
from dpbandit.experiments.paper_tables import TABLES
from tests.fuzz.values import HOSTILE, PLACES, SMALL, WRONG_PLACES, Dice, damage, settings, study

VALUES = ["private-bandit", "bandit-pftal", "fkm", "garber-kretzu", "bandit-ftal", "centre"]
VALUES += ["slope-bandit"]
PLAYERS = {"Convex": VALUES, "Online": CONVEX, "Experts": EXPERTS, "Streaming": STOCHASTIC}
PLAYERS["Assortment"] = CHOICE
PLAYERS |= {"List": LISTS, "RatingsLists": LISTS}
PLAYERS["ReturningLists"] = [f"per-person:{name}" for name in LISTS]
PLAYERS["Returning"] = PEOPLE
PLAYERS["OJContinuous"] = ["uniform", "best-fixed"]
"""Who plays environments that begin so; all others have contexts."""


class Line(NamedTuple):
    """A command line, the sweep file that it may name, and what is done to results before."""

    words: list[str]
    toml: str = ""
    damage: tuple[str, str] | None = None
    """a file, and what stands in it in place of its end"""


def line(seed: int, place: int) -> Line:
    """The line of that number: the same for the same seed."""
    dice = Dice(random.Random(f"{seed}/{place}"))
    kind = dice.rng.choices(list(MAKERS), [weight for weight, _ in MAKERS.values()])[0]
    words = MAKERS[kind][1](dice)
    if dice.maybe(dice.wrong / 8):
        words.insert(dice.rng.randrange(len(words) + 1), str(dice.rng.choice(HOSTILE)))
    harm = (kind in ("report", "sweep") or "path=ratings.csv" in words) and dice.maybe(dice.wrong)
    return Line(words, _toml(dice) if kind == "sweep" else "", damage(dice) if harm else None)


def _environment(dice: Dice) -> str:
    known = [name.removeprefix("dpbandit/").removesuffix("-v0") for name in ENVIRONMENTS]
    return str(dice.rng.choice(known))


def _named(dice: Dice, environment: str) -> str:
    whole = f"dpbandit/{environment}-v0"
    wrong = ["nowhere:x/Y-v0", ".x:GLM", "json:GLMBandit", "CartPole-v1", "", ":", *HOSTILE[-30:]]
    return str(dice.one([environment, whole, f"dpbandit:{whole}"], wrong))


def _agent(dice: Dice, environment: str) -> str:
    fitting = next((p for start, p in PLAYERS.items() if environment.startswith(start)), CONTEXTUAL)
    name = str(dice.one(fitting, AGENTS))
    inner = AGENTS[name.removeprefix("per-person:")]
    given = settings(dice, inner, dice.rng.choice([0, 0, 1, 1, 2]))
    return ":".join([dice.word([name]), *(f"{key}={value}" for key, value in given.items())])


def _arguments(dice: Dice, environment: str) -> list[str]:
    problem = load_env_creator(ENVIRONMENTS[f"dpbandit/{environment}-v0"])
    given = settings(dice, problem, dice.rng.choice([0, 0, 1, 2]))
    if environment == "RatingsBandit":
        given |= {"path": str(dice.one(["ratings.csv"], WRONG_PLACES)), "n_actions": "2"}
    return [word for key, value in given.items() for word in ("--set", f"{key}={value}")]


def _sizes(dice: Dice, *names: str) -> list[str]:
    right = {
        "--horizon": [*SMALL, 12, 30],
        "--replicas": [1, 2, 3],
        "--epsilon": ["1", "0.1", "3", "inf", "1e-3", "20", "1e-6", "1e6"],
        "--delta": ["1e-5", "1e-4", "0.01", "0", "1e-30", "1e-300", "0.999999"],
        "--seed": [0, 1, 4294967295],
        "--runs": [400, 401],
        "--failure": [0.05, 0.5, 1e-9],
        "--jobs": [1],
    }
    always = ("--horizon", "--replicas", "--runs")  # whose defaults take their time
    wrong = ["0", "-1", "nan", "inf", "1e18", "9" * 30, "1.5", "", "\u0663", "\udcff", "[/]", "x"]
    chosen = [name for name in names if name in always or dice.maybe(0.4)]
    words = [word for name in chosen for word in (name, str(dice.one(right[name], wrong)))]
    return words + (words[:2] if dice.maybe(dice.wrong / 10) else [])


def _targets(dice: Dice, *names: str) -> list[str]:
    some = [name for name in names if dice.maybe(0.35 if name == "--json" else 0.06)]
    return [word for name in some for word in (name, str(dice.one(PLACES, WRONG_PLACES)))]


def _compare(dice: Dice) -> list[str]:
    environment = _environment(dice)
    agents = [_agent(dice, environment) for _ in range(dice.rng.choice([0, 1, 1, 1, 2]))]
    sizes = _sizes(dice, "--horizon", "--replicas", "--epsilon", "--delta", "--seed")
    words = ["compare", _named(dice, environment), *sizes, *_arguments(dice, environment)]
    words += [word for agent in agents for word in ("--agents", agent)]
    overwrite = ["--overwrite"] if dice.maybe(0.1) else []
    return words + _targets(dice, "--json", "--out") + overwrite


def _certify(dice: Dice) -> list[str]:
    environment = _environment(dice)
    words = ["certify", _agent(dice, environment), "--env", _named(dice, environment)]
    words += _sizes(dice, "--horizon", "--epsilon", "--delta") + _arguments(dice, environment)
    return words + _targets(dice, "--json", "--plot")


def _audit(dice: Dice) -> list[str]:
    environment = str(dice.rng.choice(["GLMBandit", "OnlineConvex", "ConvexBandit", "Experts"]))
    words = ["audit", _agent(dice, environment), "--env", _named(dice, environment)]
    words += ["--horizon", str(dice.one([1, 2], ["0", "nan", "1.5"]))]
    words += _sizes(dice, "--epsilon", "--delta", "--runs", "--failure", "--jobs")
    words += ["--view", dice.word(["released", "actions"])] if dice.maybe(0.3) else []
    return words + _arguments(dice, environment) + _targets(dice, "--out", "--plot")


def _reproduce(dice: Dice) -> list[str]:
    if dice.maybe(0.1):
        words = ["reproduce", dice.word(TABLES), "--replicas", "1"]
        words += ["--rows", str(dice.one(["none"])), "--reading"]
        return [*words, dice.word(["all", "public"])]
    case = str(dice.rng.choice(list(CASES)))
    agent = str(dice.one(CASES[case].agents, AGENTS))
    given = settings(dice, AGENTS[agent], dice.rng.choice([0, 1, 2]))
    words = ["reproduce", dice.word([case]), "--agent", dice.word([agent])]
    words += [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
    words += ["--list"] if dice.maybe(0.05) else []
    words += ["--noise", dice.word(["gaussian", "laplace"])] if dice.maybe(0.1) else []
    words += _sizes(dice, "--horizon", "--replicas", "--epsilon", "--delta", "--seed")
    return words + _targets(dice, "--json")


def _sweep(dice: Dice) -> list[str]:
    files = ["folder", "pipe", "here.txt", "missing.toml", "loop", "", "\x00", "\udcff", "swept"]
    words = ["sweep", str(dice.one(["study.toml"], files)), "--out"]
    words += [str(dice.one(["new"], ["swept", *WRONG_PLACES, "compared"]))]
    words += ["--backend", str(dice.one(["threading"], ["", "Loky", "[/]"]))]
    words += ["--jobs", str(dice.one([1, 2], ["0", "-1", "nan", "9" * 30]))]
    words += ["--block", str(dice.one([1, 7], ["0", "-3", "x"]))] if dice.maybe(0.3) else []
    words += ["--scheduler", str(dice.rng.choice(HOSTILE))] if dice.maybe(dice.wrong / 4) else []
    return words + (["--resume"] if "swept" in words or dice.maybe(0.2) else [])


def _report(dice: Dice) -> list[str]:
    place = dice.rng.choice(["compared", "swept", dice.one(["compared"], WRONG_PLACES)])
    baselines = ["Uniform", "BestFixed", "linucb"]
    baseline = ["--baseline", dice.word(baselines)] if dice.maybe(0.5) else []
    return ["report", str(place), *baseline, *_targets(dice, "--out")]


def _listing(dice: Dice) -> list[str]:
    words = [dice.one(["envs", "agents", "--version", "--help"])]
    if words == ["agents"] and dice.maybe(0.5):
        return [*words, dice.word(AGENTS)]
    return [*words, _environment(dice)] if words == ["envs"] and dice.maybe(0.5) else words


def _lab(dice: Dice) -> list[str]:
    if dice.maybe(0.3):
        return ["lab", dice.word(["list"])]
    if dice.maybe(0.2):
        return ["lab", "progress", str(dice.one(PLACES, WRONG_PLACES))]
    words = ["lab", "open", str(dice.one([1, 2, 9])), "--no-jupyter"]
    words += ["--out", str(dice.one(PLACES, WRONG_PLACES))] if dice.maybe(0.7) else []
    return words + (["--overwrite"] if dice.maybe(0.2) else [])


def _toml(dice: Dice) -> str:
    environment = _environment(dice)
    whole = _agent(dice, environment)
    agent, *settings = whole.removeprefix("per-person:").split(":")
    outer = "per-person:" if whole.startswith("per-person:") else ""
    arguments = [word for word in _arguments(dice, environment) if word != "--set"]
    return study(dice, environment, arguments, outer + agent, settings)


def _nothing(dice: Dice) -> list[str]:
    return [str(dice.rng.choice(HOSTILE)) for _ in range(3)]


MAKERS = {"compare": (30, _compare), "certify": (30, _certify), "reproduce": (16, _reproduce)}
MAKERS |= {"sweep": (20, _sweep), "report": (1, _report), "audit": (2, _audit), "lab": (4, _lab)}
MAKERS |= {"listing": (1, _listing), "nothing": (1, _nothing)}
"""By the command, how often it comes, and what makes its lines."""
