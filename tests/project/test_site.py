"""The site: built without a warning, it loads nothing from other hosts, all links have targets, pages fit a phone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from source_tree import ROOT

import longwall

pytestmark = pytest.mark.slow

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
    "--allow-file-access-from-files",
)
MEASURE = """<script>
addEventListener("load", () => {
  const scrolls = one => one.scrollWidth > one.clientWidth + 1;
  const WRONG = root => PREDICATE;
  const wide = [...document.querySelectorAll("iframe")].filter(one => {
    const root = one.contentDocument.documentElement;
    return !root.querySelector("h1") || WRONG(root);
  });
  document.title = "measured: " + wide.map(one => one.getAttribute("src")).join(" ");
});
</script>"""


class Links(HTMLParser):
    """What a page names: its anchors, what it links to, and what a browser loads for it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.anchors |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        elif tag == "link" and named.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(named["href"])
        self.loaded += [named[name] for name in ("src", "srcset", "poster", "data") if name in named]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built anew."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install '.[docs]'")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([ROOT / ".ci" / "links"], check=True)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    """Every page, read."""
    found = {path: Links(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(found) > 35
    return found


def test_nothing_is_loaded_from_other_hosts(site: Path, pages: dict[Path, Links]) -> None:
    assert {one for page in pages.values() for one in page.loaded if urlsplit(one).netloc} == set()
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import\s+)[\"']?(?:https?:)?//[^)]*", styles) == []


def test_every_link_has_a_target(pages: dict[Path, Links]) -> None:
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            fragment = unquote(parts.fragment)
            known = target in pages and (not fragment or fragment in pages[target].anchors)
            if not known and not fragment.startswith("__"):
                dead.append(f"{path.name}: {link}")
    assert dead == []


def test_every_public_name_has_an_entry(pages: dict[Path, Links]) -> None:
    anchors = {anchor for page in pages.values() for anchor in page.anchors}
    assert {f"longwall.{name}" for name in longwall.__all__ if name != "__version__"} <= anchors


def test_a_function_has_one_signature_before_its_sentence(site: Path) -> None:
    """Overloads are for type checkers."""
    _, *functions = re.split(r"<h2\b", (site / "reference" / "functions.html").read_text())
    assert len(functions) > 8
    for function in functions:
        before, _, _ = function.partition("<p>")
        assert before.count("doc-signature") == (0 if 'id="longwall.Options"' in before else 1), function[:80]


def test_docstrings_are_markdown(site: Path) -> None:
    """No roles of Sphinx, and no code whose backquotes are shown."""
    for path in (site / "reference").glob("*.html"):
        text = re.sub(r"<pre.*?</pre>|<[^>]*>", "", path.read_text(), flags=re.DOTALL)
        assert re.findall(r":(?:func|class|mod):|``", text) == [], path.name


def browse(folder: Path, *words: str) -> str:
    if BROWSER is None:
        pytest.skip("no chromium here: the site is not looked at in a browser")
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout


WIDE_PAGE = "root.scrollWidth > root.clientWidth"
WIDE_TABLE = """[...root.querySelectorAll("table:not([class])")]
    .some(one => one.rows[0].cells.length >= 7 && scrolls(one.closest(".md-typeset__scrollwrap") || one))"""
WIDE_DIAGRAM = '[...root.querySelectorAll(".language-text pre > code")].some(scrolls)'


@pytest.mark.parametrize(
    ("width", "wrong"),
    [(400, WIDE_PAGE), (1200, WIDE_PAGE), (400, WIDE_TABLE), (1280, WIDE_DIAGRAM)],
    ids=["phone", "desk", "tables on a phone", "diagrams"],
)
def test_no_page_is_wider_than_the_screen(
    site: Path, pages: dict[Path, Links], tmp_path: Path, width: int, wrong: str
) -> None:
    frame = '<iframe src="{}" style="border:0;width:{}px;height:900px"></iframe>'
    frames = "".join(frame.format(path.as_uri(), width) for path in sorted(pages))
    (tmp_path / "frames.html").write_text(
        f"<!DOCTYPE html><title>nothing</title>{frames}{MEASURE.replace('PREDICATE', wrong)}"
    )
    shown = browse(tmp_path, "--dump-dom", "--window-size=1300,2000", (tmp_path / "frames.html").as_uri())
    title = re.search("<title>(.*?)</title>", shown, re.DOTALL)
    assert title is not None
    assert title[1].strip() == "measured:"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1200])
def test_pictures_are_made(site: Path, tmp_path: Path, width: int, dark: bool) -> None:
    """``LONGWALL_SCREENSHOTS`` names a folder for them, to be looked at."""
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    shown = browse(tmp_path, scheme, "--dump-dom", (site / "index.html").as_uri())
    assert f'data-md-color-scheme="{"slate" if dark else "default"}"' in shown, "no script ran"
    kept = Path(os.environ.get("LONGWALL_SCREENSHOTS", tmp_path))
    for name in ("index", "start", "reference/functions", "reference/config"):
        picture = kept / f"{name.replace('/', '-')}-{width}{'-dark' if dark else ''}.png"
        browse(
            tmp_path, scheme, f"--screenshot={picture}", f"--window-size={width},2000", (site / f"{name}.html").as_uri()
        )
        assert picture.stat().st_size > 20_000, "a page without anything on it is smaller"
