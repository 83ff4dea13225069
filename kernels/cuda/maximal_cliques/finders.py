"""The kernels for maximal cliques: this engine has none, and says so.

A config does not get here: ``engine.kind = "auto"`` is the CPU for this workload, and ``"cuda"`` is refused.
"""

# ruff: noqa: ARG001 - the arguments are those of the protocol

from typing import Any

from longwall.kernels.interface.degeneracy import DegeneracyOrder
from longwall.kernels.interface.engine import EngineUnavailable
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import CliqueCounter, CliqueLister, VertexCounter


def _refusal() -> EngineUnavailable:
    """Return the error that says that this engine cannot do it."""
    return EngineUnavailable('maximal cliques are found on the CPU only: use the engine "cpu"')


def degeneracy_order(device: Any, graph: GraphArrays) -> DegeneracyOrder:
    """Refuse; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    raise _refusal()


def maximal_clique_counter(
    device: Any, graph: GraphArrays, order: DegeneracyOrder, min_size: int, memory: int
) -> CliqueCounter:
    """Refuse; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    raise _refusal()


def maximal_clique_vertex_counter(
    device: Any, graph: GraphArrays, order: DegeneracyOrder, min_size: int, memory: int
) -> VertexCounter:
    """Refuse; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    raise _refusal()


def maximal_clique_lister(
    device: Any, graph: GraphArrays, order: DegeneracyOrder, min_size: int, room: int, memory: int
) -> CliqueLister:
    """Refuse; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    raise _refusal()
