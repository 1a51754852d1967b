"""Every relative link of a page leads to a file that is there, and to a heading in it."""

from tests.docs.markdown import ROOT, anchors, links, pages, readmes, text_of
from tests.each import each

PAGES = [*pages(), "CHANGELOG.md", *readmes()]


def broken(file, text):
    """The links of `text`, which stands in `file`, that lead nowhere."""
    for link in links(text):
        path, _, anchor = link.partition("#")
        target = (file.parent / path).resolve() if path else file
        there = target.exists() and target.is_relative_to(ROOT)
        if not there or (anchor and anchor not in anchors(text_of(target) if path else text)):
            yield link


@each("name", PAGES)
def test_links_lead_somewhere(name):
    file = ROOT / name
    assert list(broken(file, file.read_text())) == []


def test_broken_links_are_found():
    """Broken on purpose: no such file, no such heading, of another page or of one's own; code is no
    link."""
    text = """# A page
[ok](start.md), [ok](../README.md#two-commands), [ok](#a-page), `[code](nowhere.md)`

    [indented](nowhere.md)

```
[block](nowhere.md)
```
[a](nowhere.md) ![b](nowhere.png) [c](../README.md#no-such) [d](#no-such) [e](/etc/passwd)
[f](https://example.org/nowhere.md)
"""
    found = ["nowhere.md", "nowhere.png", "../README.md#no-such", "#no-such", "/etc/passwd"]
    assert list(broken(ROOT / "docs" / "start.md", text)) == found


def test_headings_become_anchors():
    """Golden: the rules of GitHub, which MyST follows."""
    text = "# What was printed, and what holds\n## `a_b` & *c*\n## Twice\n## Twice\n"
    assert anchors(text) == {"what-was-printed-and-what-holds", "a_b--c", "twice", "twice-1"}
