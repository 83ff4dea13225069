"""Decode several row groups of a Parquet file at a time; their rows come in order."""

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from longwall.storage.ingest.text.input_file import open_input
from longwall.storage.ingest.text.parallel_parse import blocks_in_flight, in_order

_ROW_BYTES = 32  # columns of integers, as the receiver gets them
_PAGE_BUFFER = 2**18

Made = TypeVar("Made")


class Piece(NamedTuple):
    """Consecutive row groups that are decoded together."""

    groups: range
    start: int
    """Rows ahead of them."""
    rows: int


def pieces_of(metadata: Any, least: int) -> list[Piece]:
    """Cut a file of that metadata into pieces of whole row groups, of `least` rows each at least, but the last."""
    pieces = []
    first = start = rows = 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= least or group == metadata.num_row_groups - 1:
            pieces.append(Piece(range(first, group + 1), start, rows))
            first, start, rows = group + 1, start + rows, 0
    return pieces


def readers_for(pieces: Sequence[Piece], decoding: int, memory: int, workers: int) -> int:
    """Return how many pieces can be decoded at a time, `decoding` bytes being what takes a thread besides its rows."""
    largest = _ROW_BYTES * max((piece.rows for piece in pieces), default=0)
    waiting = blocks_in_flight(0) + 1
    return max(1, min(workers, len(pieces), (memory - waiting * largest) // (largest + decoding)))


def decode(
    path: Path,
    metadata: Any,
    pieces: Sequence[Piece],
    columns: list[int],
    batch_size: int,
    workers: int,
    convert: Callable[[int, Any], Made],
) -> Generator[tuple[Made, int], None, None]:
    """Decode pieces on threads.

    Parameters
    ----------
    path
        The file.
    metadata
        Its metadata, as Arrow has it.
    pieces
        See `pieces_of`.
    columns
        Places of the leaves to read.
    batch_size
        Rows that are decoded at a time.
    workers
        Threads; each has the file open.
    convert
        Called with a number of rows and the batch behind them.

    Yields
    ------
    made, rows
        What `convert` made of a batch, in order, and the rows up to its end.
    """
    import pyarrow.parquet as pq

    spare: SimpleQueue[Any] = SimpleQueue()
    left = iter(pieces)
    with ExitStack() as opened:

        def decoded(piece: Piece) -> list[tuple[Made, int]]:
            try:
                reader = spare.get_nowait()
            except Empty:
                file = opened.enter_context(open_input(path))
                options = {"metadata": metadata, "buffer_size": _PAGE_BUFFER, "pre_buffer": False}
                reader = pq.ParquetFile(file, page_checksum_verification=True, **options).reader
            found, start = [], piece.start
            for batch in reader.iter_batches(batch_size, piece.groups, columns, use_threads=False):
                made = convert(start, batch)
                start += batch.num_rows
                found.append((made, start))
            spare.put(reader)
            return found

        with closing(in_order(lambda: next(left, None), decoded, workers)) as running:
            for _, found in running:
                yield from found
