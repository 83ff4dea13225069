"""The benchmark of docs/seeds.md checks before it measures, and its other ways of load balancing count right."""

import gzip
import json
import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SEARCHES = """
import json, sys
from benchmarks.gpu import host_balance, seed_searches
from benchmarks.lib.seed_patterns import TDFS
from benchmarks.lib.seed_runs import make_graph

store = sys.argv[1] + "/graph.zarr"
make_graph(store, scale=7, edge_factor=8)
setting = seed_searches.Setting(store, TDFS["P4"])
program = setting.plan.program
busy = host_balance.HostBalanced(setting.engine.device, setting.graph, program, idle_share=0, patience=0)
moved = [busy.count(setting.rows) for _ in range(2)]
print(json.dumps([seed_searches.check(store, TDFS["P4"]), [[one.count, one.launches, one.moved] for one in moved]]))
"""


def python(*arguments, env=None, limit=300):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=limit)


def suite(folder, *options):
    command = ["benchmarks.suites.seeds", "--work", folder / "work", "--out", folder / "seeds.md", *options]
    return python("-m", *command, env={**os.environ, "LONGWALL_DATA": str(folder / "data")})


@pytest.mark.gpu
@pytest.mark.parametrize("engine_kind", ["cuda"], indirect=True)
def test_every_way_of_load_balancing_counts_the_same(engine_kind, tmp_path):
    done = python("-c", _SEARCHES, tmp_path)
    assert done.returncode == 0, done.stderr
    found, moved = json.loads(done.stdout)
    assert set(found) == {"cpu", "ring", "none", "host, 0.3", "host, 0", "short stacks"}
    assert len({*found.values(), *(count for count, _, _ in moved)}) == 1
    assert all(launches > 1 and tasks > 10 for _, launches, tasks in moved)


@pytest.mark.long
def test_the_suite_measures_what_it_has_the_graphs_for(tmp_path):
    done = suite(tmp_path, "--time", "280")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "seeds.md").read_text()
    assert text == done.stdout
    assert "| D4, D5 | 2 | 384 |" in text
    assert "ca-GrQc is left out" in text
    assert "| rmat-12 | 4 |" in text
    assert "| rmat-11 | P1 |" in text
    assert "FAILED" not in text


def test_without_time_the_suite_ends_well(tmp_path):
    script = "from benchmarks.suites import seeds; seeds._CHECKS = (); raise SystemExit(seeds.main())"
    done = python("-c", script, "--time", "0.01", "--work", tmp_path / "work", "--out", tmp_path / "seeds.md")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "seeds.md").read_text() == done.stdout
    assert "No time was left" in done.stdout


@pytest.mark.long
def test_a_count_that_differs_ends_the_suite(tmp_path):
    for part in ("graphs", "truth"):
        (tmp_path / "data" / part).mkdir(parents=True)
    complete = "".join(f"{u} {v}\n" for u, v in combinations(range(5), 2))
    (tmp_path / "data/graphs/ca-GrQc.edges.gz").write_bytes(gzip.compress(complete.encode()))
    known = {"ca-GrQc": {"cliques": {"4": 6}, "induced": {"diamond": 0}}}
    (tmp_path / "data/truth/counts.json").write_text(json.dumps(known))
    done = suite(tmp_path)
    assert done.returncode == 1
    failures = [line for line in done.stdout.splitlines() if "FAILED" in line]
    assert failures == ["- **FAILED**: D6, ca-GrQc, k = 4: Longwall counts 5, otherwise than known counts"]
    assert "D5: motifs" not in done.stdout


@pytest.mark.parametrize("options", [["--engine", "abacus"], ["--time", "soon"]])
def test_bad_options_are_refused(tmp_path, options):
    done = suite(tmp_path, *options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
