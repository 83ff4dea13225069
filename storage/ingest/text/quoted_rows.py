"""Find the last whole row of a block of text whose fields may be in quotes, with newlines inside."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.ingest.text.text_kernel import BLANK, SEPARATOR


@compiled("u1[::1], u1[::1]")
def end_of_rows(block: npt.NDArray[np.uint8], kinds: npt.NDArray[np.uint8]) -> int:
    """Return the place behind the last newline outside of a field in quotes, 0 if there is none.

    The block begins with a row. A tab may separate fields, whatever `kinds` says.
    """
    found = np.int64(0)
    begins, quotes, quoted = True, False, False
    for at in range(block.size):
        byte = block[at]
        if byte == 34 and (begins or quotes):
            quotes, quoted = True, not quoted
            begins = False
        elif not quoted and (byte == 10 or byte == 9 or kinds[byte] == SEPARATOR):
            begins, quotes = True, False
            if byte == 10:
                found = np.int64(at) + 1
        elif kinds[byte] != BLANK:
            begins = False
    return int(found)
