"""Arrays in cycles must not keep the memory of an engine from the next run."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_PYTHONS_OWN = 1000
"""Python 3.12 begins with 375 objects set apart; a program that does so itself sets many more apart."""

_failed = False
"""Whether the last run failed: the objects that were there before it are still set apart."""


@contextmanager
def collecting() -> Iterator[None]:
    """Collect, in the end, the objects that were made in the context and are in cycles.

    Objects that were there before are set apart meanwhile: with CuPy's and Dask's modules loaded, to look through them
    takes 0.1 s, many times what a small count takes. After a failure they stay apart until the next context begins: the
    traceback of the error holds what the context had until then, and is looked for again.
    """
    global _failed
    if _failed:
        gc.collect()
        gc.unfreeze()
        _failed = False
    apart = gc.get_freeze_count() < _PYTHONS_OWN
    if apart:
        gc.freeze()
    try:
        yield
    except BaseException:
        _failed = apart
        raise
    finally:
        gc.collect()
        if apart and not _failed:
            gc.unfreeze()
