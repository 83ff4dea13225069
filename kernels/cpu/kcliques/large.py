"""Count cliques of `ROOTED_FROM` vertices or more, in root subgraphs where these are dense.

The kernel is four times as large as that of smaller cliques, whose users need not wait until it is compiled.
"""

from longwall.kernels.cpu.kcliques.roots import Root  # noqa: F401 - the signature names it
from longwall.kernels.cpu.kcliques.vertex_tables import CliqueTables, count_roots
from longwall.kernels.jit.compile import compiled


class CpuLargeCliqueCounter(CliqueTables):
    """Counts cliques of `ROOTED_FROM` vertices or more."""

    def count(self, first: int, last: int) -> int:
        """Count the cliques of a range of arcs."""
        return self.count_by(count_large_cliques, first, last)


@compiled(
    "i8[::1], u4[::1], i8[::1], i8, i8, i8, i4[::1], u8[:,::1], i8[:,::1], Root(i4[::1], u8[::1], u8[:,::1], "
    "i8[::1], u8[:,::1], u8[:,::1], i8[::1], u8[::1]), u1[::1]"
)
def count_large_cliques(indptr, indices, split, k, first, last, local, table, state, root, stop_flag):
    """Count cliques as `count_roots` does, in root subgraphs where these are dense."""
    count_roots(indptr, indices, split, k, first, last, local, table, state, root, 1, stop_flag)
