"""A run's folder: whole when it is done, visibly not whole, and ready to be resumed, when it failed or was stopped."""

import hashlib
import json
import math
import os
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from run_configs import run_config, write_edges

import longwall
from longwall.pipeline import run as run_module
from longwall.pipeline.config import load_config
from longwall.pipeline.execution.environment import Environment, Metrics, MetricsRow, PatternCount
from longwall.pipeline.result_tables import write_metrics
from longwall.pipeline.run import run
from longwall.pipeline.run_store.run_directory import RunDirectory
from longwall.pipeline.workloads import workload_kinds
from longwall.storage.errors import FinalError, InputError, RunError
from longwall.storage.observer import NullObserver
from longwall.storage.system.version import source_commit


@dataclass
class Plan:
    """A plan with nothing in it."""

    steps: list = field(default_factory=list)

    def describe(self) -> str:
        return "a plan"

    def to_dict(self) -> dict:
        return {"steps": self.steps}


@pytest.fixture
def executing(monkeypatch):
    """Make every kind of workload execute a function."""

    def use(execute):
        def run_it(self, plan: Plan, context: Environment) -> list[PatternCount]:
            (context.results / "embeddings-00000.parquet").write_bytes(b"half a table")
            return execute(context)

        for workload in workload_kinds().values():
            monkeypatch.setattr(workload, "plan", lambda self, graph: Plan())
            monkeypatch.setattr(workload, "execute", run_it)

    return use


@pytest.fixture
def config(tmp_path) -> dict:
    graph = write_edges(tmp_path, [(1, 2), (2, 3), (1, 3)])
    run = {"directory": tmp_path / "runs", "name": "one"}
    return run_config(tmp_path, graph, {"kind": "triangles"}, run=run | {"report": True})


def manifest(config: dict) -> dict:
    return json.loads((config["run"]["directory"] / "one" / "manifest.json").read_text())


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_a_whole_run(config):
    result = run(config)
    assert (result.count, result.workload, result.engine) == (1, "triangles", "cpu")
    assert result.patterns[0].pattern == "0-1,0-2,1-2"
    assert names(result.path) == {
        *("config.toml", "history.json", "manifest.json", "metrics.parquet", "report.html", "results")
    }
    assert load_config(result.path / "config.toml") == load_config(config)

    facts = manifest(config)
    assert facts["status"] == "done"
    assert facts["started"] <= facts["finished"]
    assert (facts["graph"]["vertices"], facts["graph"]["edges"]) == (3, 3)
    assert len(facts["graph"]["hash"]) == 64
    assert facts["engine"]["name"] == "cpu"
    assert facts["versions"]["longwall"] == longwall.__version__
    assert facts["versions"].get("commit") == source_commit()
    assert "plan" in facts
    file = result.path / "results" / "counts.parquet"
    expected = {
        "rows": 1,
        "bytes": file.stat().st_size,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }
    assert facts["results"]["counts.parquet"] == expected
    assert result.table("counts").to_pylist()[0]["count"] == 1
    with pytest.raises(InputError, match=r'no table "embeddings", only counts'):
        result.table()


def test_the_summary_has_the_names_that_stay(config):
    summary = run(config).to_json()
    assert list(summary) == ["run", "workload", "count", "patterns", "seconds", "engine"]
    assert summary["patterns"] == [{"pattern": "0-1,0-2,1-2", "count": 1, "method": "cliques"}]
    json.dumps(summary)


def test_a_limit_that_ended_the_run_is_reported(config):
    config |= {"workload": {"kind": "match", "pattern": "wedge", "output": "embeddings"}}
    whole = run(config)
    assert (whole.count, whole.truncated, whole.table().num_rows) == (3, False, 3)
    assert "truncated" not in whole.to_json()
    part = run(config, overrides=["export.limit=2", "run.name=two"])
    assert (part.count, part.truncated, part.table().num_rows) == (2, True, 2)
    assert part.to_json()["truncated"] is True


class Shares(NullObserver):
    """Records how near the limit is reported to be."""

    def __init__(self):
        self.seen = []

    def near_limit(self, share):
        self.seen.append(share)


@pytest.mark.parametrize("order", ["depth", "levels"])
def test_progress_knows_the_limit(config, order):
    config |= {"workload": {"kind": "match", "pattern": "wedge", "output": "embeddings"}, "scheduler": {"order": order}}
    for name, limit, last in (("half", 6, 0.5), ("cut", 2, 1.0), ("whole", None, None)):
        shares = Shares()
        overrides = [f"run.name={name}", *([f"export.limit={limit}"] if limit else [])]
        run(config, overrides=overrides, observer=shares)
        assert max(shares.seen, default=None) == last


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(("kind", "count"), [("match", 3), ("triangles", 1), ("cliques", 1)])
@pytest.mark.parametrize("order", ["depth", "levels"])
def test_a_count_that_a_limit_cut_is_a_lower_bound_wherever_it_is(config, kind, count, order):
    section = {"kind": kind, "output": "embeddings"}
    section |= {"match": {"pattern": "wedge"}, "triangles": {}, "cliques": {"k": 3}}[kind]
    config |= {"workload": section, "scheduler": {"order": order}}
    for name, limit, cut in (("whole", None, False), ("roomy", count + 1, False), ("cut", 1, True)):
        result = run(config, overrides=[f"run.name={name}", *([f"export.limit={limit}"] if limit else [])])
        assert result.count == (1 if cut else count)
        assert result.truncated is cut
        assert result.patterns[0].lower_bound is cut
        row = result.table("counts").to_pylist()[0]
        assert (row["count"], row["lower_bound"]) == (result.count, cut)
        summary = result.to_json()
        assert summary.get("lower_bound", False) is cut
        assert summary["patterns"][0].get("lower_bound", False) is cut
        manifest = json.loads((result.path / "manifest.json").read_text())
        assert manifest["truncated"] is cut


def test_an_existing_folder_is_refused_and_left_alone(config, tmp_path):
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one-2").mkdir()
    with pytest.raises(InputError, match=r"exists already.*run\.name=one-3"):
        run(config)
    assert names(tmp_path / "runs") == {"one", "one-2"}
    assert names(tmp_path / "runs" / "one") == set()


def test_a_parent_that_is_a_file_is_refused(config, tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(InputError, match=r"is a file, not a folder: choose another run\.directory"):
        run(config)


def test_a_parent_without_permission_is_refused(config, tmp_path):
    (tmp_path / "runs").mkdir(mode=0o500)
    if os.access(tmp_path / "runs", os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(InputError, match=r"Permission denied.*choose another run\.directory"):
        run(config)


def test_a_parent_that_refuses_is_an_input_error(config, tmp_path, monkeypatch):
    def refuse(self, *arguments, **options):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(InputError, match=r"Permission denied.*choose another run\.directory"):
        run(config)


@pytest.mark.parametrize("failing", ["open", "rename"])
def test_a_folder_that_cannot_be_written_is_taken_back(config, tmp_path, monkeypatch, failing):
    def refuse(self, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, failing, refuse)
    with pytest.raises(RunError, match="No space left on device"):
        run(config)
    assert not (tmp_path / "runs").exists()


def test_bad_input_leaves_nothing_behind(config, tmp_path):
    config["graph"]["path"] = tmp_path / "none.txt"
    with pytest.raises(InputError, match=r"none\.txt"):
        run(config)
    assert not (tmp_path / "runs").exists()


UNFINISHED = {
    *("config.toml", "history.json", "manifest.json", "metrics.parquet", "report.html", "checkpoint", "results.partial")
}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RunError("the disk budget is used up"), "the disk budget is used up"),
        (MemoryError("Unable to allocate 8 TiB"), "out of memory"),
        (OSError(28, "No space left on device", "spill/x"), "at spill/x: No space left on device"),
    ],
)
def test_a_failed_run_says_so_and_has_no_results(config, executing, error, message):
    def fail(context):
        context.metrics.record("extend", 2, 10, 20, 0.5)
        raise error

    executing(fail)
    with pytest.raises(RunError, match=message):
        run(config)
    path = config["run"]["directory"] / "one"
    assert names(path) == UNFINISHED
    facts = manifest(config)
    assert facts["status"] == "failed"
    assert message in facts["reason"]
    assert pq.read_table(path / "metrics.parquet")["rows_out"].to_pylist() == [20]


def test_a_fault_of_the_program_is_recorded_and_not_hidden(config, executing):
    def fail(context):
        raise ZeroDivisionError("oops")

    executing(fail)
    with pytest.raises(ZeroDivisionError):
        run(config)
    assert manifest(config)["reason"] == "ZeroDivisionError: oops"


def test_half_a_table_is_never_a_result(config, executing):
    executing(lambda context: [PatternCount("0-1", None, 1)])
    with pytest.raises(FinalError, match=r"embeddings-00000\.parquet: the run had finished this file"):
        run(config)
    assert manifest(config)["status"] == "failed"
    assert not (config["run"]["directory"] / "one" / "results").exists()


def test_ctrl_c_stops_the_workers_and_leaves_no_results(config, executing):
    stopped = threading.Event()

    def work(context):
        def worker():
            context.cancel.wait()
            stopped.set()

        thread = threading.Thread(target=worker)
        thread.start()
        main = threading.main_thread().ident
        threading.Timer(0.2, signal.pthread_kill, [main, signal.SIGINT]).start()
        thread.join()
        time.sleep(30)

    executing(work)
    before = signal.getsignal(signal.SIGINT)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(config)
    assert time.monotonic() - began < 25
    assert stopped.wait(10)
    assert signal.getsignal(signal.SIGINT) is before
    assert manifest(config)["status"] == "interrupted"
    assert names(config["run"]["directory"] / "one") == UNFINISHED


def test_an_interrupt_after_the_end_leaves_a_done_run(config):
    directory = RunDirectory.create(load_config(config))
    directory.finish(Metrics())
    directory.abandon("interrupted", "late", Metrics())
    assert (directory.path / "results").is_dir()
    assert manifest(config)["status"] == "done"


def test_an_interrupt_before_the_last_step_takes_the_results_back(config, monkeypatch):
    directory = RunDirectory.create(load_config(config))

    def interrupt() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(directory, "save", interrupt)
        with pytest.raises(KeyboardInterrupt):
            directory.finish(Metrics())
    assert (directory.path / "results").is_dir()
    directory.abandon("interrupted", "late", Metrics())
    assert not (directory.path / "results").exists()
    assert manifest(config)["status"] == "interrupted"


def test_metrics_are_recorded_from_many_threads(tmp_path):
    metrics = Metrics()
    threads = [
        threading.Thread(target=lambda: [metrics.record("extend", 2, 1, 2, 0.1, bytes=3, tasks=1) for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    write_metrics(metrics, tmp_path / "metrics.parquet")
    table = pq.read_table(tmp_path / "metrics.parquet")
    assert table.column_names == list(MetricsRow._fields)
    assert table.num_rows == 2000


@pytest.fixture
def star(tmp_path, config) -> dict:
    """Stars of 6 in a labelled star of 2,000: 8.8e16 of them, found 720 times each."""
    (tmp_path / "star.txt").write_text("".join(f"0 {leaf}\n" for leaf in range(1, 2001)))
    (tmp_path / "labels.txt").write_text("0 0\n" + "".join(f"{leaf} 1\n" for leaf in range(1, 2001)))
    workload = {"kind": "match", "pattern": "star-6", "pattern_labels": [0, 1, 1, 1, 1, 1, 1]}
    return config | {
        "graph": {"path": tmp_path / "star.txt", "labels": tmp_path / "labels.txt"},
        "workload": workload,
    }


def test_figures_that_no_column_holds_are_null(star):
    result = run(star | {"workload": {"kind": "match", "pattern": "star-7"}})
    assert result.count == math.comb(2000, 7) > 2**63
    rows = {row["stage"]: row for row in pq.read_table(result.path / "metrics.parquet").to_pylist()}
    assert (rows["degrees"]["rows_in"], rows["degrees"]["rows_out"]) == (2001, None)


def test_a_count_that_no_column_of_integers_holds_is_a_decimal(star):
    result = run(star, overrides=["workload.count=mappings"])
    assert result.count == math.perm(2000, 6)
    column = result.table("counts").column("count")
    assert (str(column.type), int(column[0].as_py())) == ("decimal128(38, 0)", result.count)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("began", "kind"), [("cluster", "dask"), ("cpu", "local")])
def test_a_run_does_not_leave_its_cluster(config, executing, monkeypatch, began, kind):
    def fail(context):
        raise MemoryError

    executing(fail)
    with pytest.raises(RunError):
        run(config)
    path = config["run"]["directory"] / "one"
    facts = manifest(config)
    facts["engine"]["name"] = began
    (path / "manifest.json").write_text(json.dumps(facts))
    if began == "cpu":
        monkeypatch.setattr(run_module, "engine_facts", lambda *arguments: {"name": "cluster", "device": None})
    with pytest.raises(InputError, match=f'cluster: resume it with scheduler.kind = "{kind}"'):
        longwall.resume(path)


def test_a_refused_run_leaves_no_folder(tmp_path):
    (tmp_path / "bad.txt").write_text("1 2\n1 x\n")
    runs = tmp_path / "new" / "x" / "runs"
    spill = tmp_path / "new" / "x" / "spill"
    with pytest.raises(InputError):
        longwall.run(
            {
                "graph": {"path": tmp_path / "bad.txt"},
                "workload": {"kind": "triangles"},
                "engine": {"kind": "cpu"},
                "memory": {"spill": spill},
                "run": {"directory": runs},
            }
        )
    assert [path.name for path in tmp_path.iterdir()] == ["bad.txt"]
