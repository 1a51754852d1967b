"""What pages show, done by somebody who has nothing but that."""

import os
import re
import subprocess
import sys
from types import ModuleType

import pytest

from dpbandit.testing import check_agent
from tests.docs.markdown import ROOT, blocks, pages
from tests.harness import DISJOINT

HOWTO = ROOT / "docs" / "howto"
OURS = re.compile(r"""gym\.make(?:_vec)?\(\s*["']dpbandit/""")


def block(page, text):
    """The one block of a page that has this text."""
    (found,) = [b.text for b in blocks((HOWTO / page).read_text()) if text in b.text]
    return found


def test_who_makes_our_environment_imports_us_first():
    """Else Gymnasium knows no namespace dpbandit; a block is copied without those above it."""
    shown = [(page, block.text) for page in pages() for block in blocks((ROOT / page).read_text())]
    making = [(page, text) for page, text in shown if OURS.search(text)]
    assert making
    for page, text in making:
        assert re.search(r"(?m)^(import|from) dpbandit\b", text), f"{page}: {text}"


def test_an_environment_in_the_current_folder(tmp_path):
    """coffee.py as its page has it, and the program as pip installs it: not beside coffee.py."""
    registered, _, _ = block("environment.md", "gym.register(").partition("env = ")
    (tmp_path / "coffee.py").write_text(block("environment.md", "# coffee.py") + registered)
    (tmp_path / "bin").mkdir()
    script = "import sys\nfrom dpbandit.cli import main\nsys.exit(main())\n"
    (tmp_path / "bin" / "dpbandit").write_text(script)
    page = (HOWTO / "environment.md").read_text()
    (command,) = re.findall(r"`dpbandit (compare coffee[^`]+)`", page)
    words = ["bin/dpbandit", *command.split(), "--horizon", "20", "--replicas", "2"]
    how = {"env": {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}, "text": True}
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, **how)
    assert done.returncode == 0, done.stderr
    assert "Coffee-v0" in done.stdout


def test_an_agent_keeps_what_it_promises(monkeypatch):
    """As its page writes it; not if it forgets that a user of another arm moves two cells."""
    module = ModuleType("private_segments")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(block("agent.md", "# private_segments.py"), vars(module))
    found = check_agent(module.PrivateSegments(), DISJOINT)
    checks = "certificate replicas copies ledger sensitivity billboard noise"
    assert " ".join(line.partition(":")[0] for line in found) == checks
    monkeypatch.setattr(module.ArmSums, "sensitivity", 2**0.5)
    with pytest.raises(AssertionError, match="their sensitivity"):
        check_agent(module.PrivateSegments(), DISJOINT)
