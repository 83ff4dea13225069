"""Arrays in cycles must not keep the memory of an engine from the next run."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collecting() -> Iterator[None]:
    """Collect, in the end, what was made in the context and is in cycles.

    What was there before is set apart meanwhile: with CuPy's and Dask's modules loaded, to look through it takes 0.1 s,
    many times what a small count takes.
    """
    apart = gc.get_freeze_count() == 0
    if apart:
        gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        if apart:
            gc.unfreeze()
