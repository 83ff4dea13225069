"""How hot the pages of the adjacency are (GAMMA, Definitions 4.1 to 4.3)."""

import numpy as np
from numpy.typing import NDArray


class AccessHeat:
    """The history of the extensions so far, and the heat that follows from it.

    Parameters
    ----------
    num_pages
        Number of pages.

    Attributes
    ----------
    history : uint64[num_pages]
        Temporal locality (Definition 4.2): bytes of each page that the extensions observed so far read. Exact as
        long as they read less than 2**64 bytes in all: 16 EiB, weeks of reading at 4 TB/s.
    total
        The sum of the history.
    """

    def __init__(self, num_pages: int):
        self.history = np.zeros(num_pages, np.uint64)
        self.total = 0

    @staticmethod
    def nbytes(num_pages: int) -> int:
        """Bytes that the history takes, with what `observe` needs and returns."""
        return 32 * num_pages

    def observe(self, spatial: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return the heat of the pages in the next extension, and add it to the history.

        Parameters
        ----------
        spatial : uint64[num_pages]
            Spatial locality (Definition 4.1): bytes of each page that the extension will read.

        Returns
        -------
        float64[num_pages]
            Definition 4.3: spatial and temporal locality, weighed by the extension's share of all bytes that have
            been read so far, itself included, and by the share of the earlier ones.
        """
        before, coming = self.total, int(spatial.sum())
        self.total += coming
        everything = max(self.total, 1)  # nothing has been read: no page is hot
        heat = self.history.astype(np.float64)
        heat *= before / everything
        heat += spatial * (coming / everything)
        self.history += spatial
        return heat
