"""Pages of the site that are made of something else: of the code, of the configs, of files beside `docs`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import bar_charts
import cli_page
import config_keys
import graphlets_page
import tables

ROOT = Path(__file__).parents[2]


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made."""
    pages = {
        "reference/cli.md": cli_page.page(),
        "reference/config.md": config_keys.page(),
        "reference/configs.md": configs_page(),
        "reference/graphlets.md": graphlets_page.page(),
        "examples.md": examples_page(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(),
        "contributing.md": (ROOT / "CONTRIBUTING.md").read_text(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Make links of the names of pages, and lead those to the examples in the repository to their page of the site."""
    up = "../" * page.file.src_uri.count("/")

    def link(name: re.Match[str]) -> str:
        known = files.get_file_from_path(name[1]) is not None
        return f"[`{name[0].strip('`')}`]({up}{name[1]})" if known else name[0]

    markdown = bar_charts.with_charts(markdown)
    markdown = re.sub(r"(?<!\[)`docs/([\w/-]+\.md)`(?!\])", link, markdown)
    return re.sub(
        r"\]\((?:\.\./)+examples(?:/(\w+)\.\w+)?\)",
        lambda link: f"]({up}examples.md{'#' + link[1] if link[1] else ''})",
        markdown,
    )


def on_page_content(html: str, **_: Any) -> str:
    """Fit the tables to narrow screens."""
    return tables.fitted(html)


def configs_page() -> str:
    """Return the commented configs, one below the other."""
    lines = ["# Configs with comments", ""]
    lines += [
        "One for each workload, as they lie in `configs/` of the repository; `match.toml` has the keys that all share.",
        "",
    ]
    for path in sorted((ROOT / "configs").glob("*.toml")):
        lines += [f"## {path.name} {{ #{path.stem} }}", "", "```toml", path.read_text().rstrip(), "```", ""]
    return "\n".join(lines)


def examples_page() -> str:
    """Return what lies in `examples/`: algorithms, and a batch script."""
    lines = ["# Examples", ""]
    lines += [
        "Algorithms of one's own, as [Extending Longwall](extending.md#an-algorithm-of-your-own) describes them.",
        "",
    ]
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text().rstrip()
        title = text.partition("\n")[0].strip('"').rstrip(".")
        lines += [f"## {path.name} {{ #{path.stem} }}", "", f"{title}.", "", "```python", text, "```", ""]
        config = path.with_suffix(".toml")
        if config.is_file():
            lines += [f"Its config, `{config.name}`:", "", "```toml", config.read_text().rstrip(), "```", ""]
    script = ROOT / "examples" / "slurm.sh"
    lines += [f"## {script.name} {{ #{script.stem} }}", "", "[A batch job](how-to/batch-systems.md) for SLURM.", ""]
    lines += ["```sh", script.read_text().rstrip(), "```", ""]
    return "\n".join(lines)


def on_post_page(output: str, **_: Any) -> str:
    """Take out the script that the plugin `offline` has a browser load from another host."""
    return re.sub(r'<script src="https?://[^"]*"></script>', "", output)
