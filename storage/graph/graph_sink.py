"""Where a build puts the arrays of a graph, piece by piece; and their hashes."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from longwall.storage.arrays.array_hash import ArrayHash
from longwall.storage.ingest.data_notes import Noted

if TYPE_CHECKING:
    from longwall.storage.sorting.scratch_arrays import Scratch

Array = npt.NDArray[Any]

HASHED = (
    *("indptr", "indices", "original_ids", "labels", "edge_labels", "transactions", "transaction_ids"),
    *("name_starts", "name_bytes"),
)
"""Arrays that the content hash covers; `split` follows from them."""


LabelTexts = Mapping[str, tuple[str, ...] | None]
"""The labels that are texts, by number: of "vertices" and "edges"; None where they are integers."""


def content_hash(hashes: Mapping[str, ArrayHash], label_names: LabelTexts) -> str:
    """Return the SHA-256 (hex) of a graph's contents: the hashes of its arrays by name (`HASHED`), and its labels."""
    lines = "".join(hashes[name].line(name) for name in HASHED if name in hashes)
    for name in ("vertices", "edges"):
        if names := label_names.get(name):
            lines += f"labels of {name} {json.dumps(names)}\n"
    return hashlib.sha256(lines.encode()).hexdigest()


class Sink(ABC):
    """Takes the arrays of `Graph` piece by piece, any number of arrays at a time, and hashes them; and its notes."""

    def __init__(self) -> None:
        self.hashes: dict[str, ArrayHash] = {}
        self.label_names: dict[str, tuple[str, ...] | None] = {}
        self.notes: tuple[Noted, ...] = ()

    def begin(self, name: str, dtype: npt.DTypeLike, length: int, scratch: Scratch | None) -> None:
        """Make room for an array of `length` items; `scratch` pays for the memory, if there is one."""
        self.hashes[name] = ArrayHash(dtype, length)
        self._begin(name, np.dtype(dtype), length, scratch)

    def expect(self, size: int, scratch: Scratch) -> None:  # noqa: B027 - most sinks keep nothing in memory
        """Take note that the arrays will have about a given number of bytes in all, before the first one begins."""

    @abstractmethod
    def append(self, name: str, values: Array) -> None:
        """Add items at the end of an array; they are copied, and hashed."""

    @property
    def content_hash(self) -> str:
        """The hash of the graph, once all arrays are complete."""
        return content_hash(self.hashes, self.label_names)

    @abstractmethod
    def _begin(self, name: str, dtype: np.dtype[Any], length: int, scratch: Scratch | None) -> None: ...

    @abstractmethod
    def read_back(self, name: str, memory: int) -> Iterator[Array]:
        """Yield a complete array in blocks, not to be changed; a sink that keeps it elsewhere checks it.

        `memory` bytes are for blocks that are read ahead.
        """
