"""The pattern table: frequent patterns as edge lists and as DFS codes, with their figures, in Parquet."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longwall.pipeline.execution.environment import PatternCount

if TYPE_CHECKING:
    from longwall.pipeline.workloads.frequent.grown_patterns import FrequentPatterns
    from longwall.pipeline.workloads.frequent.plan import FrequentPlan


class PatternTable:
    """Writes ``patterns.parquet``: a row per frequent pattern.

    The columns are `pattern` (the edge list, as text), `labels` and `edge_labels` (null where the graph has none; in
    the order of the vertices, and of the edge list), `dfs_code`, `vertices`, `edges`, `support` and `count`, the
    number of distinct subgraphs.

    Parameters
    ----------
    path
        The file; it is there when the block ends.
    plan
        What the patterns were mined by: metadata of the file.

    Attributes
    ----------
    counts
        The patterns so far.
    """

    def __init__(self, path: Path, plan: "FrequentPlan"):
        import pyarrow as pa

        from longwall.storage.parquet_files import ParquetSink

        numbers = pa.list_(pa.int32())
        code = pa.list_(pa.struct([(name, pa.int32()) for name in ("i", "j", "label_i", "label_edge", "label_j")]))
        fields = [("pattern", pa.string()), ("labels", numbers), ("edge_labels", numbers), ("dfs_code", code)]
        fields += [(name, pa.int64()) for name in ("vertices", "edges", "support", "count")]
        metadata = {name: str(value) for name, value in plan.to_dict().items()}
        self._schema = pa.schema(fields, metadata=metadata)
        self._file = ParquetSink(path, self._schema)
        self.counts: list[PatternCount] = []

    def write(self, level: "FrequentPatterns") -> None:
        """Append the patterns of a level."""
        import pyarrow as pa

        codes, types = level.patterns.codes.copy(), level.types
        for place, values in ((2, types.vertex_labels), (3, types.edge_labels), (4, types.vertex_labels)):
            codes[:, :, place] = values[codes[:, :, place]]
        first = len(self.counts)
        counts = (level.rows // level.automorphisms).tolist()
        instances = [None if count < 0 else count for count in counts]
        figures = zip(codes.tolist(), instances, level.supports.tolist(), strict=True)
        self.counts += [_count(code, instances, support) for code, instances, support in figures]
        some = self.counts[first:]
        columns: dict[str, Any] = {
            "pattern": [one.pattern for one in some],
            "labels": [one.labels for one in some],
            "edge_labels": [one.edge_labels for one in some],
            "dfs_code": [
                [dict(zip(("i", "j", "label_i", "label_edge", "label_j"), edge, strict=True)) for edge in code]
                for code in codes.tolist()
            ],
            "vertices": level.patterns.sizes.astype(np.int64),
            "edges": np.full(len(some), level.patterns.num_edges, np.int64),
            "support": level.supports,
            "count": instances,
        }
        self._file.write(pa.table(columns, schema=self._schema))

    def __enter__(self) -> "PatternTable":
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._file.close()
        else:
            self._file.abandon()


def _count(code: list[list[int]], instances: int | None, support: int) -> PatternCount:
    edges = sorted((min(i, j), max(i, j), label) for i, j, _, label, _ in code)
    labels = {code[0][0]: code[0][2]} | {j: label for i, j, _, _, label in code if i < j}
    return PatternCount(
        ",".join(f"{u}-{v}" for u, v, _ in edges),
        None if labels[0] < 0 else tuple(labels[v] for v in range(len(labels))),
        instances,
        support,
        None if edges[0][2] < 0 else tuple(label for _, _, label in edges),
    )
