"""Every code block and command of README, CONTRIBUTING and docs/ runs, at a reduced size.

Of a page, in order, in a temporary folder and without a network:

    ```python          executed, in one namespace for the whole page; plots go nowhere
    ```toml, python    whose first line is a file's name (`# coffee.py`): written there
    ```sh, console     `dpbandit ...` runs in this process; commands that install, test or lint are
                       only looked at: extras, files and modules that they name are there; of a
                       study (`python -m dpbandit.experiments...`) the options are parsed
    `dpbandit ...`     in a line, or indented: the same; a command alone (`dpbandit certify`)
                       stands for the command, which shows its help
    other languages    not looked at; `<!-- not run: why -->` before a block, neither

The one rule of reduction: numbers of rounds, replicas, runs and jobs above `CAPS` become that, and
commands in `ADDED` have the caps where nothing is said; of tables only `ROWS` are made, with one
scale of steps; sweeps keep one epsilon and lose their audits; `audit --all` audits nobody, and
JupyterLab is not installed. Commands `certify` in lines of docs/algorithms run up to the
accountant: test_algorithm_pages.py goes on.
"""

import re
import shlex
import socket
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path

import gymnasium as gym
import pytest
import typer

from dpbandit import cli, compare
from dpbandit.experiments.paper_tables import TABLES
from dpbandit.experiments.sgd import STUDY
from tests.docs.markdown import ROOT, blocks, inline, pages, readmes
from tests.each import by_rota, changed

CAPS = {"horizon": 100, "replicas": 2, "runs": 400, "jobs": 1}
ADDED = {"compare": ("horizon", "replicas"), "reproduce": ("horizon", "replicas")}
ADDED["audit"] = ("runs",)
ROWS = dict.fromkeys(TABLES, "2,T=64") | {
    "sgd/table-5-1": "algo=OFW,T=1000,d=5,p=1.5",
    "sgd/figure-5-2": "T=20",
    "sgd/figure-5-3": "T=20",
    "sgd/all-steps": "T=20",
    "window/table-1": "4,T=32,W=8,epsilon=1",
    "contextual/theorem-4-2": "logistic,T=640",
    "contextual/theorem-4-3": "T=640,d=20",
}
LANGUAGES = ("python", "toml", "sh", "console")
LOOKED_AT = {"build", "pre-commit", "ruff", "mypy", "sphinx-build", "git", "cd", "dask", "venv"}
LOOKED_AT |= {"pytest-benchmark", "source"}
SLOW = ("docs/errata.md", "docs/literature.md")  # whose commands stand in studies, too
EXTRAS = re.search(
    r"(?ms)^\[project.optional-dependencies\]\n(.*?)^\[", (ROOT / "pyproject.toml").read_text()
)[1]


def reduced(text):
    """Sizes in Python and TOML cut to the caps."""

    def cut(found):
        cap = CAPS[found[1]]
        return found[1] + found[2] + str(min(cap, int(found[3])))

    return re.sub(rf"\b({'|'.join(CAPS)})( ?= ?)(\d[\d_]*)", cut, text)


def reduced_sweep(text):
    """A sweep at one small horizon and one epsilon, without audits."""
    text = re.sub(r"(?m)^horizons = .*$", f"horizons = [{CAPS['horizon']}]", text)
    text = re.sub(r"(?m)^(epsilons = \[[^,\]]*).*$", r"\1]", text)
    return reduced(re.sub(r"(?ms)^\[audit\]\n.*?(?=^\[|\Z)", "", text))


def reduced_command(words):
    """The options of a `dpbandit` command cut to the caps, or added."""
    command, words = words[0], list(words)
    if command == "certify" or "--list" in words:
        return words
    added = set(ADDED.get(command, ()))
    if words[1:2] and words[1] in TABLES:
        added.remove("horizon")
        rows = words.index("--rows") if "--rows" in words else len(words)
        words[rows : rows + 2] = ["--rows", ROWS[words[1]]]
    for name, cap in CAPS.items():
        option = f"--{name}"
        if option in words:
            i = words.index(option) + 1
            words[i] = str(min(cap, int(words[i])))
        elif name in added:
            words += [option, str(cap)]
    return words


def commands(block):
    """The commands of a shell block as lists of words; in a console block those after `$`."""
    text = block.text.replace("\\\n", " ")
    for line in text.splitlines():
        if block.language == "console":
            prompt, _, line = line.partition("$ ")
            if prompt:
                continue
        words = []
        for word in [*shlex.split(line, comments=True), "&&"]:
            if word != "&&":
                words.append(word)
            elif words:
                yield words
                words = []


def obey(words, namespace):
    """Run a command, or look whether it could."""
    while re.match(r"\w+=", words[0]):  # an environment variable
        words = words[1:]
    program, rest = Path(words[0]).name, words[1:]
    if program in ("python", "python3") and rest[0] == "-m":
        program, rest = rest[1], rest[2:]
        if program.startswith("dpbandit."):
            parse(program, rest)
            return
    if program == "dpbandit":
        run(rest)
    elif program in ("python", "python3") and rest[0] == "-c":
        exec(reduced(rest[1]), namespace)
    elif program == "pip":
        assert rest[0] == "install"
        named = [extra for word in rest for extra in re.findall(r"\[([\w,-]+)\]", word)]
        for extra in ",".join(named).split(",") if named else ():
            assert re.search(rf"(?m)^{extra} = ", EXTRAS), f"no extra {extra}"
    elif program == "make":
        for word in rest:
            assert re.search(rf"(?m)^{word}:", (ROOT / "Makefile").read_text()), f"no rule {word}"
    elif program == "pytest":
        for word in rest:
            assert "/" not in word or (ROOT / word).exists(), f"no file {word}"
    else:
        script = program.startswith("python") and (ROOT / rest[0]).exists()
        assert script or program in LOOKED_AT or "=" in program, f"what is {words}?"


def parse(module, words):
    """The options of a study, up to the point where its work begins."""
    app = typer.Typer()
    try:
        study = import_module(module)
        study = study if hasattr(study, "main") else import_module(f"{module}.__main__")
        app.command()(study.main)
        given = typer.main.get_command(app).make_context(module, list(words)).params
    except Exception as mistake:
        raise AssertionError(f"{module} {shlex.join(words)}: {mistake}") from mistake
    assert given.keys() == signature(study.main).parameters.keys()


def run(words):
    """A command of ours, in this process: exit code 0."""
    for word in words:
        ours = word.endswith(".toml") and (ROOT / word).exists()
        if ours and not Path(word).exists():
            Path(word).parent.mkdir(parents=True, exist_ok=True)
            Path(word).write_text(reduced_sweep((ROOT / word).read_text()))
    if len(words) < 2 and not any(word.startswith("-") for word in words):
        words = [*words, "--help"]
    sys.argv = ["dpbandit", *reduced_command(words)]
    code = 0
    try:
        cli.main()
    except SystemExit as end:
        code = end.code
    assert not code, f"{shlex.join(sys.argv)} ends with {code}"


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A folder, no network, no screen, and nothing left behind."""
    connect = socket.socket.connect

    def local(self, address):
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
            raise OSError(f"no network for pages: {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local)
    for name in ("horizon", "replicas"):
        monkeypatch.setitem(compare.__kwdefaults__, name, CAPS[name])
    monkeypatch.setattr("dpbandit.auditing.small_problems.audit_all", lambda configs, **how: {})
    monkeypatch.setattr("dpbandit.suite.play._ages_of", lambda run: {})  # tests/suite has them
    for scales in (name for name in STUDY.sizes if name.endswith("_scales")):
        monkeypatch.setitem(STUDY.sizes, scales, [1.0])
    monkeypatch.setattr("dpbandit.commands.labs.find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    registered = set(gym.registry)
    yield tmp_path
    for name in set(gym.registry) - registered:
        del gym.registry[name]
    for file in tmp_path.glob("*.py"):
        sys.modules.pop(file.stem, None)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def runnable(text):
    """The blocks and commands of a page, in order."""
    found = sorted([*blocks(text), *inline(text)], key=lambda block: block.line)
    return [b for b in found if b.language in LANGUAGES and not b.not_run]


def run_page(text, folder, left_out=()):
    """All of them but some."""
    namespace = {"__name__": "page"}
    for block in runnable(text):
        if block in left_out:
            continue
        file = re.match(r"# ([\w-]+\.(?:py|toml))\n", block.text)
        if file and block.language in ("python", "toml"):
            cut = reduced_sweep if block.language == "toml" else reduced
            (folder / file[1]).write_text(cut(block.text))
        elif block.language == "python":
            code = "\n" * (block.line - 1) + reduced(block.text)
            exec(compile(code, "page", "exec"), namespace)
        elif block.language != "toml":
            for words in commands(block):
                obey(words, namespace)


def lively():
    """The pages that have something to run; where that is Python alone, without a check of ours, it
    must not raise. All but README.md and pages that the last commit, or an edit, changes come in
    turns."""
    algorithms = [name for name in pages() if name.startswith("docs/algorithms/")]
    others = [name for name in pages() if name not in (*algorithms, *SLOW, "README.md")]
    turns = [*by_rota(algorithms, 6), *by_rota(SLOW, 2), *by_rota(others, 5, slow=False)]
    due = {param.values[0]: list(param.marks) for param in turns}
    now = ["README.md", *(name for name in others if name in changed())]
    due |= {name: [pytest.mark.turn] for name in now}
    for name in [*pages(), *readmes()]:
        languages = {block.language for block in runnable((ROOT / name).read_text())}
        marks = due.get(name, [])
        checks = re.search(r"\bcheck_(agent|problem)\(", (ROOT / name).read_text())
        if languages <= {"python", "toml"} and not checks:
            marks.append(pytest.mark.smoke)
        if languages:
            yield pytest.param(name, marks=marks)


@pytest.mark.filterwarnings("ignore:(Prices were not randomised|Dropped 1 of 1500 rows)")
@pytest.mark.filterwarnings("ignore:.*released nothing in the first half")  # of what is cut
@pytest.mark.parametrize("name", [*lively()])
def test_blocks_run(name, alone):
    text = (ROOT / name).read_text()
    run_page(text, alone, inline(text) if name.startswith("docs/algorithms/") else ())


def test_commands_in_lines_of_algorithms_reach_the_accountant(alone, monkeypatch):
    """Agents, settings, environments and options are all there."""
    reached, found = [], []
    monkeypatch.setattr("dpbandit.running.compare.certify", lambda *a: reached.append(a))
    for name in pages():
        if name.startswith("docs/algorithms/"):
            found += inline((ROOT / name).read_text())
    found = [block for block in found if block.text.startswith("dpbandit certify ")]
    for block in found:
        for words in commands(block):
            obey(words, {})
    assert len(reached) == len(found) > 40


def test_sizes_are_cut_and_nothing_else():
    """Golden: what the rule of reduction says; of commands in lines those over two lines, indented,
    without options that may be left out, not in fences. Few blocks are not run."""
    code = "compare(env, horizon=20_000, replicas=1, seed=7000)"
    assert reduced(code) == "compare(env, horizon=100, replicas=1, seed=7000)"
    file = "horizons = [5000]\nepsilons = [1.0, inf]\n[audit]\nruns = 4000\n[[agents]]\nid = 'x'\n"
    wanted = "horizons = [100]\nepsilons = [1.0]\n[[agents]]\nid = 'x'\n"
    assert reduced_sweep(file) == wanted
    for words, cut in (
        (
            "compare OJ --horizon 2000 --epsilon 2000 --replicas 2",
            "100 --epsilon 2000 --replicas 2",
        ),
        ("audit --all", "audit --all --runs 400"),
        ("certify --horizon 9999", "certify --horizon 9999"),
    ):
        assert " ".join(reduced_command(words.split())).endswith(cut)
    text = """Some `dpbandit\nenvs`, no `dpbandit.agents`, no `dpbandit/OJPricing-v0`.

    python -m dpbandit.experiments.sgd [--quick] [--out DIR]

```sh
dpbandit agents  # `dpbandit lab list`
```
"""
    words = [block.text.strip() for block in inline(text)]
    assert words == ["dpbandit envs", "python -m dpbandit.experiments.sgd"]
    left_out = [b for name in pages() for b in blocks((ROOT / name).read_text()) if b.not_run]
    assert len(left_out) <= 8


@pytest.mark.parametrize(
    ("language", "wrong"), [
        ("python", "assert 1 == 2"),
        ("python", "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"),
        ("sh", "dpbandit compare NoSuchEnvironment"),
        ("sh", "python3 -m venv .venv && .venv/bin/pip install '.[no-such-extra]'"),
        ("sh", "pytest tests/no_such_test.py"),
        ("console", "$ python -m dpbandit.experiments.no_such_study"), ("sh", "curl example.org"),
        ("sh", "python -m dpbandit.experiments.convex --quik"), ("sh", "dpbandit certfy"),
        ("", "So `dpbandit certify no-such\nagent` is."), ("", "So:\n\n    dpbandit no"),
    ],
)  # fmt: skip
def test_broken_blocks_are_found(language, wrong, alone):
    """Also broken commands in lines, without a language."""
    page = f"```{language}\n{wrong}\n```\n" if language else wrong
    with pytest.raises((AssertionError, OSError)):
        run_page(page, alone)
    if language:
        run_page(f"<!-- not run: it is broken -->\n{page}", alone)
