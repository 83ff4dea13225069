"""What every reader hands over: a stream of edges as they stand in the input, nothing cleaned.

A reader is a function, one for each format, from a `FileRequest` to an `EdgeStream`; `edge_list.LabelList` and
`parquet.ParquetLabels` are made of one, too. Nothing is opened before the iteration begins, and all errors come out of
it.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import DataNotes
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.names.texts import HashedTexts
from longwall.storage.ingest.tables.columns import EDGES, ColumnRequest
from longwall.storage.ingest.text.input_file import Progress
from longwall.storage.ingest.transactions import TransactionSource
from longwall.storage.ingest.vertex_labels import LabelSource


@dataclass(frozen=True)
class FileRequest:
    """A file to read, and the limits within which it is read."""

    path: Path
    memory: int
    """Bytes that a reader may hold while it is iterated: buffers, text that waits to be parsed, parsed blocks up to the
    one that it has yielded last. The caller reserves them. Readers need 2 MiB in any case, 9 MiB more for Zstandard and
    8 MiB for Parquet."""
    workers: int
    """The number of parser threads; one more thread reads and decompresses."""
    progress: Progress | None = None
    """Called with the bytes consumed and the size of the file, by the thread that iterates."""
    columns: ColumnRequest = field(default_factory=lambda: ColumnRequest(EDGES))

    @property
    def opening(self) -> tuple[Path, int, int]:
        """The first arguments of a `TextFile`."""
        return self.path, self.memory, self.workers


@dataclass(frozen=True, eq=False)
class EdgeBlock:
    """Consecutive edges of the input, loops and repetitions included; the arrays are the receiver's own."""

    src: npt.NDArray[np.int64]
    """int64[e]: ids, see `unsigned`"""
    dst: npt.NDArray[np.int64]
    """int64[e]"""
    edge_labels: npt.NDArray[np.int32] | None = None
    """int32[e]; on all blocks of an input or on none."""
    names: "EdgeNames | None" = None
    """The names of the ends, where vertices have names; on all blocks of an input or on none."""
    unsigned: bool = False
    """Whether ids below 0 stand for those from 2^63 on, less 2^64; only one kind may be in an input."""


@dataclass(frozen=True, eq=False)
class EdgeNames:
    """Names of the ends of edges; the ends themselves are their hashes."""

    hashed: HashedTexts
    """2e names: both of the first edge, both of the second, ..."""
    place: Callable[[int], str]
    """Edge of the block -> where in the input it stands ("line 7"), for messages."""

    def block(self, edge_labels: npt.NDArray[np.int32] | None = None) -> EdgeBlock:
        """Return the block of the edges."""
        ids = self.hashed.ids
        return EdgeBlock(ids[0::2].copy(), ids[1::2].copy(), edge_labels, self)


@dataclass(eq=False)
class Declared:
    """Facts that a file declares about its graph besides the edges; its reader fills them in."""

    id_range: tuple[int, int] | None = None
    vertices: int | None = None
    """The number of vertices, including those without an edge."""
    directed: bool = False
    """Whether all edges have directions, which are dropped."""
    directions: int = 0
    """The number of edges with a direction, except for loops, if not all edges have one."""
    matrix: bool = False
    """Whether edges are entries of a matrix: those at (i, j) and (j, i) are one edge; one alone has a direction."""
    may_be_empty: bool = False
    """Whether a graph without edges is valid: of an object, or of a file that declares it; else rows are missing."""


@dataclass(eq=False)
class EdgeStream:
    """An input that is being read, once; a context manager."""

    source: str
    """The name of the input in messages."""
    blocks: Iterator[EdgeBlock]
    """The edges. Iterating raises InputError with file and line where the input is wrong; blocks may be empty."""
    vertex_labels: LabelSource | None = None
    """Labels of vertices, isolated ones too; to be read once `blocks` is exhausted."""
    declared: Declared = field(default_factory=Declared)
    transactions: TransactionSource | None = None
    """Transactions of vertices, isolated ones too; to be read once `blocks` is exhausted."""
    edge_label_names: LabelNames | None = None
    """Collects the labels of edges that are texts while `blocks` are read."""
    repeated: Callable[[int, int], InputError] | None = None
    """Makes the error for an edge, given by its ends, where (labelled) edges may be given only once."""

    notes: DataNotes = field(default_factory=DataNotes)
    """Collects notes of dropped, merged or guessed data while `blocks` are read."""

    @property
    def id_range(self) -> tuple[int, int] | None:
        """Smallest and largest id that the file declares, if it declares ids; known once `blocks` is exhausted."""
        return self.declared.id_range

    def close(self) -> None:
        """End the iteration: stop its threads and close the file. More than once does no harm."""
        if isinstance(self.blocks, Generator):
            self.blocks.close()

    def __enter__(self) -> "EdgeStream":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
