"""A graph that was made on a device, whose neighbours come to the host when something there first reads them."""

import threading
from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from longwall.storage.graph.graph import Graph


class CopiedLater(Graph):
    """A graph whose `indices` are copied when they are first read: most phases read them on the device alone."""

    @classmethod
    def of(cls, graph: Graph, copy: Callable[[], None]) -> "CopiedLater":
        """Return a graph with the arrays of another one.

        Parameters
        ----------
        graph
            The other one, which nothing else reads; its `indices` are not written yet.
        copy
            Writes them; called by whichever thread needs them first.
        """
        made = cls.__new__(cls)
        made.__dict__.update(graph.__dict__, _copy=copy, _room=graph.indices, _lock=threading.Lock())
        del made.__dict__["indices"]
        return made

    @cached_property
    def indices(self) -> npt.NDArray[np.uint32]:
        """See `Graph`."""
        own = self.__dict__
        with own["_lock"]:
            if "_copy" in own:
                own["_copy"]()
                del own["_copy"]  # with what it holds of the device
        found: npt.NDArray[np.uint32] = own["_room"]
        return found

    @property
    def num_edges(self) -> int:
        """See `Graph`."""
        return int(self.indptr[-1]) // 2
