"""Rows of a graph that is laid out by label: launches of ``label_rows.cu``."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.runtime.launch import WARP, Device
from longwall.kernels.cuda.runtime.memory import copied
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.label_rows import KeptEdges, RoleNumbers, RowArrays

Array = Any  # a CuPy array


def rows_by_label(
    device: Device,
    graph: GraphArrays,
    vertices: RoleNumbers,
    kept: KeptEdges,
    *,
    sliced: bool,
    edge_labels: NDArray[np.int32] | None = None,
) -> "CudaLabelRows":
    """Make what makes rows by label; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    assert edge_labels is None, "rows with labels of edges are made on the host"
    return CudaLabelRows(device, graph, vertices, kept, sliced)


class CudaLabelRows:
    """Makes rows on the device; see :class:`longwall.kernels.interface.label_rows.LabelRows`."""

    def __init__(self, device: Device, graph: GraphArrays, vertices: RoleNumbers, kept: KeptEdges, sliced: bool):
        self._device, self._graph = device, (graph.indptr, graph.indices, graph.split)
        self._roles, self._sliced = kept.allowed.shape[0], sliced
        self._number = len(vertices.origin)
        sizes = np.diff(vertices.first_role)
        arrays: dict[str, NDArray[Any]] = {
            "first_role": vertices.first_role,
            "kind_of_role": np.repeat(np.arange(len(sizes), dtype=np.uint8), sizes),
            "rules": kept.allowed[:, :, 0].astype(np.uint8).ravel(),
        }
        for name in ("kind", "place", "origin", "role"):
            arrays[name] = getattr(vertices, name)
        self._there = copied(device.xp, arrays)

    def count(self) -> NDArray[np.uint32]:
        """Count the neighbours of all vertices in each role."""
        there, slices = self._there, self._device.xp.empty(self._number * (self._roles + 1), np.uint32)
        which = there["kind"], there["origin"], there["role"], there["kind_of_role"], there["rules"]
        self._launch("count_label_rows", self._number, (*which, self._roles, self._number, slices))
        return self._fetched(slices).reshape(self._number, self._roles + 1)

    def fill(self, vertices: RoleNumbers, rows: RowArrays) -> tuple[RowArrays, Callable[[], None]]:
        """Write the rows on the device, and copy all but the neighbours to the host."""
        xp, number, there = self._device.xp, len(vertices.origin), self._there
        slices = rows.slices.reshape(-1)
        brought = copied(
            xp, {"labels": rows.labels, "indptr": rows.indptr} | ({"slices": slices} if self._sliced else {})
        )
        moved = copied(xp, {"origin": vertices.origin, "role": vertices.role, "final": vertices.final})
        indices, split = xp.empty(rows.indices.size - 1, np.uint32), xp.empty(number, np.int64)
        roles = there["kind_of_role" if self._sliced else "first_role"], there["rules"], self._roles
        which = there["kind"], there["place"], *roles, moved["origin"], moved["role"], moved["final"]
        out = brought["indptr"], number, indices, split
        if self._sliced:
            self._launch("fill_label_slices", number * self._roles, (*which, brought["slices"], *out))
        else:
            self._launch("fill_label_rows", number, (*which, *out))
        self._fetched(split, rows.split)
        made = rows._replace(
            labels=brought["labels"],
            slices=brought.get("slices"),
            indptr=brought["indptr"],
            split=split,
            indices=indices,
        )
        return made, partial(_copy_beside_kernels, self._device, indices, rows.indices[:-1])

    def _launch(self, function: str, warps: int, arguments: tuple[Any, ...]) -> None:
        self._device.launch_over("label_rows.cu", function, max(warps, 1) * WARP, (*self._graph, *arguments))

    def _fetched(self, array: Array, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Copy an array to the host once its kernel has ended; see `exact`."""
        self._device.synchronize()
        found: NDArray[Any] = array.get(out=out)
        return found


def _copy_beside_kernels(device: Device, array: Array, out: NDArray[Any]) -> None:
    """Copy an array, whose kernel has ended, to the host: from any thread, and while other kernels run."""
    with device.xp.cuda.Device(device.number), device.faults():
        array.get(stream=device.xp.cuda.Stream(non_blocking=True), out=out)
