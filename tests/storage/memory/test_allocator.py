"""The C library keeps freed memory inside the context alone: counted by the pages that are mapped anew."""

import subprocess
import sys

import pytest

PAGES = 16 * 2**20 // 4096  # of the buffers
ROUNDS = """
import resource
from contextlib import nullcontext

import numpy as np

from longwall.storage.memory.allocator import keeping_freed_memory, return_freed_memory

return_freed_memory()


def faults(context):
    with context:
        for _ in range(2):  # the second time counts
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            buffers = [np.empty(2**20, np.uint8) for _ in range(16)]
            for buffer in buffers:
                buffer[::4096] = 1
            del buffer, buffers
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


print(faults(nullcontext()), faults(keeping_freed_memory(2**25)), faults(nullcontext()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has these limits")
def test_freed_buffers_are_kept_for_the_next_ones_in_the_context_alone() -> None:
    """Buffers below the limit for mappings of their own are mapped once in the context, and each time outside of it."""
    done = subprocess.run([sys.executable, "-c", ROUNDS], capture_output=True, text=True, check=True, timeout=60)
    before, kept, after = map(int, done.stdout.split())
    assert kept < PAGES // 4
    assert min(before, after) > PAGES // 2
