"""Check the words of the code, and draw samples of them for a reader to grade::

    python tools/words.py                  # `make lint` runs it
    python tools/words.py agents/arms      # all that it finds in a folder
    python tools/words.py draw SEED        # 120 docstrings and 40 constants, the same for a seed

A docstring opens with a verb or a noun, a constant is named by what it limits or holds, and a term
has one name in the whole tree (docs/glossary.md). The program imports nothing of the project.
"""

import ast
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from measures import ROOT, tracked

OPENERS = frozenset(
    "What Of One Ones How Whether Where Which Those Who Whose Whom As By For That And Than "
    "Hers Theirs Its".split()
)
"""First words with which a docstring is not a whole sentence or noun phrase."""
REPLACED = frozenset(
    "told asked said shown kept due worth luck hers fed watched vetoed tame unsaid dearest "
    "roll books hear heard believe believed belongs".split()
)
"""Everyday words that once replaced terms; no part of a name (at underscores) may be one."""
REPLACED_ALONE = REPLACED | frozenset("own both given still quiet standing".split())
"""Words that may be part of a name, but not a whole name."""
VAGUE = frozenset(
    "a above after ahead alike all apart around as at below beside both by clear close common down "
    "each enough ever every everywhere far few fine first flat for free given grown here high huge "
    "in is it its large largest last later least likely little long longest low many mixed more "
    "most much narrow near nearest needed never no not nothing of often on one once others ours "
    "own plain quick rare regular safe same seldom short shorter shortest side small some soon "
    "steepest straight sure than the tiny to together true typical up usual very which who why "
    "wide widest with zero".split()
)
"""Words that do not say what a constant is; its name needs at least one other word."""
PUBLIC_SETTINGS = frozenset({"agents/people/per_person.py: told"})
"""Settings that may be named by one of `REPLACED`, as stored results and pages have the name."""
MAX_HOMES = 2
"""Largest number of files that define a constant of the same name, if that is one word."""
SHARED_CONSTANTS = frozenset({"ROOT", "T", "STUDY", "CHECKS"})  # names not limited by `MAX_HOMES`


class Word(NamedTuple):
    """A docstring or a constant, with its file and line."""

    file: Path
    line: int
    owner: str
    text: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} {self.owner}"


def main(arguments: list[str]) -> int:
    """Print violations of the rules, and return 1 if there are any; with `draw SEED`, samples."""
    source = [file for file in tracked("*.py") if not {"tests", "notebooks"} & {*file.parts}]
    trees = {file: ast.parse(file.read_text()) for file in source}
    docs = [doc for file, tree in trees.items() for doc in docstrings(file, tree)]
    constants = [name for file, tree in trees.items() for name in constants_of(file, tree)]
    if arguments[:1] == ["draw"]:
        draw(docs, constants, seed=int(arguments[1]))
        return 0
    broken = [*vague(constants), *replaced(trees)]
    broken += [
        f"{doc} opens with {doc.text.split()[0]}"
        for doc in docs
        if doc.text.split()[0].strip(",.:;") in OPENERS
    ]
    broken = [line for line in broken if line.startswith(tuple(arguments or [""]))]
    print(*broken, sep="\n", end="\n" if broken else "")
    return int(bool(broken))


def vague(constants: list[Word]) -> Iterator[str]:
    """Yield constants named by `VAGUE` words only, and names of one word that many files define."""
    homes = defaultdict(set)
    for name in constants:
        homes[name.owner].add(name.file)
    for name in constants:
        parts = name.owner.strip("_").lower().split("_")
        if VAGUE.issuperset(parts):
            yield f"{name}: name the thing that the constant limits or holds"
        shared = len(homes[name.owner]) > MAX_HOMES and name.owner not in SHARED_CONSTANTS
        if len(parts) == 1 and shared:
            yield f"{name}: {len(homes[name.owner])} files have a constant of this name"


def replaced(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield names with an everyday word in place of a term, each once per file."""
    for file, tree in trees.items():
        seen = set()
        for node in ast.walk(tree):
            for name in bound(node):
                parts = name.strip("_").lower().split("_")
                if f"{file.relative_to(ROOT)}: {name}" in PUBLIC_SETTINGS:
                    continue
                if name not in seen and (
                    REPLACED.intersection(parts) or (len(parts) == 1 and parts[0] in REPLACED_ALONE)
                ):
                    seen.add(name)
                    yield f"{file.relative_to(ROOT)}:{node.lineno} {name}: see docs/glossary.md"


def bound(node: ast.AST) -> list[str]:
    """Return the names that a node binds, as definition, argument, variable or attribute."""
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            return [node.name]
        case ast.arg():
            return [node.arg]
        case ast.Name(ctx=ast.Store()):
            return [node.id]
        case ast.Attribute(ctx=ast.Store()):
            return [node.attr]
    return []


def docstrings(file: Path, tree: ast.Module) -> Iterator[Word]:
    """Yield the docstrings of a module, its classes, functions, fields and constants."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        if text := ast.get_docstring(node):
            yield Word(file, getattr(node, "lineno", 1), getattr(node, "name", file.stem), text)
        if not isinstance(node, ast.FunctionDef):
            for before, after in zip(node.body, node.body[1:], strict=False):
                match before, after:
                    case (
                        ast.Assign() | ast.AnnAssign(),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        target = before.targets[0] if hasattr(before, "targets") else before.target
                        yield Word(file, before.lineno, ast.unparse(target), text)


def constants_of(file: Path, tree: ast.Module) -> Iterator[Word]:
    """Yield the constants of a module, each with its source and the comments directly above it."""
    lines = file.read_text().splitlines()
    for node in tree.body:
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            if isinstance(target, ast.Name) and target.id.strip("_").isupper():
                first = node.lineno - 1
                while first and lines[first - 1].startswith("#"):
                    first -= 1
                text = "\n".join(lines[first : node.end_lineno])
                yield Word(file, node.lineno, target.id, text)


def draw(docs: list[Word], constants: list[Word], *, seed: int) -> None:
    """Print 120 docstrings and 40 constants at random, each alone, as a reader meets them."""
    drawn = random.Random(seed)
    for number, doc in enumerate(drawn.sample(docs, 120), 1):
        print(f"\n[{number}] {doc}\n{doc.text}")
    described = {(doc.file, doc.line): doc.text for doc in docs}
    for number, name in enumerate(drawn.sample(constants, 40), 1):
        text = described.get((name.file, name.line), "")
        print(f"\n[c{number}] {name}\n{name.text[:600]}\n{text}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
