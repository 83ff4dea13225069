"""Algorithms of users' own: the examples against brute force, and what a class may do wrong."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from cases import each_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import longwall
from longwall.pipeline.workloads.custom.loading import AlgorithmClass, find_class, name_class

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module", autouse=True)
def examples() -> Any:
    """The folder of examples on the import path."""
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


def example(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def edges_file(folder: Path, graph: nx.Graph) -> Path:
    path = folder / "graph.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in graph.edges))
    return path


def run(folder: Path, path: Path, algorithm: Any, kind: str = "cpu", **more: Any) -> longwall.Result:
    parameters = more.pop("parameters", {})
    config = {
        "graph": {"path": path},
        "workload": {"kind": "custom", "algorithm": algorithm, "parameters": parameters},
        "engine": {"kind": kind} | more.pop("engine", {}),
        "memory": {"spill": folder / "spill"} | more.pop("memory", {}),
        "run": {"directory": folder / "runs"},
    }
    return longwall.run(config | more)


def plexes(graph: nx.Graph, k: int, size: int) -> set[tuple[int, ...]]:
    return {
        chosen
        for chosen in itertools.combinations(sorted(graph.nodes), size)
        if all(sum(not graph.has_edge(u, v) for v in chosen) <= k for u in chosen)
    }


def rows_of(result: longwall.Result) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in result.table("rows").to_pylist()]


@pytest.mark.parametrize(("k", "size"), [(1, 3), (2, 4), (3, 5)])
def test_plexes_are_those_of_brute_force(tmp_path: Path, engine_kind: str, k: int, size: int) -> None:
    graph = nx.gnp_random_graph(18, 0.3, seed=k)
    graph.remove_nodes_from(list(nx.isolates(graph)))
    found = run(
        tmp_path,
        edges_file(tmp_path, graph),
        example("plexes", "Plexes"),
        engine_kind,
        parameters={"k": k, "size": size},
    )
    rows = [tuple(sorted(row)) for row in rows_of(found)]
    assert found.count == len(rows)
    assert set(rows) == plexes(graph, k, size)
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("seed", range(3))
def test_a_maximum_clique_is_a_clique_of_the_largest_size(tmp_path: Path, engine_kind: str, seed: int) -> None:
    graph = nx.gnp_random_graph(40, 0.4, seed=seed)
    found = run(tmp_path, edges_file(tmp_path, graph), example("maximum_clique", "MaximumClique"), engine_kind)
    answer = found.patterns[0].value
    assert found.count is None
    assert answer["size"] == len(answer["vertices"]) == max(map(len, nx.find_cliques(graph)))
    assert all(graph.has_edge(u, v) for u, v in itertools.combinations(answer["vertices"], 2))


@pytest.mark.parametrize("window", [0, 3, 100])
def test_temporal_triangles_are_those_of_brute_force(tmp_path: Path, engine_kind: str, window: int) -> None:
    draw = random.Random(window)
    graph = nx.gnp_random_graph(25, 0.4, seed=4)
    times = {edge: draw.randrange(12) for edge in graph.edges}
    path = tmp_path / "graph.lg"
    lines = ["t # 1", *(f"v {v} 0" for v in graph), *(f"e {u} {v} {times[u, v]}" for u, v in graph.edges)]
    path.write_text("\n".join(lines) + "\n")
    algorithm = example("temporal_triangles", "TemporalTriangles")
    found = run(tmp_path, path, algorithm, engine_kind, parameters={"window": window})
    expected = {}
    for chosen in itertools.combinations(graph, 3):
        pairs = list(itertools.combinations(chosen, 2))
        if all(graph.has_edge(*pair) for pair in pairs):
            these = [times[pair] for pair in pairs]
            if max(these) - min(these) <= window:
                expected[chosen] = (min(these), max(these))
    assert {tuple(sorted(row[:3])): row[3:] for row in rows_of(found)} == expected
    assert found.count == len(expected)


class Walks(longwall.Algorithm):
    """Count walks of `steps` steps: all candidates become rows."""

    candidate_bytes = 8

    def __init__(self, steps: int):
        self.steps = steps

    def candidates(self, columns: Any, graph: Any, xp: Any) -> Any:
        return graph.degrees(columns[-1])

    def extend(self, columns: Any, graph: Any, xp: Any) -> Any:
        return graph.neighbours(columns[-1])[:2] if len(columns) <= self.steps else None

    def process(self, columns: Any, graph: Any, xp: Any) -> Any:
        return longwall.Found(len(columns[0])) if len(columns) == self.steps + 1 else None


@pytest.mark.slow
def test_memory_is_short_and_rows_are_spilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longwall.pipeline.workloads.custom.phase._STACK_SHARE", 64)
    graph = nx.random_regular_graph(4, 30, seed=1)
    path = edges_file(tmp_path, graph)
    options: dict[str, Any] = {"memory": {"host": "256KiB"}, "engine": {"threads": 1}, "parameters": {"steps": 5}}
    found = run(tmp_path, path, Walks, **options)
    assert found.count == 30 * 4**5
    memory = json.loads((Path(found.path) / "manifest.json").read_text())["memory"]
    assert memory["disk"]["peak"] > 0
    assert memory["host"]["peak"] <= 256 << 10


def test_one_row_without_room_is_refused(tmp_path: Path) -> None:
    path = edges_file(tmp_path, nx.star_graph(5000))
    with pytest.raises(longwall.InputError, match=r"candidates of one row.*raise memory\.host"):
        run(tmp_path, path, example("plexes", "Plexes"), memory={"host": "1MiB"}, engine={"threads": 1})


class Degrees(longwall.Algorithm):
    """Sum up degrees, and write those of even vertices with a number of their own kind."""

    schema = {"vertex": "vertex", "half": "float64"}  # noqa: RUF012

    def extend(self, columns: Any, graph: Any, xp: Any) -> None:
        return None

    def process(self, columns: Any, graph: Any, xp: Any) -> longwall.Found:
        degrees = graph.degrees(columns[0])
        even = degrees % 2 == 0
        rows = {"vertex": columns[0][even], "half": degrees[even] / 2}
        return longwall.Found(degrees.sum(), rows)


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(st.tuples(st.integers(0, 50), st.integers(51, 90)), min_size=1, max_size=200))
def test_columns_have_the_types_of_the_schema(
    tmp_path_factory: pytest.TempPathFactory, edges: set[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("degrees")
    graph = nx.Graph(edges)
    found = run(folder, edges_file(folder, graph), Degrees)
    assert found.count == 2 * len(edges)
    assert dict(rows_of(found)) == {v: d / 2 for v, d in graph.degree if d % 2 == 0}
    assert [str(one) for one in found.table("rows").schema.types] == ["int64", "double"]


def below_zero(columns: Any) -> dict[str, Any]:
    return {"vertex": columns[0].astype("int64") - 1, "half": columns[0] / 2}


def faulty(**methods: Any) -> type[longwall.Algorithm]:
    """A class with other methods than `Degrees`."""
    return type("Faulty", (Degrees,), methods)


@pytest.mark.parametrize(
    ("methods", "says"),
    [
        ({"roots": lambda self, first, last, graph, xp: []}, "at least one column"),
        ({"roots": lambda self, first, last, graph, xp: [xp.array([-1])]}, "must be 0 or more, not -1"),
        ({"roots": lambda self, first, last, graph, xp: [xp.array([0.5])]}, "array of integers"),
        ({"extend": lambda self, columns, graph, xp: 3}, r"must return \(parents, values\)"),
        ({"extend": lambda self, columns, graph, xp: ([0, 0], [1])}, "2 parents and 1 values"),
        ({"extend": lambda self, columns, graph, xp: ([10**6], [1])}, "below the number of rows"),
        ({"extend": lambda self, columns, graph, xp: ([1, 0], [1, 1])}, "parents must ascend"),
        ({"candidates": lambda self, columns, graph, xp: [1] * 99}, "a number for each of"),
        ({"process": lambda self, columns, graph, xp: 7}, r"must return longwall\.Found, or None, not int"),
        ({"process": lambda self, columns, graph, xp: longwall.Found(rows={"a": columns[0]})}, "columns of the schema"),
        ({"process": lambda self, columns, graph, xp: longwall.Found(1, [columns[0]])}, "a dictionary.*, not list"),
        ({"process": lambda self, columns, graph, xp: longwall.Found(1, below_zero(columns))}, "there is no vertex -1"),
        ({"schema": {"vertex": "word"}}, "'word' is no type"),
        ({"__init__": lambda self, more: None}, r"workload\.parameters: Faulty does not take them"),
    ],
)
def test_what_a_class_does_wrong_is_said(tmp_path: Path, methods: dict[str, Any], says: str) -> None:
    path = edges_file(tmp_path, nx.complete_graph(5))
    with pytest.raises(longwall.InputError, match=says):
        run(tmp_path, path, faulty(**methods))


def broken(*arguments: Any) -> Any:
    raise ValueError("of no\nuse")


@pytest.mark.parametrize("method", ["roots", "candidates", "extend", "process", "combine", "finalize"])
def test_an_error_of_a_method_names_it_and_its_line(tmp_path: Path, engine_kind: str, method: str) -> None:
    path = edges_file(tmp_path, nx.complete_graph(5))
    line = broken.__code__.co_firstlineno + 1
    with pytest.raises(longwall.RunError) as failure:
        run(tmp_path, path, faulty(**{method: broken}), engine_kind)
    assert str(failure.value) == f"test_custom.py, line {line}: Faulty.{method} raised ValueError: of no use"
    manifest = json.loads(next(tmp_path.glob("runs/*/manifest.json")).read_text())
    assert (manifest["status"], manifest["reason"]) == ("failed", str(failure.value))


def leaving(*arguments: Any) -> Any:
    sys.exit()


@pytest.mark.parametrize("method", ["__init__", "roots", "process", "combine", "finalize"])
def test_a_method_that_would_end_the_program_makes_its_run_fail(tmp_path: Path, method: str) -> None:
    path = edges_file(tmp_path, nx.complete_graph(5))
    with pytest.raises(longwall.InputError if method == "__init__" else longwall.RunError) as failure:
        run(tmp_path, path, faulty(**{method: leaving}))
    line = leaving.__code__.co_firstlineno + 1
    if method == "__init__":
        assert "Faulty does not take them (SystemExit" in str(failure.value)
    else:
        assert str(failure.value) == f"test_custom.py, line {line}: Faulty.{method} raised SystemExit"
        manifest = json.loads(next(tmp_path.glob("runs/*/manifest.json")).read_text())
        assert (manifest["status"], manifest["reason"]) == ("failed", str(failure.value))


def test_an_error_deep_in_a_library_names_the_line_that_called_it(tmp_path: Path) -> None:
    path = edges_file(tmp_path, nx.complete_graph(5))

    def process(self: Any, columns: Any, graph: Any, xp: Any) -> Any:
        return longwall.Found(json.loads("{"))

    line = process.__code__.co_firstlineno + 1
    with pytest.raises(
        longwall.RunError, match=rf"^test_custom\.py, line {line}: Faulty\.process raised JSONDecodeError"
    ):
        run(tmp_path, path, faulty(process=process))


def test_no_memory_in_a_method_makes_its_chunks_smaller(tmp_path: Path) -> None:
    sizes = []

    def process(self: Any, columns: Any, graph: Any, xp: Any) -> Any:
        sizes.append(columns[0].size)
        if columns[0].size > 3:
            raise MemoryError("too large an array")
        return Degrees.process(self, columns, graph, xp)

    graph = nx.complete_graph(30)
    found = run(tmp_path, edges_file(tmp_path, graph), faulty(process=process), engine={"threads": 1})
    assert found.count == 30 * 29
    assert max(sizes) > 3


def test_a_value_that_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    path = edges_file(tmp_path, nx.complete_graph(5))
    wrong = faulty(process=lambda self, columns, graph, xp: longwall.Found({1, 2}))
    with pytest.raises(longwall.RunError, match="JSON cannot hold"):
        run(tmp_path, path, wrong)


def config_in(folder: Path, algorithm: str) -> Path:
    path = folder / "custom.toml"
    graph = edges_file(folder, nx.complete_graph(6))
    path.write_text(f'graph.path = "{graph}"\nworkload.kind = "custom"\nworkload.algorithm = "{algorithm}"\n')
    return path


@each_case(
    ("name", "content", "says"),
    [
        ("plexes.py", "", "write it as"),
        ("gone.py:Plexes", "", "there is no file"),
        ("other.py:Plexes", "x = 1\n", "has no class Plexes"),
        ("other.py:Plexes", "class Plexes: pass\n", "derived from longwall.Algorithm"),
        (
            "other.py:Plexes",
            "import longwall\nclass Plexes(longwall.Algorithm): pass\n",
            "lacks the method extend, process",
        ),
        ("other.py:Plexes", "x = 1\ny = z\n", "line 2: NameError"),
        ("other.py:Plexes", "x = 1\ny = = 2\n", "line 2: SyntaxError"),
        ("other.py:Plexes", "import sys\nsys.exit()\n", "line 2: SystemExit"),
        ("no.such.module:Plexes", "", "cannot be imported"),
    ],
)
def test_a_class_that_cannot_be_loaded(tmp_path: Path, name: str, content: str, says: str) -> None:
    if content:
        (tmp_path / "other.py").write_text(content)
    with pytest.raises(longwall.InputError, match=says):
        longwall.run(config_in(tmp_path, name), overrides=[f"run.directory={tmp_path}"])


def test_code_elsewhere_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "other.py").write_text("raise SystemExit('it was loaded')\n")
    for name in ("../other.py:A", f"{tmp_path}/other.py:A"):
        with pytest.raises(longwall.InputError, match="neither beside the config nor on the import path"):
            longwall.run(config_in(tmp_path / "here", name))


def test_counting_of_mappings_is_refused_in_plain_words() -> None:
    workload = {"kind": "custom", "algorithm": example("plexes", "Plexes"), "count": "mappings"}
    with pytest.raises(longwall.InputError, match=r"your class decides what to count: remove this key$"):
        longwall.run({"graph": {"example": "karate"}, "workload": workload})


def test_the_example_config_runs(tmp_path: Path) -> None:
    overrides = [f"run.directory={tmp_path}", "engine.kind=cpu", "graph.generator.scale=6"]
    text = longwall.run(EXAMPLES / "plexes.toml", overrides=overrides).to_json()
    assert text["count"] > 0


def test_explain_shows_the_stages(tmp_path: Path) -> None:
    from explained import explain

    text = explain(EXAMPLES / "plexes.toml", overrides=["engine.kind=cpu"])
    assert "Plexes.roots" in text
    assert "k = 2, size = 5" in text


def test_a_run_is_not_resumed_with_another_file(tmp_path: Path) -> None:
    source = (EXAMPLES / "plexes.py").read_text()
    (tmp_path / "plexes.py").write_text(source)
    config = config_in(tmp_path, "plexes.py:Plexes")
    found = longwall.run(config, overrides=[f"run.directory={tmp_path}/runs"])
    folder = Path(found.path)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"status": "failed"}))
    (tmp_path / "plexes.py").write_text(source + "\n")
    with pytest.raises(longwall.InputError, match="its question is not the one"):
        longwall.resume(folder)
    (tmp_path / "plexes.py").write_text(source)
    assert longwall.resume(folder).count == found.count


class Numba(longwall.Algorithm):
    """Sum of ids below each vertex, by a compiled function."""

    def extend(self, columns: Any, graph: Any, xp: Any) -> None:
        return None

    def process(self, columns: Any, graph: Any, xp: Any) -> longwall.Found:
        import numba

        @numba.njit
        def total(values: Any) -> int:
            found = 0
            for value in values:
                found += value
            return found

        return longwall.Found(total(columns[0]))


def test_compiled_functions_can_be_called(tmp_path: Path) -> None:
    graph = nx.complete_graph(30)
    assert run(tmp_path, edges_file(tmp_path, graph), Numba).count == int(np.arange(30).sum())


PACKAGE = '''
from typing import Literal
from pydantic import Field
from longwall import PatternCount, Workload

class Order(Workload):
    """The number of vertices."""

    kind: Literal["order"] = Field(description="the number of vertices")

    def plan(self, graph):
        return Plan()

    def execute(self, plan, env):
        return [PatternCount("vertex", None, env.graph.num_vertices)]

class Plan:
    def to_dict(self):
        return {"kind": "order"}

    def describe(self):
        return "count        vertices"
'''


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("order_workload:Order", ""),
        ("order_workload:Missing", "cannot be loaded"),
        ("order_workload:Plan", "is no class that is derived from longwall.Workload"),
        ("longwall.pipeline.workloads.match:Match", "has the kind 'match'"),
    ],
)
def test_an_installed_package_adds_a_workload(tmp_path: Path, value: str, says: str) -> None:
    (tmp_path / "order_workload.py").write_text(PACKAGE)
    facts = tmp_path / "order-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: order\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[longwall.workloads]\norder = {value}\n")
    config = tmp_path / "order.toml"
    config.write_text(f'graph.path = "{edges_file(tmp_path, nx.path_graph(7))}"\nworkload.kind = "order"\n')
    command = [sys.executable, "-m", "longwall", "run", str(config), "--json", "--set", f"run.directory={tmp_path}"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if says:
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert says in done.stderr
    else:
        assert json.loads(done.stdout.splitlines()[-1])["count"] == 7


def test_a_process_with_another_file_refuses(tmp_path: Path) -> None:
    path = tmp_path / "plexes.py"
    path.write_text((EXAMPLES / "plexes.py").read_text())
    name = f"{path}:Plexes"
    sent = AlgorithmClass(name, find_class(name)[1])
    assert type(sent.make({"k": 2, "size": 4})).__name__ == "Plexes"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(longwall.InputError, match="another one here than where the run was started"):
        sent.make({"k": 2, "size": 4})


@pytest.mark.slow
def test_a_class_of_a_script_is_for_one_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import longwall, sys\n"
        "from longwall.pipeline.workloads.custom import loading\n"
        "class Mine(longwall.Algorithm):\n"
        "    def extend(self, columns, graph, xp): return None\n"
        "    def process(self, columns, graph, xp): return longwall.Found(len(columns[0]))\n"
        "config = {'graph': {'path': sys.argv[1]}, 'workload': {'kind': 'custom', 'algorithm': Mine},\n"
        "          'engine': {'kind': 'cpu'}, 'run': {'directory': sys.argv[2]}}\n"
        "print(longwall.run(config).count)\n"
        "loading._given.clear()\n"
        "longwall.run(config | {'workload': {'kind': 'custom', 'algorithm': '__main__:Mine'}})\n"
    )
    graph = edges_file(tmp_path, nx.path_graph(9))
    command = [sys.executable, str(script), str(graph), str(tmp_path / "runs")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "9\n"
    assert "is defined in a script or a notebook" in done.stderr


def counts_vertices_of(degree: int) -> type[longwall.Algorithm]:
    class OfDegree(longwall.Algorithm):
        def extend(self, columns: Any, graph: Any, xp: Any) -> None:
            return None

        def process(self, columns: Any, graph: Any, xp: Any) -> longwall.Found:
            return longwall.Found(int((graph.degrees(columns[0]) == degree).sum()))

    return OfDegree


def test_classes_of_one_name_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """Before, a run took the last class of a name: that of another thread, or of the observer's own run."""

    class Other:
        """Runs the class of another degree as the first run begins."""

        def __init__(self) -> None:
            self.counts: list[int | None] = []

        def phase(self, name: str, total: int | None, unit: str) -> None:
            if not self.counts:
                self.counts.append(None)
                self.counts.append(run(tmp_path, path, counts_vertices_of(1)).count)

        def advance(self, n: int) -> None: ...
        def note(self, text: str) -> None: ...
        def close(self) -> None: ...

    graph, other = nx.path_graph(9), Other()
    path = edges_file(tmp_path, graph)
    config = {
        "graph": {"path": path},
        "workload": {"kind": "custom", "algorithm": counts_vertices_of(2)},
        "engine": {"kind": "cpu"},
        "run": {"directory": tmp_path / "runs"},
    }
    found = longwall.run(config, observer=other).count
    degrees = [degree for _, degree in graph.degree]
    assert (found, other.counts[1]) == (degrees.count(2), degrees.count(1))


def test_a_given_class_goes_to_other_processes_by_its_name() -> None:
    name = name_class(counts_vertices_of(1))
    sent = pickle.loads(pickle.dumps(AlgorithmClass(name, "")))
    assert type(sent.name) is str
    assert sent.name == name
