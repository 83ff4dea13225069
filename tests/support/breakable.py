"""The runs that tests break: small ones of every kind, and what they give when nothing disturbs them."""

from __future__ import annotations

import itertools
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import naive
import pyarrow.parquet as pq
from kill import Fault, Launcher, Outcome, check_whole, finish, go_on

_DRAW = random.Random(3)
EDGES = sorted(
    {
        (min(u, v), max(u, v))
        for u, v in ((int(80 * _DRAW.random() ** 1.7), _DRAW.randrange(80)) for _ in range(500))
        if u != v
    }
)
LABELS = {vertex: vertex % 3 for vertex in range(80)}
LIMIT = 200
EXAMPLES = Path(__file__).parents[2] / "examples"
# Every task is committed, and there are not too many; chunks and files are short.
CONSTANTS = {
    "longwall.kernels.cpu.engine:_TASKS_PER_WORKER": 24,
    "longwall.pipeline.execution.task_ranges:_ARCS_PER_TASK": 1,
    "longwall.pipeline.execution.task_ranges:_LISTED_STEPS": 1,
    "longwall.pipeline.run_store.commit_log:COMMIT_SECONDS": 0.0,
    "longwall.pipeline.execution.thread_executor:_COMMITS_COST": float("inf"),
    "longwall.pipeline.execution.thread_executor:_CRASH_COSTS": 0.0,
    "longwall.pipeline.execution.worker_memory:LARGEST_CHUNK": 64,
    "longwall.stages.export:ROWS_PER_FILE": 100,
    "longwall.storage.tables.row_sorter:_MOST": 1 << 15,
}
SHARED = """
[memory]
spill = "spill"
[engine]
kind = "cpu"
threads = 2
[run]
name = "run"
"""


@dataclass(frozen=True)
class Kind:
    """A run: its workload, and sections besides."""

    workload: str
    sections: str = ""
    edges: tuple[tuple[int, int], ...] = ()
    labels: tuple[int, ...] | None = None
    report: bool = False
    """Whether the run writes a report, which takes it longer than its work."""

    def query(self) -> tuple[naive.Query, dict[int, int] | None]:
        """What the oracles are asked."""
        size = 1 + max(max(edge) for edge in self.edges)
        query = naive.Query(size, self.edges, self.labels, "induced = true" in self.workload)
        return query, None if self.labels is None else LABELS

    @property
    def config(self) -> str:
        graph = '[graph]\npath = "graph.txt"\n' + ('labels = "labels.txt"\n' if self.labels else "")
        return f"{graph}[workload]\n{self.workload}\n{self.sections}\n{SHARED}report = {str(self.report).lower()}\n"


def _match(edges: str, more: str = "", **facts: Any) -> Kind:
    pairs = tuple((int(edge[0]), int(edge[2])) for edge in edges.split(","))
    return Kind(f'kind = "match"\npattern = "{edges}"\n{more}', edges=pairs, **facts)


DIAMOND = "0-1,0-2,0-3,1-2,1-3"
LISTING = 'output = "embeddings"'
KINDS = {
    "count by search": _match(DIAMOND, "pattern_labels = [0, 1, 1, 2]", labels=(0, 1, 1, 2)),
    "cliques": Kind('kind = "cliques"\nk = 4'),
    "cliques by size": Kind('kind = "cliques"\nk = "all"'),
    "cliques per vertex": Kind('kind = "cliques"\nk = "all"\noutput = "vertices"'),
    "4-cycles": _match("0-1,1-2,2-3,3-0"),
    "homomorphisms": _match("0-1,1-2,2-3,3-0,0-4,1-4"),
    "induced sum": _match("0-1,1-2,2-3", "induced = true"),
    "distinct subgraphs": Kind(
        'kind = "match"\npattern = "(a:0)-(b)-(c)-(d)-(a), (a)-(c)"\ncount = "subgraphs"',
        edges=((0, 1), (0, 2), (0, 3), (1, 2), (2, 3)),
        labels=(0, -1, -1, -1),
    ),
    "triangles per vertex": Kind('kind = "triangles"\noutput = "vertices"'),
    "frequent patterns": Kind(
        f'kind = "frequent"\nmin_support = 26\nmax_edges = 3\n{LISTING}', labels=tuple(LABELS.values())
    ),
    "motifs": Kind('kind = "motifs"\nk = 4\nmethod = "enumeration"'),
    "orbits": Kind('kind = "motifs"\nk = 4\noutput = "vertices"'),
    "listing": _match(DIAMOND, LISTING, report=True),
    "listing with a limit": _match(DIAMOND, LISTING, sections=f"[export]\nlimit = {LIMIT}"),
    "algorithm": Kind('kind = "custom"\nalgorithm = "plexes.py:Plexes"\nparameters = { k = 2, size = 4 }'),
    "maximal cliques": Kind('kind = "maximal-cliques"'),
    "maximal cliques per vertex": Kind('kind = "maximal-cliques"\noutput = "vertices"\nmin_size = 3'),
    "listing of maximal cliques": Kind(f'kind = "maximal-cliques"\nmin_size = 3\n{LISTING}'),
    "sorted listing": _match(DIAMOND, LISTING, sections="[export]\nsort = true"),
    "listing by levels": _match(DIAMOND, LISTING, sections='[scheduler]\norder = "levels"'),
}


@dataclass(frozen=True)
class Whole:
    """An undisturbed run."""

    answer: dict[str, Any]
    events: int
    seconds: float


class Workshop:
    """Makes runs of every kind, breaks them, and compares what they give in the end."""

    def __init__(self, launch: Launcher, root: Path):
        self.launch, self._root = launch, root
        self._numbers = itertools.count()
        self._whole: dict[tuple[str, bool], Whole] = {}

    def folder(self, kind: str) -> Path:
        """A fresh working directory with the config and the graph of a run."""
        folder = self._root / str(next(self._numbers))
        folder.mkdir()
        (folder / "graph.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES))
        (folder / "labels.txt").write_text("".join(f"{vertex} {label}\n" for vertex, label in LABELS.items()))
        shutil.copy(EXAMPLES / "plexes.py", folder)
        (folder / "run.toml").write_text(KINDS[kind].config)
        return folder

    def go_on(self, kind: str, folder: Path, *, often: bool = True, fault: Fault | None = None) -> Outcome:
        """Start or resume the run of a folder."""
        return go_on(self.launch, folder, "run", fault=fault, constants=_constants(often))

    def undisturbed(self, kind: str, *, often: bool = True) -> Whole:
        """What the run gives, in how many events and seconds; `often` commits every task."""
        if (kind, often) not in self._whole:
            warm = self.launch("run", "run.toml", "--quiet", folder=self.folder(kind), fork=False)
            assert warm.code == 0, warm.err
            folder = self.folder(kind)
            began = time.monotonic()
            outcome = self.go_on(kind, folder, often=often)
            assert outcome.code == 0, outcome.err
            check_whole(folder / "runs" / "run", folder / "spill")
            facts = answer(folder / "runs" / "run"), outcome.events, time.monotonic() - began
            self._whole[kind, often] = Whole(*facts)
        return self._whole[kind, often]

    def check(self, kind: str, faults: Sequence[Fault], *, often: bool = True) -> int:
        """Run, break, resume, compare. Return how many faults struck."""
        folder = self.folder(kind)
        struck = finish(self.launch, folder, "run", faults, constants=_constants(often))
        self.compare(kind, folder / "runs" / "run")
        return struck

    def compare(self, kind: str, run: Path) -> None:
        """The run is whole, and gives what the undisturbed one gives."""
        check_whole(run, run.parents[1] / "spill")
        found, expected = answer(run), self.undisturbed(kind).answer
        if kind == "listing with a limit":  # any rows will do
            everything = self.undisturbed("listing").answer["embeddings"]
            assert len(found["embeddings"]) == len(set(found["embeddings"])) == LIMIT
            assert set(found["embeddings"]) <= set(everything)
            found["embeddings"] = expected["embeddings"]
        if kind == "sorted listing":
            rows = rows_as_they_lie(run)
            assert rows == sorted(rows)
        assert found == expected


def rows_as_they_lie(run: Path) -> list[tuple[int, ...]]:
    """The rows of a listing, file by file in the order of their names."""
    tables = [pq.read_table(file) for file in sorted((run / "results").glob("embeddings-*.parquet"))]
    return [row for table in tables for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def _constants(often: bool) -> dict[str, Any]:
    return CONSTANTS if often else {}


def answer(run: Path) -> dict[str, Any]:
    """The tables of a run, each as a sorted list of rows; ``counts`` as the plain numbers."""
    tables: dict[str, list[Any]] = {}
    for file in sorted((run / "results").glob("*.parquet")):
        table = pq.read_table(file)
        columns = [table.column(name).to_pylist() for name in table.column_names]
        tables.setdefault(file.stem.partition("-")[0], []).extend(zip(*columns, strict=True))
    tables["counts"] = [row[2] for row in tables["counts"]]
    return {name: rows if name == "counts" else sorted(rows, key=repr) for name, rows in tables.items()}


def embeddings_of(rows: list[tuple[int, ...]], query: naive.Query) -> set[frozenset[frozenset[int]]]:
    """The rows as embeddings."""
    return {naive.edge_set(row, query) for row in rows}
