"""Room where an engine works for the lists of one part of a graph after the other; those of its roots stay."""

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.storage.streaming.graph_parts import ARC_BYTES, MEMBER_BYTES, ROOTS_SHARE, GraphPart

_START_BYTES = 8  # where the list of a vertex begins


def capacity_shape(vertices: int, part: int) -> tuple[int, int]:
    """Return the most vertices and arcs of a part of `part` bytes that is joined with blocks of lists.

    Parameters
    ----------
    vertices
        Of the whole graph.
    part
        Bytes of a part on the host.
    """
    return min(vertices, int(ROOTS_SHARE * part) // MEMBER_BYTES), part // ARC_BYTES


def capacity_bytes(vertices: int, part: int) -> int:
    """Return what a `ListRoom` takes where the engine works; parameters as of `room_shape`."""
    most, arcs = capacity_shape(vertices, part)
    return _START_BYTES * (most + 1) + ARC_BYTES * arcs


class ListRoom:
    """A graph where an engine works, whose lists are those of parts that are brought in turn.

    Lists end where the room ends, so those of the roots, which are the last of a part, lie in one place whatever lists
    come before them.

    Parameters
    ----------
    engine
        The engine; its arrays are made now.
    vertices, part
        See `room_shape`.
    longest
        Most smaller neighbours of a vertex of the whole graph.

    Attributes
    ----------
    graph
        It has as many vertices as there is room for: behind those of a part are some without neighbours.
    nbytes
        What its arrays take.
    """

    def __init__(self, engine: Engine, vertices: int, part: int, longest: int) -> None:
        self._fill = engine.memory.fill
        most, arcs = capacity_shape(vertices, part)
        xp = engine.xp
        starts, lists = xp.zeros(most + 1, xp.int64), xp.empty(arcs, xp.uint32)
        self.nbytes = starts.nbytes + lists.nbytes
        self.graph = GraphArrays(starts, lists, starts[1:], xp.zeros(1, xp.int32), longest, longest, oriented=True)

    def bring(self, part: GraphPart, roots: int = 0) -> int:
        """Copy a part; what is read of it by kernels that were launched before is not changed by that.

        Parameters
        ----------
        part
            The part.
        roots
            Arcs at its end that are there already.

        Returns
        -------
        int
            How far its arcs lie behind where they are in the part.
        """
        starts, lists, size = self.graph.indptr, self.graph.indices, part.graph.num_arcs
        shift, new, vertices = self.graph.num_arcs - size, size - roots, part.graph.num_vertices + 1
        self._fill(lists[shift : shift + new], part.graph.indices[:new])
        self._fill(starts[:vertices], part.graph.indptr)
        starts[:vertices] += shift
        starts[vertices:] = self.graph.num_arcs
        return shift
