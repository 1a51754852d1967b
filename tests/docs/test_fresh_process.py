"""What a page shows, done by somebody who has nothing but that: a process of its own."""

import os
import re
import subprocess
import sys

import pytest

from tests.docs.markdown import ROOT, blocks, pages

OURS = re.compile(r"""gym\.make(?:_vec)?\(\s*["']dpbandit/""")


def in_a_process(folder, *command):
    """Run it in `folder`, which is not the checkout; what it printed."""
    path = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def block(page, text):
    """The one block of a page that has this text."""
    (found,) = [b.text for b in blocks((ROOT / page).read_text()) if text in b.text]
    return found


SHOWN = [(page, shown.text) for page in pages() for shown in blocks((ROOT / page).read_text())]
MAKING = [pytest.param(text, id=page) for page, text in SHOWN if OURS.search(text)]


@pytest.mark.parametrize("text", MAKING)
def test_who_makes_our_environment_imports_us_first(text):
    """Else Gymnasium knows no namespace dpbandit; a block is copied without those above it."""
    assert re.search(r"(?m)^(import|from) dpbandit\b", text), text


def test_an_environment_in_the_current_folder(tmp_path):
    """coffee.py as its page has it, and the program as pip installs it: not beside coffee.py."""
    page = "docs/howto/environment.md"
    registered, _, _ = block(page, "gym.register(").partition("env = ")
    (tmp_path / "coffee.py").write_text(block(page, "# coffee.py") + registered)
    (tmp_path / "bin").mkdir()
    script = "import sys\nfrom dpbandit.cli import main\nsys.exit(main())\n"
    (tmp_path / "bin" / "dpbandit").write_text(script)
    (command,) = re.findall(r"`dpbandit (compare coffee[^`]+)`", (ROOT / page).read_text())
    sizes = ["--horizon", "20", "--replicas", "2"]
    assert "Coffee-v0" in in_a_process(tmp_path, "bin/dpbandit", *command.split(), *sizes)
