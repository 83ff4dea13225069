"""Arrays in cycles must not keep the memory of an engine from the next run."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_PYTHONS_OWN = 1000
"""Python 3.12 begins with 375 objects set apart; a program that does so itself sets many more apart."""

_failed = False
"""Whether the last run failed: its objects may be in cycles with the traceback of its error."""


@contextmanager
def collecting() -> Iterator[None]:
    """Collect, in the end, the objects that were made in the context and are in cycles.

    Objects that were there before are set apart meanwhile: with CuPy's and Dask's modules loaded, to look through them
    takes 0.1 s, many times what a small count takes. After a failure the next context looks through all objects as it
    begins, since the traceback of the error holds objects of the failed context until then. In between no object is set
    apart: if no context follows, a program's own garbage would stay.
    """
    global _failed
    if _failed:
        gc.collect()
        _failed = False
    apart = gc.get_freeze_count() < _PYTHONS_OWN
    if apart:
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
