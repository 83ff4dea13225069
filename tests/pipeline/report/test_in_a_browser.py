"""Reports in headless Chromium: nothing is wider than the screen, nothing is loaded, and a picture is made of each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import longwall

pytestmark = pytest.mark.slow

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (400, 1200)
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
)
_MEASURE = """<script>
addEventListener("load", () => {
  const page = document.getElementById("page").contentDocument, root = page.documentElement;
  const wide = [...page.querySelectorAll("main *")].filter(
    one => !one.closest(".scroll") && one.getBoundingClientRect().right > root.clientWidth + 1);
  const some = wide.map(one => one.outerHTML.slice(0, 60));
  document.title = [root.scrollWidth, root.clientWidth, wide.length, some].join(" ");
});
</script>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of two runs, with a long name and a long path, and their comparison."""
    folder = tmp_path_factory.mktemp("pages") / ("long-" * 30)
    folder.mkdir()
    workloads = {
        "listing-" * 12: {"kind": "match", "pattern": "house", "output": "embeddings"},
        "motifs": {"kind": "motifs", "k": 5},
    }
    for name, workload in workloads.items():
        longwall.run(
            {
                "graph": {"generator": {"kind": "rmat", "scale": 7, "edge_factor": 4, "seed": 1}},
                "workload": workload,
                "engine": {"kind": "cpu"},
                "run": {"directory": folder, "name": name},
            }
        )
    first, second = (folder / name for name in workloads)
    from longwall.pipeline.report.command import report

    report(str(first), str(second), folder / "comparison.html")
    return {
        "listing": first / "report.html",
        "motifs": second / "report.html",
        "comparison": folder / "comparison.html",
    }


def browse(folder: Path, *words: str) -> str:
    if BROWSER is None:
        pytest.skip("no chromium here: reports are not looked at in a browser")
    command = [BROWSER, *_FLAGS, f"--user-data-dir={folder / 'profile'}", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["listing", "motifs", "comparison"])
def test_nothing_is_wider_than_the_screen(pages: dict[str, Path], tmp_path: Path, name: str, width: int) -> None:
    """The page is in a frame as wide as the screen, and measured from outside: its own policy forbids scripts."""
    shutil.copy(pages[name], tmp_path / "page.html")
    frame = f'<iframe id="page" src="page.html" style="border:0;width:{width}px;height:2000px"></iframe>'
    (tmp_path / "frame.html").write_text(f"<!DOCTYPE html><title>nothing</title>{frame}{_MEASURE}")
    found = browse(
        tmp_path,
        "--allow-file-access-from-files",
        "--dump-dom",
        "--window-size=1300,2000",
        f"file://{tmp_path}/frame.html",
    )
    title = re.search("<title>(.*?)</title>", found, re.DOTALL)
    assert title is not None
    scrolled, shown, wide, *which = title[1].split(" ", 3)
    assert int(shown) == width
    assert int(scrolled) <= width
    assert int(wide) == 0, which


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_picture_is_made(pages: dict[str, Path], tmp_path: Path, width: int, dark: bool) -> None:
    """``LONGWALL_SCREENSHOTS`` names a folder for them, to be looked at."""
    kept = Path(os.environ.get("LONGWALL_SCREENSHOTS", tmp_path))
    sizes = []
    for name, page in pages.items():
        picture = kept / f"{name}-{width}{'-dark' if dark else ''}.png"
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        browse(tmp_path, scheme, f"--screenshot={picture}", f"--window-size={width},4000", f"file://{page}")
        sizes.append(picture.stat().st_size)
    assert min(sizes) > 30_000, "a page without anything on it is smaller"


def test_it_can_be_printed(pages: dict[str, Path], tmp_path: Path) -> None:
    browse(tmp_path, f"--print-to-pdf={tmp_path / 'page.pdf'}", f"file://{pages['motifs']}")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
