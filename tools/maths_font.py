"""Make the font of formulas on the pages, a subset of TeX Gyre Termes Math, which is far larger.

    pip install brotli fonttools
    python tools/maths_font.py texgyretermes-math.otf

Debian has the whole font in `fonts-texgyre-math`. Its licence requires another name for a changed
font: docs/_static/fonts/README.md.
"""

import sys
from pathlib import Path

FONT = Path(__file__).resolve().parent.parent / "docs" / "_static" / "fonts" / "formulas.woff2"
NAME = "Formulas"  # of the new font
RANGES = (  # code points that the font has, first and last
    (0x20, 0x7E),  # Latin
    (0xB1, 0xB1),  # plus or minus
    (0xB7, 0xB7),  # a dot in the middle
    (0xD7, 0xD7),  # times
    (0x391, 0x3F6),  # Greek
    (0x2016, 0x2016),  # a norm's bars
    (0x2026, 0x2026),  # an ellipsis
    (0x2032, 0x2033),  # primes
    (0x2061, 0x2064),  # invisible operators
    (0x210E, 0x2113),  # italic h, script letters
    (0x211D, 0x211D),  # the real numbers
    (0x2190, 0x2194),  # arrows
    (0x21D0, 0x21D4),
    (0x2200, 0x22FF),  # operators and relations
    (0x2308, 0x230B),  # floor and ceiling
    (0x27E8, 0x27E9),  # angle brackets
    (0x1D400, 0x1D467),  # bold, italic, both
    (0x1D49C, 0x1D4B5),  # script
    (0x1D538, 0x1D550),  # double-struck
    (0x1D6A4, 0x1D6E1),  # dotless letters, bold Greek
    (0x1D6E2, 0x1D71B),  # italic Greek
)


def covers(letter: str) -> bool:
    """Return True if the font on the pages has this letter."""
    return any(first <= ord(letter) <= last for first, last in RANGES)


def cut(source: Path, target: Path) -> None:
    """Write the subset `RANGES` of a font, with metrics and the MATH table, as WOFF2."""
    from fontTools import subset

    options = subset.Options(flavor="woff2", hinting=False, layout_features=["*"], name_IDs=["*"])
    options.drop_tables += ["FFTM"]
    font = subset.load_font(source, options)
    letters = [code for first, last in RANGES for code in range(first, last + 1)]
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=letters)
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 3, 4, 16):
            record.string = NAME
        elif record.nameID == 6:
            record.string = f"{NAME}-Regular"
    subset.save_font(font, target, options)


if __name__ == "__main__":
    cut(Path(sys.argv[1]), FONT)
