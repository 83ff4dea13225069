"""The kernels: functions on arrays that every engine has.

:mod:`longwall.kernels.cpu` and :mod:`longwall.kernels.cuda` are the tables, modules of this protocol (PEP 544). The
function of a kernel is in the file of the same name in both. Its first argument is the engine's device.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphisms import HomomorphismKernels
from longwall.kernels.interface.kcliques import KCliqueKernels
from longwall.kernels.interface.label_rows import KeptEdges, LabelRows, NewArray, Roles
from longwall.kernels.interface.local_counts import LocalCountKernels
from longwall.kernels.interface.maximal_cliques import MaximalCliqueKernels
from longwall.kernels.interface.pages import RowReads
from longwall.kernels.interface.pattern_growth import FrequentKernels
from longwall.kernels.interface.search import SearchKernels
from longwall.kernels.interface.sorting import SortingKernels
from longwall.kernels.interface.workspaces import Device


class Kernels(
    SearchKernels,
    KCliqueKernels,
    MaximalCliqueKernels,
    HomomorphismKernels,
    LocalCountKernels,
    FrequentKernels,
    SortingKernels,
    Protocol,
):
    """The table of an engine's kernels: those of the families, and of the graph itself.

    Most make the workspace of one worker, in at most `memory` bytes.
    """

    def rows_by_label(
        self,
        device: Device,
        graph: GraphArrays,
        roles: Roles,
        kept: KeptEdges,
        *,
        sliced: bool,
        new_array: NewArray,
        edge_labels: NDArray[np.int32] | None = None,
    ) -> LabelRows:
        """Make the rows of a graph that is laid out by label.

        Parameters
        ----------
        device, graph
            The engine's, and the data graph, all of it in the memory that the engine works in.
        roles, kept
            Which vertices and edges the new graph has.
        sliced
            Whether rows have slices, and vertices are numbered role by role; if not, in the order of ids.
        new_array
            Makes the arrays with an entry per arc, where the engine works in host memory.
        edge_labels : int32[2m] or None
            Labels of the edges, for the CPU engine only.
        """

    def check_rows(
        self,
        device: Device,
        indptr: NDArray[np.int64],
        split: NDArray[np.int64],
        indices: NDArray[np.uint32],
        key: NDArray[np.uint64],
    ) -> tuple[bool, int]:
        """Check the rows of a graph in the memory of the engine.

        Parameters
        ----------
        device
            The engine's.
        indptr, split, indices
            The arrays; `indptr` and `split` are known to ascend and to fit each other.
        key : uint64[3]
            Key of the hash of an edge; it was drawn after the arrays were made, so they cannot be forged for it.

        Returns
        -------
        bool
            Whether each row ascends, has smaller vertices before its split and larger ones after it, and ends at the
            last vertex of the graph or before.
        int
            The hashes of all edges at their larger ends less those at their smaller ends, modulo 2^64: 0 if the rows
            have each edge in both directions.
        """

    def bytes_per_page(
        self, device: Device, graph: GraphArrays, reads: Sequence[RowReads], page_arcs: int
    ) -> NDArray[np.uint64]:
        """Count the bytes that will be read of every page of the adjacency (GAMMA, Definition 4.1).

        Parameters
        ----------
        device
            The engine's.
        graph
            The data graph; of `indices` only the size is looked at.
        reads
            The frontier; see :func:`longwall.kernels.interface.frontier.frontier`.
        page_arcs
            Arcs, of 4 bytes, in a page; page p begins at arc ``p * page_arcs``.

        Returns
        -------
        uint64[number of pages]
            On the host. The last page may be shorter than the others. For a moment 16 bytes a page are needed where the
            engine works, and as many on the host.
        """

    def steps_per_second(self, device: Device) -> float:
        """Measure the elementary steps a second of all threads of the host together, or of the device, in about 0.1 s.

        A step reads an entry of an array in order and looks it up in a table that the first-level cache holds.
        """
