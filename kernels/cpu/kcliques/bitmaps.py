"""Count cliques by the bitmap tables of :mod:`longwall.kernels.cpu.kcliques.vertex_tables`."""

from typing import TYPE_CHECKING

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.cpu.kcliques.roots import Root  # noqa: F401 - the signature names it
from longwall.kernels.cpu.kcliques.vertex_tables import CliqueTables, count_roots
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import ROOTED_FROM
from longwall.kernels.jit.compile import compiled

if TYPE_CHECKING:
    from longwall.kernels.cpu.kcliques.large import CpuLargeCliqueCounter
    from longwall.kernels.cpu.local_counts.triangles import CpuTriangleCounter


def clique_counter(
    device: CpuDevice, graph: GraphArrays, k: int, memory: int
) -> "CpuCliqueCounter | CpuLargeCliqueCounter | CpuTriangleCounter":
    """Make a counter of k-cliques."""
    if 3 < k < ROOTED_FROM:
        return CpuCliqueCounter(device, graph, k, memory)
    # Cliques of other sizes name no kernel of these, nor these one of theirs.
    from longwall.kernels.cpu.kcliques.large import CpuLargeCliqueCounter
    from longwall.kernels.cpu.local_counts.triangles import CpuTriangleCounter

    return CpuLargeCliqueCounter(device, graph, k, memory) if k > 3 else CpuTriangleCounter(device, graph, memory)


class CpuCliqueCounter(CliqueTables):
    """Counts cliques of fewer than `ROOTED_FROM` vertices."""

    def count(self, first: int, last: int) -> int:
        """Count the cliques of a range of arcs."""
        return self.count_by(count_cliques, first, last)


@compiled(
    "i8[::1], u4[::1], i8[::1], i8, i8, i8, i4[::1], u8[:,::1], i8[:,::1], Root(i4[::1], u8[::1], u8[:,::1], "
    "i8[::1], u8[:,::1], u8[:,::1], i8[::1], u8[::1]), u1[::1]"
)
def count_cliques(indptr, indices, split, k, first, last, local, table, state, root, stop_flag):
    """Count cliques as `count_roots` does, in no root subgraph: k is below `ROOTED_FROM`."""
    count_roots(indptr, indices, split, k, first, last, local, table, state, root, None, stop_flag)
