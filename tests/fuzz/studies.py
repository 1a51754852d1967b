"""Sweep files that are more or less right, and harm that is done to files."""

import json
import re

from tests.fuzz.values import Dice

WRONG = ["nan", "inf", "-1", "0", "'x'", "[]", "{}", "true", "9" * 25, "1e308", "1e-300", "1e400"]
WRONG += [
    '"\\u0000"',
    '"[/]"',
    "[[[1]]]",
    '"\u00e9"',
    "1979-05-27",
    "[1, 'x']",
    "{a = {b = 1}}",
    "",
]
NO_STUDIES = ["", "a = " + "[" * 2000, "a" + ".b" * 2000 + " = 1", "x" * 999, "\x00", "\udcff = 1"]
FURTHER = ["replcas = 3", "[audit]\nruns = 400\nhorizon = 2", "[[agents]]\nid = 3", "seed = -1"]
FURTHER += ["name = 'twice'", "[audit]\nruns = 1e3", "[agents.x]\ny = 1", "seed = 4294967296"]
HARMED = ["swept/sweep.json", "swept/blocks", "compared/frame.parquet", "compared/results.json"]
ENDINGS = ["", "{}", "[]", "null", "NaN", "[" * 9999, '"\\ud800"', "\x00" * 9, "-1e999", "PAR1"]
ENDINGS += ["1,2,3,4", "1,a,nan,5\n1,b,1e308,5\n", ",,,\n", "\u00e9" * 50, '"' * 9]


def study(
    dice: Dice, environment: str, arguments: list[str], agent: str, settings: list[str]
) -> str:
    """A tiny sweep file."""
    if dice.maybe(dice.wrong / 3):
        return str(dice.rng.choice(NO_STUDIES))

    def value(*right: str) -> str:
        return str(dice.one(right, WRONG))

    chosen = {
        "name": value('"study"'),
        "replicas": value("1", "2"),
        "horizons": value("[2]", "[1, 3]"),
        "epsilons": value("[1.0]", "[0.5, 2.0]", "[inf]", "[1e-6]"),
        "deltas": value("[1e-5]", "[1e-5]", "[0.0]", "[1e-300]"),
    }
    known, label = value(json.dumps(environment)), value('"mine"', '"a/b"')
    chosen["environments"] = f"[{{id = {known}, arguments = {_table(dice, arguments)}}}]"
    grid = _table(dice, settings, "[{}]")
    chosen["agents"] = f"[{{id = {value(json.dumps(agent))}, label = {label}, grid = {grid}}}]"
    lines = [f"{key} = {said}" for key, said in chosen.items()]
    return (
        "\n".join([*lines, *([dice.rng.choice(FURTHER)] if dice.maybe(dice.wrong) else [])]) + "\n"
    )


def _table(dice: Dice, settings: list[str], form: str = "{}") -> str:
    pairs = [setting.partition("=") for setting in settings]
    said = (f"{json.dumps(key)} = {form.format(_said(text))}" for key, _, text in pairs)
    return str(dice.one(["{" + ", ".join(said) + "}"], WRONG))


def _said(text: str) -> str:
    """A setting of a command line as TOML has it."""
    number = re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text, re.ASCII)
    return text if number or text in ("true", "false", "inf", "nan") else json.dumps(text)


def damage(dice: Dice) -> tuple[str, str]:
    """Which file is not what was written, and how it ends."""
    return dice.rng.choice([*HARMED, "ratings.csv"]), dice.rng.choice(ENDINGS)
