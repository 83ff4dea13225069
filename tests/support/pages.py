"""A page of HTML, read for tests: its elements, its text, and what a browser would load."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise

_BLOCKS = {"td", "th", "p", "dt", "dd", "li", "h1", "h2", "h3", "b", "figcaption", "caption", "text", "title", "div"}
_VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Elements with their attributes and the text below them; raises where tags do not match."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(html)
        self.close()
        assert not self._open, f"left open: {[element[0] for element in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute of {tag} twice"
        element: tuple[str, dict[str, str | None], list[str]] = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> without a beginning"
        assert self._open.pop()[0] == tag
        if tag in _BLOCKS:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        for _, _, texts in self._open:
            texts.append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        """Attributes and text of all elements of a name."""
        return [(attributes, "".join(texts).strip()) for name, attributes, texts in self.elements if name == tag]

    def text(self) -> str:
        """The text of the page, without its style sheet."""
        ((_, page),) = self.all("main")
        return " ".join(page.split())


def check_page(html: str) -> Page:
    """Read a page, and see that it stands alone and that every picture has words."""
    page = Page(html)
    tags = {tag for tag, _, _ in page.elements}
    assert tags.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "form", "image", "use", "base"})
    for tag, attributes, _ in page.elements:
        loaded = {"src", "href", "srcset", "action", "data", "poster", "xlink:href", "style"} & attributes.keys()
        assert not loaded, f"{tag} has {loaded}"
        assert not [name for name in attributes if name.startswith("on")], f"{tag} has a handler"
    ((_, style),) = page.all("style")
    assert "url(" not in style
    assert "@import" not in style
    policies = [a["content"] for a, _ in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    for at, (tag, attributes, _) in enumerate(page.elements):
        if tag == "svg":
            assert attributes["role"] == "img"
            assert attributes["aria-label"]
            title, _, words = page.elements[at + 1]
            assert title == "title"
            assert "".join(words) == attributes["aria-label"]
    headings = [int(tag[1]) for tag, _, _ in page.elements if tag in {"h1", "h2", "h3", "h4"}]
    assert headings[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
    return page
