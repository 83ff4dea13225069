"""Arrays in cycles must not keep the memory of an engine from the next run."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_failed = False


@contextmanager
def collecting() -> Iterator[None]:
    """Collect, in the end, what was made in the context and is in cycles.

    What was there before is set apart meanwhile: with CuPy's and Dask's modules loaded, to look through it takes 0.1 s,
    many times what a small count takes. Only after a failure it is looked through first: the traceback of the error
    held what the context had until that was over.
    """
    global _failed
    apart = gc.get_freeze_count() == 0
    if apart:
        if _failed:
            gc.collect()
            _failed = False
        gc.freeze()
    try:
        yield
    except BaseException:
        _failed = True
        raise
    finally:
        gc.collect()
        if apart:
            gc.unfreeze()
