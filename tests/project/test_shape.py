"""The shape of the source: floors without upward imports, no circles, and nothing too large to be read at once."""

from __future__ import annotations

import ast
import inspect
from graphlib import CycleError, TopologicalSorter
from operator import itemgetter
from pathlib import Path

import networkx as nx
import pytest
from source_tree import FLOORS, ROOT, imports, modules, sources, tree_of

FOLDER_MODULES = 16
FILE_LINES = 600
FUNCTION_LINES = 60
ENGINE_MEMBERS = 16

CODE_LINES = {"pipeline": 25_740, "stages": 3_000, "storage": 16_290, "kernels": 16_200}
"""The most lines of code in Python that each floor may have: new code has to take the place of other code."""

LONG_FUNCTIONS = {
    "storage/ingest/text/text_kernel.py: parse_lines": (229, "a state machine that Numba compiles, as kernels are"),
}
"""What exceeds a limit -> how large it may be, and why. An exception that is within the limit again must go."""


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def exceeding(sizes: dict[str, int], limit: int, exceptions: dict[str, tuple[int, str]]) -> dict[str, int]:
    """What is larger than the limit, or than its exception from it."""
    allowed = {name: size for name, (size, _) in exceptions.items()}
    found = {name: size for name, size in sizes.items() if size > limit}
    assert allowed.keys() <= found.keys(), f"no longer an exception: {sorted(allowed.keys() - found.keys())}"
    return {name: size for name, size in found.items() if size > allowed.get(name, limit)}


def floor_of(module: str) -> int:
    """The number of the floor that a name of the package is on; what is on none is above all."""
    part = [*module.split("."), ""][1]
    return FLOORS.index(part) if part in FLOORS else len(FLOORS)


def test_imports_point_down_only() -> None:
    names = {module: imports(path) for module, path in modules().items()}
    assert {floor_of(module) for module in names} == set(range(len(FLOORS) + 1))
    assert not [
        f"{module} imports {name}" for module in names for name in names[module] if name.split(".")[0] in FLOORS
    ]
    upward = [
        f"{module} imports {name}"
        for module in names
        for name in names[module]
        if name.split(".")[0] == "longwall" and floor_of(name) > floor_of(module)
    ]
    assert not upward


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Imports inside functions count, too; those for type checkers only do not."""
    known = modules()
    needs = {}
    for module, path in known.items():
        found = imports(path, typing=False)
        needs[module] = {name if name in known else name.rpartition(".")[0] for name in found} & known.keys() - {module}
    assert sum(map(len, needs.values())) > len(known)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as circle:
        pytest.fail(" <- ".join(circle.args[1]))


def test_no_types_lead_to_one_another_in_a_circle() -> None:
    """Imports for type checkers count, too."""
    known, needs = modules(), nx.DiGraph()
    for module, path in known.items():
        names = {name if name in known else name.rpartition(".")[0] for name in imports(path)}
        needs.add_edges_from((module, name) for name in names & known.keys() - {module})
    assert [sorted(circle) for circle in nx.strongly_connected_components(needs) if len(circle) > 1] == []


def test_no_folder_is_crowded() -> None:
    files = [path for path in sources() if path.name != "__init__.py"]
    folders = [relative(path.parent) for path in files]
    sizes = {folder: folders.count(folder) for folder in folders}
    assert {relative(path) for path in map(ROOT.joinpath, FLOORS)} <= sizes.keys()
    assert exceeding(sizes, FOLDER_MODULES, {}) == {}


def test_no_file_is_long() -> None:
    cuda = [path for end in ("*.cu", "*.cuh") for path in (ROOT / "kernels").rglob(end)]
    assert len(cuda) > 50
    sizes = {relative(path): len(path.read_text().splitlines()) for path in [*sources(), *cuda]}
    assert exceeding(sizes, FILE_LINES, {}) == {}


def test_no_function_outside_the_kernels_is_long() -> None:
    functions = {path: functions_of(path) for path in sources() if not path.is_relative_to(ROOT / "kernels")}
    assert sum(map(len, functions.values())) > 1000
    long = [path for path, found in functions.items() if max(found.values(), default=0) > FUNCTION_LINES]
    sizes = {f"{relative(path)}: {name}": size for path in long for name, size in function_sizes(path).items()}
    assert exceeding(sizes, FUNCTION_LINES, LONG_FUNCTIONS) == {}


def test_no_floor_grows() -> None:
    found = dict.fromkeys(CODE_LINES, 0)
    for path in modules().values():
        floor = path.relative_to(ROOT).parts[0]
        if floor in found:
            found[floor] += len(code_lines(path))
    assert all(0 < found[floor] <= most for floor, most in CODE_LINES.items()), found
    assert all(most < 1.03 * found[floor] for floor, most in CODE_LINES.items()), f"lower CODE_LINES: {found}"


def functions_of(path: Path) -> dict[tuple[int, str], int]:
    """The first line and the name of each function of a file, and how many lines of any kind it has."""
    return {
        (node.lineno, node.name): (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def code_lines(path: Path) -> set[int]:
    """The lines of code of a file, without docstrings and comments."""
    lines = enumerate(map(str.strip, path.read_text().splitlines()), 1)
    code = {number for number, line in lines if line and not line.startswith("#")}
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            code -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return code


def function_sizes(path: Path) -> dict[str, int]:
    """How many lines of code each function of a file has, its head included, docstrings and comments not."""
    code = code_lines(path)
    return {
        name: len(code & set(range(first, first + size)))
        for (first, name), size in sorted(functions_of(path).items(), key=itemgetter(1))
    }


def test_lines_of_code_are_counted_without_docstrings_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(
        "def outer(\n    first,\n):\n"
        '    """Two\n\n    lines."""\n'
        "    # a comment\n\n"
        "    def inner():\n"
        '        return """one\n        two"""\n'
        "    return inner  # the end\n"
    )
    assert function_sizes(path) == {"inner": 3, "outer": 7}
    assert code_lines(path) == {1, 2, 3, 9, 10, 11, 12}


NO_TWIN = {
    "frequent/image_marks": "pattern_growth.cu has them",
    "frequent/typed_runs": "pattern_growth.cu has them",
    "homomorphisms/codegree_sums": "pairs.cu has them",
    "homomorphisms/pair_sums": "pairs.cu has them",
    "kcliques/large": "bitmaps.cu is compiled for one size",
    "kcliques/search": "leaves.cu has it",
    "kcliques/vertex_tables": "bitmaps.cu has them",
    "sorting/buckets": "CuPy sorts",
    "sorting/words": "CuPy sorts",
}
"""Modules of the CPU without a file of the same name for the GPU, and why."""


def test_both_engines_have_the_same_files() -> None:
    """Each module of the CPU's kernels has a module, source or header for the GPU, of its name and folder."""
    cpu, cuda = ROOT / "kernels" / "cpu", ROOT / "kernels" / "cuda"
    modules = {path.relative_to(cpu).with_suffix("").as_posix() for path in cpu.rglob("*.py")}
    twins = {path.relative_to(cuda).with_suffix("").as_posix() for path in cuda.rglob("*.*") if path.is_file()}
    assert len(modules) > 40
    assert modules - twins == NO_TWIN.keys()
    assert {path.name for path in cpu.glob("*.py")} == {path.name for path in cuda.glob("*.py")}


def test_an_engine_is_small() -> None:
    from longwall.kernels.interface.engine import Engine

    members = [name for name in vars(Engine) if not name.startswith("_")]
    members += [name for name in inspect.get_annotations(Engine) if name not in members]
    assert {"name", "xp", "workers", "kernels", "load"} <= set(members)
    assert len(members) <= ENGINE_MEMBERS


OTHER_TESTS = {"emulator", "end_to_end", "fuzz", "project", "support"}


def test_tests_lie_where_that_lies_which_they_test() -> None:
    """In the folder of tests with the name of its folder, or in one of a few for what has no folder of its own."""
    tests = {path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    folders = {path.parent for path in tests if path.parts[0] not in OTHER_TESTS}
    assert {folder.parts[0] for folder in folders} == set(FLOORS)
    packages = {path.parent.relative_to(ROOT) for path in sources()}
    assert folders <= packages
