"""A graph that was made on a device, whose arrays come to the host when something there first reads them."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from longwall.storage.graph.graph import Graph
from longwall.storage.graph.stats import GraphStats


class _Later:
    """An array that is copied when it is first read: the copy then hides this attribute."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, graph: "CopiedLater | None", owner: type) -> Any:
        if graph is None:
            return self
        own, name = graph.__dict__, self._name
        with own["_lock"]:
            if name not in own:
                own[name] = own["_copies"][name]()
                del own["_copies"][name]  # with what it holds of the device
        return own[name]


class CopiedLater(Graph):
    """A graph whose arrays are copied when they are first read: most phases read them on the device alone."""

    indptr: Any = _Later()
    indices: Any = _Later()
    split: Any = _Later()
    original_ids: Any = _Later()
    labels: Any = _Later()
    slices: Any = _Later()

    @classmethod
    def of(cls, whole: Graph, stats: GraphStats, nbytes: int, copies: Mapping[str, Callable[[], Any]]) -> "CopiedLater":
        """Return a graph that was made of another one.

        Parameters
        ----------
        whole
            The other one: the new graph has its names and its hash, and no transactions.
        stats
            Statistics of the graph.
        nbytes
            Bytes of its arrays.
        copies
            What makes each array; called by whichever thread needs it first.
        """
        made = cls.__new__(cls)
        kept = {name: value for name, value in whole.__dict__.items() if name not in copies}
        own = {"_nbytes": nbytes, "_copies": dict(copies), "_lock": threading.Lock()}
        made.__dict__.update(kept, stats=stats, transactions=None, transaction_ids=None, **own)
        return made

    @property
    def num_vertices(self) -> int:
        """See `Graph`."""
        return self.stats.num_vertices

    @property
    def num_edges(self) -> int:
        """See `Graph`."""
        return self.stats.num_edges

    @property
    def nbytes(self) -> int:
        """See `Graph`."""
        return self.__dict__["_nbytes"] if "_nbytes" in self.__dict__ else super().nbytes  # a copy has its arrays
