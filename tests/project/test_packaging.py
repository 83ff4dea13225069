"""What is shipped, which libraries are imported when, the two tables of kernels, and what docstrings document."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from cases import each_case
from source_tree import FLOORS, PROJECT, ROOT, SETUPTOOLS, folder_of, imports, modules, sources


def test_the_package_list_equals_the_folders_on_disk():
    listed = {folder_of(package) for package in SETUPTOOLS["packages"]}
    assert listed == {path.parent for path in sources() if path.name == "__init__.py"}
    assert SETUPTOOLS["packages"] == sorted(set(SETUPTOOLS["packages"]))


def test_every_source_file_is_shipped_once():
    shipped = list(modules().values())
    assert sorted(shipped) == sorted(sources())


def test_kernel_sources_and_configs_are_shipped():
    data = SETUPTOOLS["package-data"]
    shipped = {path for package, globs in data.items() for glob in globs for path in folder_of(package).glob(glob)}
    wanted = {
        path
        for name in (*FLOORS, "configs")
        for kind in ("*.cu", "*.cuh", "*.toml", "*.txt")
        for path in (ROOT / name).rglob(kind)
    }
    assert wanted <= shipped
    assert folder_of("longwall") / "py.typed" in shipped


def test_no_stage_and_no_workload_imports_the_library_of_an_engine():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for part in ("stages", "pipeline")
        for path in (ROOT / part).rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] in ("cupy", "cupyx", "numba")
    ]
    assert not wrong


HEAVY = {"cupy", "dask", "networkx", "numba", "pandas", "pyarrow", "zarr"}


def test_reading_a_config_imports_no_heavy_library():
    code = (
        "import sys\nfrom longwall.pipeline.config import load_config\n"
        "load_config({'graph': {'path': 'x'}, 'workload': {'kind': 'match', 'pattern': 'diamond'}})\n"
        f"heavy = {HEAVY | {'numpy'}} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_budgets_say_what_memory_an_engine_works_in():
    """Above storage, `Resources.work` is asked, and never the engine."""
    wrong = [
        str(path.relative_to(ROOT))
        for part in ("stages", "pipeline")
        for path in (ROOT / part).rglob("*.py")
        if "memory.free()" in path.read_text()
    ]
    assert not wrong


TWINS = {name: ROOT / "kernels" / name for name in ("cpu", "cuda")}


def members(protocol: type) -> dict[str, object]:
    """What a protocol and those that it joins ask for, without private names."""
    parts = [part for part in protocol.__mro__ if getattr(part, "_is_protocol", False) and part is not Protocol]
    return {name: item for part in parts for name, item in vars(part).items() if not name.startswith("_")}


def kernel_table(twin: Path) -> dict[str, tuple[Path, str]]:
    """The file and the function, or class, of every kernel of an engine."""
    lines = [
        line
        for block in ast.parse((twin / "__init__.py").read_text()).body
        if isinstance(block, ast.If)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
    ]
    return {alias.asname: (modules()[line.module], alias.name) for line in lines for alias in line.names}


def made_by(name: str, path: Path) -> ast.arguments:
    """The arguments of a function, or of a class, which its own `__init__` or that of its first base class takes."""
    body = ast.parse(path.read_text()).body
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node.args
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            return made_by(name, modules()[node.module])
    (made,) = (node for node in body if isinstance(node, ast.ClassDef) and node.name == name)
    for method in made.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            del method.args.args[0]
            return method.args
    return made_by(ast.unparse(made.bases[0]), path)


def named_parameters(arguments: ast.arguments) -> list[list[str]]:
    """Names of the positional parameters, and of those by keyword."""
    return [[one.arg for one in some] for some in (arguments.posonlyargs + arguments.args, arguments.kwonlyargs)]


@each_case("twin", TWINS)
def test_both_tables_have_the_kernels_of_the_protocol(twin):
    """Mypy compares types; names of parameters only here, and without CuPy."""
    from longwall.kernels.interface.kernels import Kernels

    table = kernel_table(TWINS[twin])
    wanted = members(Kernels)
    assert table.keys() == wanted.keys()
    for name, (path, function) in table.items():
        found = made_by(function, path)
        _, *asked = inspect.signature(wanted[name]).parameters.values()
        by_keyword = [one.name for one in asked if one.kind is one.KEYWORD_ONLY]
        positional = [one.name for one in asked if one.name not in by_keyword]
        assert named_parameters(found) == [positional, by_keyword], f"{path}: {function}"


def test_an_engine_imports_no_kernel_before_it_is_asked_for_one():
    code = (
        "import sys\nimport longwall\n"
        "assert not [name for name in sys.modules if name.startswith('longwall.kernels.c')]\n"
        "from longwall.kernels import select_engine\n"
        "engine = select_engine('cpu')\n"
        "loaded = lambda: {name for name in sys.modules if name.startswith('longwall.kernels.cpu.')}\n"
        "engines = {'longwall.kernels.cpu.engine', 'longwall.kernels.cpu.device'}\n"
        "assert loaded() == engines, loaded()\n"
        "engine.kernels.four_cycle_counter\n"
        "folder = 'longwall.kernels.cpu.local_counts'\n"
        "assert loaded() == {*engines, folder, f'{folder}.four_cycles'}, loaded()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_table_has_no_other_kernels():
    from longwall.kernels import cpu

    with pytest.raises(AttributeError, match=r"longwall\.kernels\.cpu.*no attribute 'searchers'"):
        cpu.searchers  # noqa: B018


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["--version"], ["patterns"]])
def test_light_commands_import_no_heavy_library(words):
    code = (
        "import sys\nfrom longwall.pipeline.cli import main\n"
        f"sys.argv = ['longwall', *{words!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"heavy = {HEAVY} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_licences_that_infect_are_test_extras_only():
    shipped = [PROJECT["project"]["dependencies"]]
    shipped += [wanted for extra, wanted in PROJECT["project"]["optional-dependencies"].items() if extra != "test"]
    names = {re.match(r"[\w.-]+", wanted)[0].lower() for group in shipped for wanted in group}
    assert not names & {"igraph", "python-igraph", "pynauty", "leidenalg"}
    assert not [path for path in sources() for name in imports(path) if name.split(".")[0] in ("igraph", "pynauty")]


def documented(module: str):
    """Public functions, classes and methods that a module defines itself."""
    home = importlib.import_module(module)
    for name, item in vars(home).items():
        if name.startswith("_") or getattr(item, "__module__", None) != module:
            continue
        if inspect.isfunction(inspect.unwrap(item)) or inspect.isfunction(getattr(item, "py_func", None)):
            yield name, getattr(item, "py_func", inspect.unwrap(item))
        elif inspect.isclass(item):
            yield name, item
            for method_name, method in list(vars(item).items()):  # pydantic adds what it defers
                method = getattr(method, "__func__", method)
                if not method_name.startswith("_") and inspect.isfunction(method):
                    yield f"{name}.{method_name}", method


def parameters_section(text: str) -> list[str]:
    """Names that a NumPy-style docstring lists under Parameters."""
    match = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", inspect.cleandoc(text), re.S | re.M)
    if not match:
        return []
    heads = [line for line in match[1].splitlines() if line and not line[0].isspace()]
    return [name.strip().lstrip("*") for head in heads for name in head.split(" : ")[0].split(",")]


# The sources of the CUDA engine need CuPy to be imported.
IMPORTABLE = sorted(name for name in modules() if not name.startswith(("longwall.kernels.cuda.", "longwall.__main__")))


def docstring_faults(module: str) -> Iterator[str]:
    if not importlib.import_module(module).__doc__:
        yield "no docstring"
    for name, item in documented(module):
        if not item.__doc__:
            yield f"{name}: no docstring"
            continue
        listed = parameters_section(item.__doc__)
        if not listed:
            continue
        taken = [p for p in inspect.signature(item).parameters if p not in ("self", "cls")]
        if unknown := [p for p in listed if p not in taken]:
            yield f"{name}: documents {unknown}, takes {taken}"
        # A docstring that refers to another function's parameters lists only what is new.
        missing = [p for p in taken if p not in listed]
        if missing and not re.search(r"(as in|those of) :func:", item.__doc__):
            yield f"{name}: does not document {missing}"


def test_docstrings_exist_and_match_the_signatures():
    faults = [f"{module}: {fault}" for module in IMPORTABLE for fault in docstring_faults(module)]
    assert not faults, "\n".join(faults)
