"""The page of tables names the columns that runs write, with their types; the page of exit codes names all of them."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import longwall
from longwall.pipeline.cli_output import ExitCode
from longwall.pipeline.workloads import workload_kinds

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
TABLES = (REFERENCE / "tables.md").read_text()
SMALL = {"kind": "rmat", "scale": 5, "edge_factor": 3, "seed": 1, "num_labels": 2}

RUNS: dict[str, dict[str, Any]] = {
    "`embeddings` (": {"kind": "cliques", "k": 3, "output": "embeddings"},
    "`vertices` of `triangles`": {"kind": "triangles", "output": "vertices"},
    "`vertices` of `motifs`": {"kind": "motifs", "k": 4, "output": "vertices"},
    "`vertices` of `cliques`": {"kind": "cliques", "k": "all", "output": "vertices"},
    "`sizes` of `cliques`": {"kind": "cliques", "k": "all"},
    "`edges` of `triangles`": {"kind": "triangles", "output": "edges"},
    "`sizes` of `maximal-cliques`": {"kind": "maximal-cliques", "output": "count"},
    "`vertices` of `maximal-cliques`": {"kind": "maximal-cliques", "output": "vertices"},
    "`embeddings` of `maximal-cliques`": {"kind": "maximal-cliques", "output": "embeddings"},
    "`patterns`": {"kind": "frequent", "min_support": 3, "max_edges": 2},
    "`embeddings` of `frequent`": {"kind": "frequent", "min_support": 3, "max_edges": 2, "output": "embeddings"},
}
"""How a heading of the page begins -> a run that writes this table."""


def columns_of(heading: str) -> list[tuple[str, str]]:
    """Names and types of the columns in the table below a heading."""
    (part,) = [part for part in re.split(r"^##+ ", TABLES, flags=re.MULTILINE) if part.startswith(heading)]
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|", part, re.MULTILINE)
    assert rows, heading
    return [
        (name, kind) for names, kind in rows for name in re.findall(r"`(\w+)`|(\.\.\.)", names) for name in name if name
    ]


def word_of(kind: pa.DataType, name: str) -> str:
    """What the page calls a type."""
    if pa.types.is_list(kind):
        inside = "struct" if pa.types.is_struct(kind.value_type) else word_of(kind.value_type, name)
        return f"list of {'labels' if name.endswith('labels') else 'vertices' if name == 'clique' else inside + 's'}"
    return "vertex" if re.fullmatch(r"vertex|source|target|v\d", name) else str(kind)


def compare(heading: str, schema: pa.Schema) -> None:
    """See that a table has the columns that the page says; ``...`` stands for any number of further ones."""
    wanted = columns_of(heading)
    found = [(field.name, word_of(field.type, field.name)) for field in schema]
    if ("...", wanted[-1][1]) == wanted[-1]:
        *wanted, (_, kind) = wanted
        assert {one for _, one in found[len(wanted) :]} == {kind}
        found = found[: len(wanted)]
    assert found == wanted


@pytest.mark.parametrize("heading", RUNS)
def test_tables_have_the_columns_of_the_page(heading: str, tmp_path: Path) -> None:
    workload = RUNS[heading]
    config = {"graph": {"generator": SMALL}, "workload": workload, "run": {"directory": tmp_path, "report": False}}
    result = longwall.run(config)
    name = re.findall(r"`(\w+)`", heading)[0]
    compare(heading, result.schema(name))
    compare("`counts`", result.schema("counts"))
    compare("`metrics`", pq.read_schema(Path(result.path) / "metrics.parquet"))


def test_every_workload_has_a_part() -> None:
    headings = " ".join(re.findall(r"^## (.*)$", TABLES, re.MULTILINE))
    assert set(re.findall(r"`([\w-]+)`", headings)) == set(workload_kinds())


def test_every_exit_code_is_on_the_page() -> None:
    shown = {int(code) for code in re.findall(r"^\| (\d+) \|", (REFERENCE / "exit-codes.md").read_text(), re.MULTILINE)}
    signals = {128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    assert shown == {0, *(int(code) for code in ExitCode), *signals}
