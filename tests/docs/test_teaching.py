"""The table of labs says what the labs say."""

import re

from dpbandit.experiments.labs.catalogue import labs
from tests.docs.markdown import ROOT


def test_labs_are_listed():
    text = (ROOT / "docs" / "howto" / "teach.md").read_text()
    listed = re.findall(r"(?m)^\| (\d+) \| ([^|]+) \| (\d+) \|", text)
    assert listed == [(str(lab.number), lab.title, str(lab.minutes)) for lab in labs()]
