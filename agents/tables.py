"""Show configs in notebooks as tables of settings."""

from typing import Any

from dpbandit.base import described, first_line, html_table, shown


def tabulate(kind: Any) -> None:
    """Let the configs of a class be tables in a notebook; in text they stay what makes them."""
    kind._repr_html_ = _as_html


def _as_html(config: Any) -> str:
    """A row for each setting, a * where it is not the default."""
    rows = []
    for one in described(type(config)):
        value = getattr(config, one.name)
        plain = {True: "true", False: "false", None: "none"}
        written = plain[value] if value is None or isinstance(value, bool) else shown(value)
        usual = written.strip("'\"") == one.default
        rows.append((one.name, written + ("" if usual else " *"), one.text))
    head = ("setting", "value, * not the default", "what it is")
    return html_table(head, rows, f"{type(config).__name__}: {first_line(type(config))}")
