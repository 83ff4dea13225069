"""Where the adjacency is, what is done the plain way, and what crosses the host link then."""

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.gpu.paged_steps import LaunchWatch
from longwall.kernels import cuda
from longwall.kernels.cuda.engine import CudaEngine
from longwall.kernels.interface.engine import Ablation


class Variant(NamedTuple):
    """Where the adjacency is, and which optimisation is left out ("" for none)."""

    access: Any
    plain: str = ""

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.access}+{self.plain}" if self.plain else self.access


CPU, RESIDENT, ADAPTIVE = Variant("cpu"), Variant("resident"), Variant("adaptive")
# GAMMA's zero-copy is the unordered one: kernels read lists where they are.
RIVALS = (ADAPTIVE, Variant("managed"), Variant("zero-copy", "unordered"), Variant("zero-copy"))
PLAIN = (
    *(Variant(access, plain) for plain in ("two-pass", "ungrouped") for access in ("adaptive", "zero-copy")),
    Variant("adaptive", "unordered"),
)


class Watched:
    """Something with some of its calls replaced."""

    def __init__(self, plain: Any, **calls: Callable[..., Any]):
        self.__dict__.update(calls)
        self._plain = plain

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


class WatchedEngine(CudaEngine):
    """Notes what crosses the host link, without what fetching the roots takes.

    Attributes
    ----------
    pages
        Where the graph's pages are, once it is loaded; see `longwall.kernels.interface.pages.Pages`.
    moved
        Bytes of pages that were copied to the device, and that were sent back from it.
    launches
        What kernels took, and brought.
    """

    def __init__(self, variant: Variant):
        plain = variant.plain
        super().__init__(Ablation(plain == "two-pass", plain != "ungrouped", plain != "unordered"))
        self._plain_paging = self.paging
        self.kernels: Any = Watched(cuda, bytes_per_page=self._bytes_per_page)
        self.paging: Any = Watched(self._plain_paging, send_back=self._send_back, frames=self._frames)
        self._on_touch = variant.access == "managed"
        self.pages: Any = None
        self.launches = LaunchWatch(self.device, self.xp)
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._read, self._coming = 0, None
        self.moved = [0, 0]
        self.launches.reset()

    @property
    def link_bytes(self) -> int:
        """Bytes that the device received: lists that were copied, or else what is read of other pages; pages.

        Pages that come when they are touched are counted when they go back.
        """
        self._add_coming()
        return (self.launches.copied or self._read) + self.moved[self._on_touch]

    @property
    def copy_rate(self) -> float:
        """Bytes a second at which lists were copied; 0 where none were."""
        spent = self.launches.seconds()["copy"]
        return self.launches.copied / spent if spent else 0.0

    def _bytes_per_page(self, *arguments: Any) -> Any:
        """As the engine's: what will be read of pages, before any is moved for it."""
        self._add_coming()
        self._coming = cuda.bytes_per_page(*arguments)
        return self._coming

    def _send_back(self, graph: Any, ranges: Any) -> None:
        """As the engine's."""
        self.moved[1] += 4 * int((ranges[:, 1] - ranges[:, 0]).sum())
        self._plain_paging.send_back(graph, ranges)

    def _frames(self, graph: Any, number: int, page_arcs: int) -> Any:
        """As the engine's."""
        buffer = self._plain_paging.frames(graph, number, page_arcs)
        fill = buffer.fill

        def watched(moves: Any, *more: Any) -> None:
            self.moved[0] += 4 * page_arcs * moves[0].size
            fill(moves, *more)

        buffer.fill = watched  # type: ignore[method-assign]
        return buffer

    def _add_coming(self) -> None:
        """Add the last extension's reads: by now its pages are where they were when it ran."""
        if self._coming is not None and self.pages is not None and not self._on_touch:
            self._read += int(self._coming[~self.pages.hot].sum())
        self._coming = None
