"""A picture that the page has to shrink leads to its file, in full size."""

from typing import Any

from docutils import nodes


def setup(app: Any) -> dict[str, bool]:
    """Of pictures made of points; drawings are made for the page's width."""
    app.connect("doctree-read", _linked)
    return {"parallel_read_safe": True}


def _linked(app: Any, doctree: nodes.document) -> None:
    for image in doctree.findall(nodes.image):
        if image["uri"].endswith(".png"):
            image["width"] = "100%"  # Sphinx links those that are scaled; custom.css unscales them
