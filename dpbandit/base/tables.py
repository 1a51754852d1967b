"""Tables for a terminal or a pipe whose cells are never cut off, however narrow it is.

Not exported by `dpbandit.base`, since only code that prints tables should import Rich.
"""

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table as RichTable

_MIN_TEXT_WIDTH = 16
"""Letters to which a column of text may shrink before the table is split into blocks."""


class Table(RichTable):
    """A table whose first columns, the keys of its rows, are repeated if it must be split.

    If the table is wider than the terminal (80 letters in a pipe), text wraps; if that is not
    enough, the columns are printed in several blocks below each other, each with the keys.

    Args:
        headings: headings of columns of text.
        keys: number of key columns, from the left.
        letters: letters to which a key column may shrink.
        how: `title`, `caption`, `box` and other arguments of `rich.table.Table`; title and caption
            are aligned left by default.
    """

    def __init__(self, *headings: str, keys: int = 1, letters: int = 24, **how: Any) -> None:
        super().__init__(*headings, **{"title_justify": "left", "caption_justify": "left", **how})
        self._keys, self._letters = keys, letters

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._keys >= len(self.columns):
            yield from super().__rich_console__(console, options)
            return
        blocks = list(self._blocks(console, options))
        for place, block in enumerate(blocks):
            block.title = self.title if place == 0 else None
            block.caption = self.caption if place == len(blocks) - 1 else None
            yield block

    def _blocks(self, console: Console, options: ConsoleOptions) -> Iterator[RichTable]:
        """Yield tables of the keys and as many other columns as fit, at least one."""
        places = range(len(self.columns))
        block, least = self._part(places, console)
        if least <= options.max_width:
            yield block
            return
        keys, left = places[: self._keys], places[self._keys :]
        while left:
            for many in range(len(left), 0, -1):
                block, least = self._part([*keys, *left[:many]], console, narrow=True)
                if least <= options.max_width:
                    break
            if least > options.max_width:  # too narrow for whole words: break them, cut nothing
                for column in block.columns:
                    column.no_wrap, column.min_width = False, None
            yield block
            left = left[many:]

    def _part(
        self, places: Sequence[int], console: Console, *, narrow: bool = False
    ) -> tuple[RichTable, int]:
        """Return a table of some columns, and its smallest width without broken numbers or words.

        Keys may shrink to `letters`, text columns to 16 letters or their longest word, numbers not
        at all; `narrow` wraps headings to the width of their cells.
        """
        part = RichTable(
            box=self.box,
            padding=self.padding,
            pad_edge=self.pad_edge,
            show_header=self.show_header,
            title_justify=self.title_justify,
            caption_justify=self.caption_justify,
        )
        columns, spared = [self.columns[place] for place in places], 0
        for place, column in zip(places, columns, strict=True):
            heading = _broken(column, console) if narrow else column.header
            widths = [_width(cell, console) for cell in (heading, *column.cells)]
            most = max(width.maximum for width in widths)
            least = most
            if place < self._keys:
                least = min(most, self._letters)
            elif column.justify != "right" and not column.no_wrap:
                least = min(most, max(_MIN_TEXT_WIDTH, *(width.minimum for width in widths)))
            spared += most - least
            part.add_column(
                heading,
                justify=column.justify,
                no_wrap=least == most,
                min_width=least,
                overflow="fold",
            )
        every = zip(*(column.cells for column in columns), strict=True)
        for row, line in zip(self.rows, every, strict=True):
            part.add_row(*line, style=row.style, end_section=row.end_section)
        return part, _width(part, console).maximum - spared


def _broken(column: Column, console: Console) -> RenderableType:
    """Wrap a column's heading to the width of its cells, without breaking words."""
    if not isinstance(column.header, str):
        return column.header
    cells = max((_width(cell, console).maximum for cell in column.cells), default=1)
    return fill(column.header, max(cells, 1), break_long_words=False)


def _width(what: RenderableType, console: Console) -> Measurement:
    """Measure the minimal and maximal width of a cell or table, in letters."""
    return Measurement.get(console, console.options.update(max_width=10_000), what)
