"""How to cite: the same version and licence as the package, and the five papers."""

import tomllib

import yaml

from dpbandit.version import VERSION
from tests.docs.markdown import ROOT


def test_citation_says_what_the_package_says():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == VERSION
    assert citation["license"] == project["license"]
    assert citation["title"] == project["name"]
    assert {"message", "type", "authors"} <= citation.keys()


def test_references_are_complete():
    """What Citation File Format 1.2.0 asks of a reference: type, title, authors; and a year."""
    references = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert len(references) == 5
    for reference in references:
        assert {"type", "title", "authors", "year"} <= reference.keys()
        assert all({"family-names", "given-names"} == a.keys() for a in reference["authors"])
        if reference["type"] == "conference-paper":
            assert reference["conference"]["name"]
