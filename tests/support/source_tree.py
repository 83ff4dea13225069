"""The modules of the package, where they lie, and what they import: read, not imported."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]
FLOORS = ("kernels", "storage", "stages", "pipeline")
"""The folders of the package, the lowest first: a module imports from its own floor and those below."""


def folder_of(package: str) -> Path:
    """Where a package lies, by the table of package-dir."""
    best = max(
        (name for name in SETUPTOOLS["package-dir"] if package == name or package.startswith(f"{name}.")), key=len
    )
    return ROOT / SETUPTOOLS["package-dir"][best] / package[len(best) :].strip(".").replace(".", "/")


@cache
def modules() -> dict[str, Path]:
    """Every module of the package that is shipped, by its import name."""
    return {
        f"{package}.{path.stem}".removesuffix(".__init__"): path
        for package in SETUPTOOLS["packages"]
        for path in folder_of(package).glob("*.py")
    }


def sources() -> set[Path]:
    """Every Python file below the package's folders."""
    return {
        path for name in (*FLOORS, "configs") for path in (ROOT / name).rglob("*.py") if "__pycache__" not in path.parts
    }


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(), str(path))


@cache
def imports(path: Path, *, typing: bool = True) -> frozenset[str]:
    """Every name that a file imports, at its top or inside functions; `typing`: also for type checkers only."""
    found = set()
    for node in _nodes(tree_of(path), typing):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def _nodes(root: ast.AST, typing: bool) -> list[ast.AST]:
    """All nodes below one; without `typing`, those under ``if TYPE_CHECKING`` are left out."""
    found = [root]
    for node in found:
        if typing or not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"):
            found.extend(ast.iter_child_nodes(node))
    return found
