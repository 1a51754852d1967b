"""Sphinx extension: pages of labs with their stored outputs, and slides of their pictures.

A page of docs/labs with the text `See [PATH](LINK).`, where PATH is the text of a lab, becomes the
lab as it looks in a notebook after it was run: `tools/labs.py` stored the outputs. Hints, solutions
and what a good answer has are folded, each in a `details` element; buttons open all of a kind.
Code of checks is left out, as a page cannot check. Beside the page of lab N is `slides-N.html`, a
file that needs no other: title and goal, each picture with the heading or exercise that it belongs
to, and what to remember.
"""

import base64
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markup import ROOT, drawn
from mdit_py_plugins.dollarmath import dollarmath_plugin
from PIL import Image

from dpbandit.experiments.labs import Lab
from dpbandit.experiments.labs.checks import checks_of
from tools.labs import OUTPUTS, cells_of, is_fresh, stored, tagged

PAGES = Path(__file__).resolve().parent.parent / "labs"
_SEE = re.compile(r"See \[(experiments/labs/notebooks/lab_(\d\d)_\w+\.py)\]\(\S+\)\.\s*")
_SUMMARIES = {"hint": "Hint", "solution": "Solution", "check": "Check yourself"}
_EXERCISE = re.compile(r"(?s)\*\*Exercise [\d.]+\*\*.*")
_TEMPLATE = Path(__file__).with_name("slides.html")


class Part(NamedTuple):
    """A cell of a lab: its kind, Markdown source, tag, printed text and pictures."""

    code: bool
    source: str
    tag: str
    text: str
    pictures: tuple[str, ...]


def setup(app: Any) -> dict[str, bool]:
    """Register the functions that write pages and slides."""
    app.connect("source-read", _read)
    app.connect("build-finished", _write_slides)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def parts(lab: Lab) -> Iterator[Part]:
    """Yield the cells of a lab with their stored outputs; of checks only those in words."""
    outputs = iter(stored(lab)["cells"] if is_fresh(lab) else ())
    for cell in cells_of(lab):
        code, tag = cell.cell_type == "code", next((t for t in _SUMMARIES if tagged(cell, t)), "")
        if not code:
            yield Part(code, cell.source, tag, "", ())
        elif tag == "check":
            if words := in_words(cell.source):
                yield Part(False, words, tag, "", ())
        else:
            output = next(outputs, {"text": "", "pictures": []})
            yield Part(code, cell.source, tag, output["text"], tuple(output["pictures"]))


def in_words(call: str) -> str:
    """Return what a good answer does, of the check of an exercise that is answered in words."""
    found = re.match(r'check\("((\d+)\.\d+)"\)', call)
    answer = checks_of(found[2])[found[1]] if found else ""
    return f"A good answer {answer}" if isinstance(answer, str) and answer else ""


def _read(app: Any, docname: str, source: list[str]) -> None:
    if see := _SEE.fullmatch(source[0]):
        lab = Lab(ROOT / see[1])
        for file in (lab.path, OUTPUTS / f"lab_{see[2]}.json"):
            app.env.note_dependency(str(file))
        source[0] = page(lab)


def page(lab: Lab) -> str:
    """Return a lab as Markdown for Sphinx."""
    blocks: list[str] = []
    open_tag = ""
    for part in parts(lab):
        if part.tag != open_tag:
            blocks += ["</details>"] if open_tag else []
            summary = f"<summary>{_SUMMARIES.get(part.tag)}</summary>"
            blocks += [f'<details class="lab-{part.tag}">\n{summary}'] if part.tag else []
            open_tag = part.tag
        blocks += _blocks_of(part)
    blocks += ["</details>"] if open_tag else []
    title, *rest = blocks[0].split("\n", 1)
    top = (_RUN if is_fresh(lab) else _NOT_RUN) + _ABOUT
    top = _BUTTONS.format(slides=_SLIDES if has_slides(lab) else "") + "\n\n" + top
    top = top.format(number=lab.number, minutes=lab.minutes)
    return "\n\n".join([title, top, *rest, *blocks[1:]]) + "\n"


_BUTTONS = """<p class="lab-tools">
<button type="button" data-fold="lab-hint" hidden>Show all hints</button>
<button type="button" data-fold="lab-solution" hidden>Show all solutions</button>{slides}
</p>"""
_SLIDES = '\n<a href="slides-{number:02}.html">Slides of its pictures</a>'
_RUN = "This is the notebook after it was run"
_NOT_RUN = "This is the notebook before it is run (`make labs` stores what it prints and draws)"
_ABOUT = """; about {minutes} minutes, an estimate. `dpbandit lab open {number}` opens it to
work in, with checks of your answers."""


def has_slides(lab: Lab) -> bool:
    """Return whether pictures of the lab are stored."""
    return any(part.pictures for part in parts(lab))


def _blocks_of(part: Part) -> list[str]:
    """Return the blocks of a cell: its text, or its code and what it printed and drew."""
    if not part.code:
        return [part.source]
    blocks = [f"```python\n{part.source}\n```"] if part.source else []
    if part.text.strip():
        blocks.append(f"```{{code-block}} text\n:class: lab-output\n\n{part.text.rstrip()}\n```")
    return blocks + [f"![{_described(name)}](outputs/{name})" for name in part.pictures]


def _described(name: str) -> str:
    """Return the description of a picture in one line, for readers who cannot see it."""
    with Image.open(OUTPUTS / name) as image:
        text = str(image.info.get("Description", "")).replace("\n", "; ")
    return re.sub(r"([\[\]\\$*_`])", r"\\\1", text)


def _write_slides(app: Any, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        for stub in sorted(PAGES.glob("[0-9]*.md")):
            see = _SEE.fullmatch(stub.read_text(encoding="utf-8"))
            if see and has_slides(lab := Lab(ROOT / see[1])):
                target = Path(app.outdir) / "labs" / f"slides-{see[2]}.html"
                target.write_text(slides(lab), encoding="utf-8")


def slides(lab: Lab) -> str:
    """Return the slides of a lab as one HTML file."""
    first, *rest = parts(lab)
    title = f"Lab {lab.number}: {lab.title}"
    found = [_rendered(first.source)]
    heading, exercise = title, ""
    for part in rest:
        if not part.code and not part.tag:
            if new := re.search(r"(?m)^## (.+)", part.source):
                heading, exercise = new[1], ""
            if found_text := _EXERCISE.search(part.source):
                exercise = found_text[0]
            if heading == "What to remember":
                found.append(_rendered(part.source))
        for name in part.pictures:
            if part.tag == "solution" and exercise:
                found.append(f"<h2>{html.escape(heading)}</h2>{_rendered(exercise)}")
                exercise = ""
            picture = base64.b64encode((OUTPUTS / name).read_bytes()).decode()
            alt = html.escape(_described(name))
            image = f'<img src="data:image/png;base64,{picture}" alt="{alt}">'
            found.append(f"<h2>{html.escape(heading)}</h2>{image}")
    body = "\n".join(f'<section id="{n}">{each}</section>' for n, each in enumerate(found, 1))
    template = _TEMPLATE.read_text(encoding="utf-8")
    return template.replace("TITLE", html.escape(title)).replace("SLIDES", body)


def _rendered(text: str) -> str:
    """Return Markdown as HTML, with formulas as MathML."""
    parser = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)
    for kind, display in (("math_inline", "inline"), ("math_block", "block")):
        parser.add_render_rule(
            kind, lambda self, tokens, at, *_, display=display: drawn(tokens[at].content, display)
        )
    return str(parser.render(text))
