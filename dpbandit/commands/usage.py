"""Messages for wrong command lines, and a check that no option comes twice."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand

from dpbandit.base import InputError, parse_settings

UsageError: Any = typer.BadParameter.__bases__[0]
"""Error that Typer raises for a wrong command line; the class has no public name."""
_NUMBER_WORDS = {"integer": "a whole number, such as 1000", "number": "a number, such as 0.5"}


def sentence(error: Any, words: Sequence[str]) -> str:
    """Return the message for a mistake in a command line, from its `words` and Typer's error.

    >>> error = typer.BadParameter("Input should be a valid integer", param_hint="--horizon")
    >>> sentence(error, ["compare", "OJPricing", "--horizon", "10k"])
    'Expected --horizon=10k to be a whole number, such as 1000.'
    """
    kind, message = type(error).__name__, error.format_message().rstrip(".")
    command = getattr(error.ctx, "command_path", "dpbandit")
    see = f"see `{command} -h`"
    option = re.search(r"--[\w-]+", message)
    if kind == "MissingParameter":
        needed = option[0] if option else error.param.name.upper()
        return f"Expected {needed} after {command}, {see}."
    if kind == "NoSuchOption":
        near = get_close_matches(error.option_name, error.possibilities or (), n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"Unknown option {error.option_name}{hint} of {command}: {see}."
    if isinstance(error, typer.BadParameter) and option:
        numbers = [right for word, right in _NUMBER_WORDS.items() if word in message]
        right = numbers[0] if numbers else f"right: {message}"
        return f"Expected {option[0]}={_value(option[0], words)} to be {right}."
    if extra := re.search(r"extra argument\(s\) \((.*)\)", message):
        env = f"an environment is --env {extra[1]}, " * command.endswith((" certify", " audit"))
        return f"Expected nothing more after {command}, got {extra[1]}: {env}{see}."
    return f"{message} ({see})."


def _value(option: str, words: Sequence[str]) -> str:
    """Return an option's value on the command line, be it `--option value` or `--option=value`."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            return after
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}=")
    return ""


_ARGUMENT = re.compile(r"""(?<![\w.:{('"-])(?<!the )([a-z]\w*)=(?=(-?\d[\d.]*(?:e[+-]?\d+)?)?)""")
"""Name of an argument in a message, such as horizon=0, with its value if that is a number"""

_IN_LABEL = re.compile(r"(?:=\S*[^\s,;:]|\b(?!Expected )[A-Z]\w+) $")
"""Words before an argument that belongs to the label of a problem, such as GLMBandit n_actions=2"""

_ABSENT = re.compile(r"Expected a column '(\w+)', the table has ")
"""Start of the message on a column that a table lacks"""


def with_options(message: str, options: Mapping[str, str], values: Mapping[str, Any]) -> str:
    """Replace arguments in an error message by the options of a command from which they come.

    Args:
        message: sentence about arguments, as Python has them.
        options: name of each argument that has an option, such as "--unit-cost".
        values: values of the options that are on the command line. If the message says another
            number, that is a setting of an agent or an argument of an environment.

    >>> with_options("Expected horizon=0 >= 1.", {"horizon": "--horizon"}, {"horizon": 0})
    'Expected --horizon=0 >= 1.'
    >>> with_options("Expected price_range=, such as (1, 3)", {"price_range": "--price-range"}, {})
    'Expected --price-range, such as (1, 3)'
    """

    def named(found: re.Match[str]) -> str:
        name, number = found[1], found[2]
        if name not in options or _IN_LABEL.search(message[: found.start()]):
            return found[0]
        after = message[found.end() : found.end() + 1]
        if not number and after in (",", ".", ";", ":", " ", ")", ""):  # no value: what is missing
            return options[name]
        if name not in values:
            return found[0]
        value = values[name]
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if number and (not known or float(number) != value) and number != str(value):
            return found[0]
        return f"{options[name]}="

    return _ARGUMENT.sub(named, message)


class Once(TyperCommand):
    """Typer command that refuses an option given twice, where Typer would silently drop one.

    Errors that it raises name options in place of arguments, see `with_options`.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as mistake:
            if type(mistake) is not InputError:  # AgentError and others are about other arguments
                raise
            of_options = [one for one in self.params if one.opts[0].startswith("--")]
            options = {str(one.name): one.opts[0] for one in of_options}
            sources = {name: ctx.get_parameter_source(name) for name in options}
            typed = {
                name: ctx.params[name]
                for name, source in sources.items()
                if source is not None and source.name == "COMMANDLINE"
            }
            arguments = parse_settings(ctx.params.get("settings"))  # of the environment
            options |= {name: f"--set {name}" for name in arguments if name not in options}
            message = with_options(str(mistake), options, {**arguments, **typed})
            absent = _ABSENT.match(message)
            column = absent[1] if absent and absent[1] not in typed.values() else None
            for name in options if column else ():
                if ctx.params.get(name) == column:  # the default of an option
                    message = f"{message[:-1]}: name yours with {options[name]}."
            raise InputError(message) from mistake

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raise `InputError` for an option given twice that is not a list."""
        if not ctx.resilient_parsing:  # TAB
            *_, order = self.make_parser(ctx).parse_args(args=list(args))
            for option, times in Counter(order).items():
                if times > 1 and not getattr(option, "multiple", True):
                    raise InputError(f"Expected {option.opts[-1]} once, got it {times} times.")
        return super().parse_args(ctx, args)
