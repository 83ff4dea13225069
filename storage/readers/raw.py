"""What every reader hands over: edges as they stand in the input, nothing cleaned."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longwall.storage.vertex_labels import LabelList


@dataclass(frozen=True, eq=False)
class RawGraph:
    """The edges of a file, loops and repetitions included."""

    src: npt.NDArray[np.int64]
    """int64[e]"""
    dst: npt.NDArray[np.int64]
    """int64[e]"""
    edge_labels: npt.NDArray[np.int32] | None = None
    """int32[e]"""
    vertex_labels: LabelList | None = None
    """Labels of vertices that the file declares, isolated ones too."""
    id_range: tuple[int, int] | None = None
    """Smallest and largest id that the file declares."""
