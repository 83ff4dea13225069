"""The subgraph of the first k vertices: rows ascend, so its rows are prefixes of the rows of the graph."""

from longwall.kernels.jit.bisect import first_at_least
from longwall.kernels.jit.compile import compiled


@compiled("i8[::1], u4[::1], i8[::1]")
def count_prefixes(indptr, indices, numbers):
    """Count the neighbours of each of the first k vertices that are among these: a prefix of its row.

    Parameters
    ----------
    indptr, indices
        The graph.
    numbers : int64[k]
        Receives the number of neighbours below k of each vertex below k.
    """
    for v in range(numbers.size):
        numbers[v] = first_at_least(indices[indptr[v] : indptr[v + 1]], numbers.size)


@compiled("i8[::1], u4[::1], i8[::1], u4[::1]")
def copy_prefixes(indptr, indices, starts, copies):
    """Copy the neighbours that `count_prefixes` counts.

    Parameters
    ----------
    indptr, indices
        The graph.
    starts : int64[k + 1]
        Where the neighbours of each vertex begin in `copies`, and where the last ones end.
    copies : uint32[starts[-1]]
        Receives them.
    """
    for v in range(starts.size - 1):
        for place in range(starts[v + 1] - starts[v]):
            copies[starts[v] + place] = indices[indptr[v] + place]
