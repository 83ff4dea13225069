"""The pattern table: frequent patterns as edge lists and as DFS codes, with their figures, in Parquet."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.label_names import label_texts
from longwall.storage.tables.arrow_columns import column, of_array

if TYPE_CHECKING:
    import pyarrow as pa

    from longwall.pipeline.workloads.frequent.grown_patterns import FrequentPatterns, Reserve
    from longwall.pipeline.workloads.frequent.plan import FrequentPlan
    from longwall.storage.graph.graph import Graph

_CODE = ("i", "j", "label_i", "label_edge", "label_j")
_ROWS = 64, 1 << 13  # fewest and most patterns that are written at once, as a row group
# Measured: 11 KiB of a row group until the file ends, and 50 while it is written; 380 bytes of a `PatternCount`, 85 for
# each edge; of a pattern that is written 160 and 75.
_GROUP_BYTES, _WRITING_BYTES = 12 << 10, 56 << 10
_COUNT_BYTES, _COUNT_EDGE_BYTES = 480, 96
_ROW_BYTES, _ROW_EDGE_BYTES = 240, 90


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
    graph
        The graph, which knows the labels of the input.
    reserve
        Reserves bytes of the host, for what a noun names.
    capacity
        Bytes that rows may take while they are written.

    Attributes
    ----------
    counts
        The patterns so far.
    reserved
        What is reserved for them, until the caller releases it, or the block fails.
    """

    def __init__(self, path: Path, plan: "FrequentPlan", graph: "Graph", reserve: "Reserve", capacity: int):
        import pyarrow as pa

        from longwall.storage.parquet_files import ParquetSink

        self._names = {2: graph.label_names, 3: graph.edge_label_names, 4: graph.label_names}
        types = [pa.string() if self._names.get(place) else pa.int32() for place in range(len(_CODE))]
        self._code = pa.struct(list(zip(_CODE, types, strict=True)))
        fields = [("pattern", pa.string()), ("labels", pa.list_(types[2])), ("edge_labels", pa.list_(types[3]))]
        fields += [("dfs_code", pa.list_(self._code))]
        fields += [(name, pa.int64()) for name in ("vertices", "edges", "support", "count")]
        metadata = {name: str(value) for name, value in plan.to_dict().items()}
        self._schema = pa.schema(fields, metadata=metadata)
        self._least, self._reserve, self._capacity = plan.min_support, reserve, capacity
        self.reserved, self._of_file = reserve(0, ""), reserve(0, "")
        self._file = ParquetSink(path, self._schema)
        self.counts: list[PatternCount] = []

    def write(self, level: "FrequentPatterns") -> None:
        """Append the frequent ones of a level's patterns.

        Raises
        ------
        BudgetExceeded
            If there is no room for them.
        """
        edges = level.patterns.num_edges
        of_row, of_count = _ROW_BYTES + _ROW_EDGE_BYTES * edges, count_bytes(edges)
        at_once = min(max(self._capacity // of_row, _ROWS[0]), _ROWS[1])
        for begin in range(0, len(level.patterns), at_once):
            end = min(begin + at_once, len(level.patterns))
            frequent = begin + np.flatnonzero(level.supports[begin:end] >= self._least)
            if frequent.size:
                self.reserved.join(self._reserve(of_count * frequent.size, "the patterns that are found"))
                self._of_file.join(self._reserve(_GROUP_BYTES, "the pattern table"))
                with self._reserve(_WRITING_BYTES + of_row * frequent.size, "rows of the pattern table"):
                    self._write(level.selected(frequent))

    def _write(self, some: "FrequentPatterns") -> None:
        """Append some patterns."""
        import pyarrow as pa

        codes, types = some.patterns.codes, some.types  # a copy
        for place, values in ((2, types.vertex_labels), (3, types.edge_labels), (4, types.vertex_labels)):
            codes[:, :, place] = values[codes[:, :, place]]
        counts = some.rows // some.automorphisms
        figures = zip(codes, counts.tolist(), some.supports.tolist(), strict=True)
        found = [_count(code.tolist(), None if count < 0 else count, support) for code, count, support in figures]
        arrays = [
            column([one.pattern for one in found], pa.string()),
            column([label_texts(one.labels, self._names[2]) for one in found], self._schema.field("labels").type),
            column(
                [label_texts(one.edge_labels, self._names[3]) for one in found], self._schema.field("edge_labels").type
            ),
            self._code_lists(codes),
            of_array(some.patterns.sizes.astype(np.int64)),
            of_array(np.full(len(found), some.patterns.num_edges, np.int64)),
            of_array(some.supports),
            column([one.count for one in found], pa.int64()),
        ]
        self._file.write(pa.Table.from_arrays(arrays, schema=self._schema))
        self.counts += found

    def _code_lists(self, codes: NDArray[np.int32]) -> "pa.Array":
        """Return codes, int32[p, edges, 5], as lists of structs."""
        import pyarrow as pa

        number, edges, _ = codes.shape
        columns = [of_array(codes[:, :, place].ravel()) for place in range(len(_CODE))]
        for place, names in self._names.items():
            if names is not None:
                columns[place] = pa.array(names).take(columns[place])
        structs = pa.StructArray.from_arrays(columns, fields=list(self._code))
        return pa.ListArray.from_arrays(of_array(np.arange(0, number * edges + 1, edges, dtype=np.int32)), structs)

    def __enter__(self) -> "PatternTable":
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._file.close()
            else:
                self.reserved.release()
                self._file.abandon()
        finally:
            self._of_file.release()


def count_bytes(edges: int) -> int:
    """Bytes of a pattern of a given number of edges as it is returned in the end."""
    return _COUNT_BYTES + _COUNT_EDGE_BYTES * edges


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
