"""The benchmark suite runs end to end on a small graph, and notices a count that differs."""

import gzip
import json
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import combinations, pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = ["triangles", "4-clique", "5-clique", "diamond", "4-cycle", "house", "induced 4-motifs"]


@pytest.fixture(scope="session")
def measure():
    """The module that runs functions in processes of their own."""
    spec = spec_from_file_location("measure", ROOT / "benchmarks" / "lib" / "measure.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def run_suite(folder, *options):
    environment = {**os.environ, "LONGWALL_DATA": str(folder / "data")}
    command = ["benchmarks.suites.counts", "--work", folder / "work", "--repeats", "1", *options]
    return python("-m", *command, env=environment)


@pytest.mark.long
def test_the_suite_fills_every_row(tmp_path):
    pytest.importorskip("igraph")
    done = run_suite(tmp_path, "--scales", "8", "--rival-limit", "2", "--out", tmp_path / "table.md")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "table.md").read_text() == done.stdout
    record = json.loads((tmp_path / "table.json").read_text())
    assert record["finished"]
    assert not record["failures"]
    assert [check["row"] for check in record["checks"]] == ROWS
    assert all("igraph" in check["equal_to"] for check in record["checks"])
    rows = record["graphs"]["rmat-8"]["rows"]
    assert list(rows) == ROWS
    for name, row in rows.items():
        assert row["status"] == "done"
        assert 0 < row["mine_seconds"] < row["total_seconds"]
        assert row["peak_bytes"] > 1 << 20
        assert len([line for line in done.stdout.splitlines() if line.startswith(f"| {name} |")]) == 1
    assert rows["triangles"]["floor_seconds"] > 0
    assert rows["triangles"]["rivals"]["networkx"]["counts"] == rows["triangles"]["counts"]
    assert rows["4-clique"]["rivals"]["igraph"]["counts"] == rows["4-clique"]["counts"]


@pytest.mark.long
def test_a_count_that_differs_fails_the_suite(tmp_path):
    for part in ("graphs", "truth"):
        (tmp_path / "data" / part).mkdir(parents=True)
    complete = [f"{u} {v}\n" for u, v in combinations(range(5), 2)]
    (tmp_path / "data/graphs/ca-GrQc.edges.gz").write_bytes(gzip.compress("".join(complete).encode()))
    known = {"ca-GrQc": {"cliques": {"3": 10, "4": 5, "5": 2}, "induced": {}, "non_induced": {}}}
    (tmp_path / "data/truth/counts.json").write_text(json.dumps(known))
    done = run_suite(tmp_path, "--scales", "8", "--rivals", "")
    assert done.returncode == 1
    failures = [line for line in done.stdout.splitlines() if "FAILED" in line]
    assert failures == ["- **FAILED**: 5-clique on ca-GrQc: Longwall counts [1], known counts [2]"]
    assert "**rmat-8**" not in done.stdout


def test_bad_options_are_refused(tmp_path):
    for options in (["--rivals", "nobody"], ["--engine", "abacus"], ["--scales", "99"], ["--out", "no/where.md"]):
        done = run_suite(tmp_path, *options)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_call_returns_its_value_and_its_peak_memory():
    """From a small process: a child's peak counts what its parent held when it forked."""
    program = """
import json
from benchmarks.lib import measure
small = measure.call("json:loads", s="[1]")
large = measure.call("random:randbytes", n=200 << 20)  # bytes are no JSON: it fails, after taking memory
print(json.dumps([small.status, small.value, small.peak_bytes, large.status, large.peak_bytes]))
"""
    done = python("-c", program)
    assert done.returncode == 0, done.stderr
    status, value, small, failed, large = json.loads(done.stdout)
    assert (status, value, failed) == ("done", [1], "failed")
    assert small < 100 << 20
    assert 200 << 20 < large < 600 << 20  # made as an integer first


def test_a_call_past_its_limit_is_killed(measure):
    outcome = measure.call("subprocess:check_call", 0.5, args=["sleep", "60"])
    assert (outcome.status, outcome.reason) == ("over the limit", "> 0.5 s")
    assert outcome.wall_seconds < 50


def test_a_missing_module_is_a_skip(measure):
    outcome = measure.call("no_such_module:anything")
    assert (outcome.status, outcome.reason) == ("skipped", "no_such_module is not installed")


def python(*arguments, env=None):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)


def test_the_graph_of_the_gpu_benchmark_is_the_one_that_its_edges_make():
    done = python("-c", "import numpy; from benchmarks.gpu import device_rmat; device_rmat.check_generator(numpy)")
    assert done.returncode == 0, done.stderr


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "options",
    [
        ["--workloads", "magic"],
        ["--variants", "magic"],
        ["--cache", "0"],
        ["--cache", "much"],
        ["--scale", "99"],
        ["--out", "no/a.md"],
    ],
)
def test_the_gpu_benchmark_refuses_bad_options(options):
    done = python("-m", "benchmarks.gpu.gpu_memory", *options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_start_is_measured_in_parts():
    done = python("-m", "benchmarks.gpu.start", "--engine", "cpu", "--runs", "1")
    assert done.returncode == 0, done.stderr
    rows = {line.split(" | ")[0]: line for line in done.stdout.splitlines()}
    for part in ("| imports", "| graph", "| mine", "| report", "| whole process"):
        assert len(re.findall(r"\d+\.\d{3}", rows[part])) == 4


PAGES_OF_TWO = """
from types import SimpleNamespace
from benchmarks.gpu.gpu_memory import use_pages_for
from longwall.storage.pages import paged_graph

sizes = []
for arcs in (1 << 16, 1 << 30):
    use_pages_for(SimpleNamespace(indices=SimpleNamespace(size=arcs)))
    sizes.append(paged_graph.PAGE_BYTES)
assert sizes == [4 << 10, 2 << 20], sizes
"""


@pytest.mark.gpu
@pytest.mark.parametrize("engine_kind", ["cuda"], indirect=True)
def test_the_pages_of_a_large_graph_are_large_after_a_small_one(engine_kind):
    done = python("-c", PAGES_OF_TWO)
    assert done.returncode == 0, done.stderr


ONE_WORKLOAD = """
import cupy
from benchmarks.gpu.gpu_memory import use_pages_for
from benchmarks.gpu.link_counter import LinkCounter
from benchmarks.gpu.paged_runs import count_by_cpu, measure, spread_roots
from benchmarks.gpu.paged_variants import RIVALS
from benchmarks.gpu.paged_workloads import plan_workloads
from longwall.storage.generators.kinds import generate

graph = generate("rmat", seed=1, scale=9, edge_factor=8, num_labels=4)
use_pages_for(graph)
(edges,) = [one for one in plan_workloads(graph) if one.name == "edges"]
expected = count_by_cpu(graph, edges)
for variant in RIVALS:
    record = measure(graph, edges, variant, 0.25, spread_roots(graph, 1.0), 120.0, LinkCounter(cupy), steps=True)
    assert not record.reason, (variant.name, record.reason)
    assert record.found == expected, variant.name
    staged = variant.access in ("adaptive", "zero-copy") and not variant.plain
    assert (record.steps["copy"] > 0) == (record.steps["gather"] > 0) == staged, record.steps
    assert record.steps["kernel"] > 0 < record.steps["write"], record.steps
    assert not staged or record.copy_rate > 0
"""


@pytest.mark.gpu
@pytest.mark.parametrize("engine_kind", ["cuda"], indirect=True)
def test_what_the_gpu_benchmark_watches_works_as_it_does_alone(engine_kind):
    done = python("-c", ONE_WORKLOAD)
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.parametrize("engine_kind", ["cuda"], indirect=True)
def test_the_gpu_benchmark_measures_every_variant(engine_kind, tmp_path):
    options = ["--tiny", "--workloads", "match,edges", "--out", tmp_path / "figures.md"]
    done = python("-m", "benchmarks.gpu.gpu_memory", *options)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "figures.md").read_text() == done.stdout
    record = json.loads((tmp_path / "figures.json").read_text())
    for workload, variants in (("match", 19), ("edges", 11)):
        found = [one for one in record["records"] if one["workload"] == workload]
        assert len(found) == variants
        assert all(not one["reason"] for one in found)
        assert len({tuple(one["found"]) for one in found}) == 1
        assert all(0 < one["allocator"] <= one["budget"] for one in found if one["budget"])
        if "NVML" not in record["link"]:
            assert all((one["link_bytes"] > 0) == (one["variant"] != "resident") for one in found)
    assert all(goal["reached"] for goal in record["goals"])


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.parametrize("engine_kind", ["cuda"], indirect=True)
def test_the_benchmark_of_both_engines_fills_its_rows(engine_kind, tmp_path):
    done = python("-m", "benchmarks.gpu.both_engines", "--tiny", "--time", "250", "--work", tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if "rmat-8" in line]
    assert len(rows) == 9
    assert all("cuda" in row.rpartition("|")[0] for row in rows)
    assert "left out" not in done.stdout


@pytest.mark.slow
def test_the_table_of_scales_has_a_row_for_every_step_and_counts_right(tmp_path):
    igraph = pytest.importorskip("igraph")
    from longwall.storage.generators.kinds import generate

    options = ["--scales", "9", "--folder", tmp_path, "--works", "triangles"]
    done = python("-m", "benchmarks.suites.scale", *options, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines() if "R-MAT" in line
    ]
    assert [row[1] for row in rows] == ["generate", "write", "open", "mine triangles", "whole run, triangles"]
    graph = generate("rmat", seed=1, scale=9, edge_factor=16)
    heads = graph.original_ids[graph.indices].tolist()
    tails = [tail for tail, (a, b) in enumerate(pairwise(graph.indptr.tolist())) for _ in range(a, b)]
    ends = zip(graph.original_ids[tails].tolist(), heads, strict=True)
    known = igraph.Graph([pair for pair in ends if pair[0] < pair[1]])
    assert rows[3][4].replace(",", "") == str(len(known.list_triangles()))
    assert f"{graph.num_edges:,} edges" in rows[2][4]
    assert all(float(row[5]) > 0 for row in rows)
    assert not list(tmp_path.glob("*.zarr"))


def test_profiles_name_the_operations_that_the_device_runs():
    program = """
from benchmarks.gpu.decompositions import operations
from longwall.kernels.cuda.homomorphisms.rows import row_header
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.planning.homomorphisms.sums import plan_homomorphisms
from longwall.pipeline.planning.homomorphisms.pattern_core import PassCosts
pairs = parse_pattern("0-1,0-2,0-3,1-2,1-3,2-4,3-4")
sums = plan_homomorphisms((pairs,), PassCosts(1.0, 1.0, 1.0, common=10.0))
rows, *_ = (total.rows for total in sums.program.totals)
print(operations(row_header(rows, "vertices", 0, 10)))
"""
    done = python("-c", program)
    assert done.stdout == "vertices: ones push sum_edges load load load\n", done.stderr
