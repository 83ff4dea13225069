"""Read on one thread, parse on others, hand over in order: a pipeline with a bounded number of blocks in flight."""

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Block = TypeVar("Block")
Parsed = TypeVar("Parsed")


def blocks_in_flight(workers: int) -> int:
    """Return how many blocks exist at once: one is read, one is with the receiver, the others are being parsed."""
    return workers + 2


def in_order(
    read: Callable[[], Block | None], parse: Callable[[Block], Parsed], workers: int
) -> Generator[tuple[Block, Parsed], None, None]:
    """Read blocks one after another and parse several at once.

    Parameters
    ----------
    read
        Returns the next block, None after the last one. Called on one thread, never twice at a time.
    parse
        Called on `workers` threads; should release the GIL.
    workers
        The number of parser threads.

    Yields
    ------
    block, parsed
        In the order of reading; reading continues when the receiver asks for the next one. What `read` or `parse` raise
        comes out where their block would have come. No thread is left when the iteration ends, whether at its end, by
        an error or by `close`.
    """
    reader, parsers = ThreadPoolExecutor(1), ThreadPoolExecutor(workers)

    def start() -> tuple[Block, Future[Parsed]] | None:
        block = read()
        return None if block is None else (block, parsers.submit(parse, block))

    try:
        waiting = deque(reader.submit(start) for _ in range(blocks_in_flight(workers)))
        while started := waiting.popleft().result():
            yield started[0], started[1].result()
            del started  # the receiver is done with it: make room first
            waiting.append(reader.submit(start))
    finally:
        reader.shutdown(cancel_futures=True)
        parsers.shutdown(cancel_futures=True)
