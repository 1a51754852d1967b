"""What people type where a number, a word, a path or a file is expected: right, nearly, and not."""

import json
import re
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

NUMBERS = ["0", "-1", "1", "2", "0.5", "1e308", "-1e308", "1e-300", "1e400", "nan", "inf", "-inf"]
NUMBERS += ["-0.0", "1e-5", "0.999999999", "1e18", "9" * 30, "9" * 5000, "2147483648", "0x10"]
NUMBERS += ["1_000", "\uff11\uff12", "1+2j", " 3", "3 ", "1,5", "true", "none", "False"]
WORDS = ["", " ", "\u00e9\u03b5\U0001f980", "\udcff", "[/]", "[bold]", "$x$", "%s{}", "--", "-"]
WORDS += ["a=b", "=", ":", ",", "x" * 300, "\n", "\x1b[31m", "\u202e", "../..", "*", "none", "None"]
WORDS += ["'"]
HOSTILE = [*NUMBERS, *WORDS, "\x00"]
EXTREME = ["1e50", "1e49", "1e6", "1e-30", "1e-12", "100000", "1000000", "7"]
EXTREME += ["0.9999999999999999", "4096", "5e-324"]
"""What may be allowed, and is hard."""

PLACES = ["new", "new/deep/er", "x.json", "x.png", "x.svg", "x.pdf", "x.gif", "x", "caf\u00e9.png"]
WRONG_PLACES = ["here.txt", "here.txt/x.json", "folder", "folder.json", "folder.png", "pipe", ""]
WRONG_PLACES += [".", "..", "loop", "loop/x.json", "/proc/nope/x.json", "/proc/nope", "[/].json"]
WRONG_PLACES += ["\udcff.json", "\udcff.png", "x\n.json", "n" * 300 + ".json", "\x00.png", "-.svg"]

SMALL = [1, 2, 3, 5, 12]
"""Rounds, arms and features that take no time."""
LENGTHS = ("horizon", "n_actions", "dim", "rank", "block", "batch", "window", "users", "items")


class Dice:
    """A seeded choice between what is right and what is not."""

    def __init__(self, rng: Any) -> None:
        self.rng = rng
        self.wrong = rng.choice([0.0, 0.0, 0.1, 0.4])
        """how often a value of this line is not right"""
        self.hard = self.wrong == 0 and rng.random() < 0.5
        """whether one setting of an otherwise right line is a number hard to bear"""

    def one(self, right: Any, wrong: Any = HOSTILE) -> Any:
        """A right value, or now and then a wrong one."""
        return self.rng.choice(list(wrong if self.rng.random() < self.wrong else right))

    def maybe(self, chance: float) -> bool:
        """True, that often."""
        return bool(self.rng.random() < chance)

    def word(self, right: Any) -> str:
        """A name, or one with a typing error, or what is none."""
        name = str(self.rng.choice(list(right)))
        nearly = [name.upper(), name[1:], f"{name} ", name.replace("-", "_"), f"{name}s"]
        return str(self.one([name], [*nearly, *HOSTILE]))


def settings(dice: Dice, kind: Any, most: int) -> dict[str, str]:
    """Some fields of a config or a problem with values that fit their types, or not."""
    hints = get_type_hints(kind)
    usual = {field.name: field.default for field in fields(kind) if field.name != "horizon"}
    names = dice.rng.sample(sorted(usual), min(most, len(usual)))
    wrong = [*EXTREME, *HOSTILE]
    given = {dice.word([n]): str(dice.one(_fitting(n, usual[n], hints[n]), wrong)) for n in names}
    if dice.hard and given:
        given[next(iter(given))] = dice.rng.choice([*EXTREME, *NUMBERS])
    return given


def _fitting(name: str, usual: Any, hint: Any) -> list[Any]:
    words = [word for part in (hint, *get_args(hint)) for word in _words(part)]
    if words:
        return words
    if isinstance(usual, bool):
        return ["true", "false"]
    if name in LENGTHS or isinstance(usual, int):
        return [usual, *SMALL]
    if isinstance(usual, float) or float in get_args(hint):
        return [usual, usual, 0.1, 0.5, 1]
    return [usual]


def _words(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) is Literal else ()


UNFIT = ["nan", "inf", "-1", "0", "'x'", "[]", "{}", "true", "9" * 25, "1e308", "1e-300", "1e400"]
UNFIT += ['"\\u0000"', '"[/]"', "[[[1]]]", '"\u00e9"', "1979-05-27", "[1, 'x']", "{a = {b = 1}}"]
UNFIT += [""]
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
        return str(dice.one(right, UNFIT))

    chosen = {
        "name": value('"study"'), "replicas": value("1", "2"), "horizons": value("[2]", "[1, 3]"),
        "epsilons": value("[1.0]", "[0.5, 2.0]", "[inf]", "[1e-6]"),
        "deltas": value("[1e-5]", "[1e-5]", "[0.0]", "[1e-300]"),
    }  # fmt: skip
    known, label = value(json.dumps(environment)), value('"mine"', '"a/b"')
    chosen["environments"] = f"[{{id = {known}, arguments = {_table(dice, arguments)}}}]"
    grid = _table(dice, settings, "[{}]")
    chosen["agents"] = f"[{{id = {value(json.dumps(agent))}, label = {label}, grid = {grid}}}]"
    lines = [f"{key} = {said}" for key, said in chosen.items()]
    lines += [dice.rng.choice(FURTHER)] if dice.maybe(dice.wrong) else []
    return "\n".join([*lines, ""])


def _table(dice: Dice, settings: list[str], form: str = "{}") -> str:
    pairs = [setting.partition("=") for setting in settings]
    said = (f"{json.dumps(key)} = {form.format(_said(text))}" for key, _, text in pairs)
    return str(dice.one(["{" + ", ".join(said) + "}"], UNFIT))


def _said(text: str) -> str:
    """A setting of a command line as TOML has it."""
    number = re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text, re.ASCII)
    return text if number or text in ("true", "false", "inf", "nan") else json.dumps(text)


def damage(dice: Dice) -> tuple[str, str]:
    """Which file is not what was written, and how it ends."""
    return dice.rng.choice([*HARMED, "ratings.csv"]), dice.rng.choice(ENDINGS)
