"""Seeded random graphs: the same seed gives the same graph on every machine, in memory or as a store."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.generators.random_edges import LABELS, barabasi_albert, erdos_renyi, rmat, word_source
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_data import NewArray
from longwall.storage.graph.stats import GraphStats
from longwall.storage.ingest.build import build_in_memory, build_store
from longwall.storage.ingest.data_notes import Unsaid
from longwall.storage.ingest.readers.edge_stream import EdgeBlock, EdgeStream
from longwall.storage.ingest.vertex_labels import LabelBlock, LabelSource
from longwall.storage.mapping.mapped_arrays import MappedArrays
from longwall.storage.memory.resources import Resources, given_or_default
from longwall.storage.observer import Observer
from longwall.storage.system.arguments import brief

_LABELS_A_BLOCK = 2**14
_NOUNS = {int: "an integer", float: "a number"}


@dataclass(frozen=True)
class Generator:
    """A kind of random graph."""

    draw: Callable[..., Iterator[EdgeBlock]]
    """(seed, resources, **parameters) -> edges; checks the parameters when the iteration begins."""
    parameters: dict[str, type]
    """Parameter -> int or float."""
    defaults: dict[str, int | float]
    """Parameter -> value where it is not given; a parameter without one must be given."""
    vertices: Callable[[dict[str, Any]], int]
    """Parameters -> ids are below this."""
    summary: str
    """One line for `--help`."""


GENERATORS: dict[str, Generator] = {
    "rmat": Generator(
        rmat,
        {"scale": int, "edge_factor": int, "a": float, "b": float, "c": float},
        {"edge_factor": 16, "a": 0.57, "b": 0.19, "c": 0.19},
        lambda values: 1 << values["scale"],
        "R-MAT (Kronecker): edge_factor * 2^scale draws, skewed degrees; repetitions and loops are dropped",
    ),
    "erdos-renyi": Generator(
        erdos_renyi,
        {"vertices": int, "edges": int},
        {},
        lambda values: values["vertices"],
        "Erdos-Renyi: a given number of edges, every such graph equally likely",
    ),
    "barabasi-albert": Generator(
        barabasi_albert,
        {"vertices": int, "edges_per_vertex": int},
        {},
        lambda values: values["vertices"],
        "Barabasi-Albert: each new vertex attaches to edges_per_vertex vertices, by degree",
    ),
}


def generate_graph(
    kind: Literal["rmat", "erdos-renyi", "barabasi-albert"], *, seed: int, num_labels: int = 0, **params: int | float
) -> Graph:
    """Generate a random graph in memory; isolated vertices are dropped, as everywhere.

    Parameters
    ----------
    kind
        ``"rmat"``, ``"erdos-renyi"`` or ``"barabasi-albert"``.
    seed
        From 0 to 2^64 - 1.
    num_labels
        Vertex labels, drawn uniformly from 0 to `num_labels` - 1; 0 for an unlabelled graph.
    **params
        The kind's parameters: `scale` and `edge_factor` (and `a`, `b`, `c`) of R-MAT, `vertices` and `edges` of
        Erdős-Rényi, `vertices` and `edges_per_vertex` of Barabási-Albert.

    Raises
    ------
    InputError
        The kind or a parameter is unknown, missing or out of range.
    RunError
        A budget or the disk is too small.

    Examples
    --------
    >>> import longwall
    >>> longwall.generate_graph("barabasi-albert", vertices=100, edges_per_vertex=3, seed=1)
    <longwall.Graph: 100 vertices, 291 edges>
    >>> longwall.generate_graph("rmat", scale=10, edge_factor=8, seed=1, num_labels=4).stats.num_labels
    4
    """
    with given_or_default(None) as resources, _open(kind, seed, num_labels, params, resources) as stream:
        return build_in_memory(stream, resources)


def generate(
    kind: str,
    *,
    seed: int,
    num_labels: int = 0,
    resources: Resources | None = None,
    adjacency: NewArray = np.empty,
    files: MappedArrays | None = None,
    **params: int | float,
) -> Graph:
    """Generate as `generate_graph`, in given budgets and arrays.

    `adjacency` makes the array of the neighbours, `files` the arrays that the host's budget has no room for (None:
    there must be room). The graph's `nbytes` stay reserved in `resources.host`.
    """
    with (
        given_or_default(resources) as resources,
        _open(kind, seed, num_labels, params, resources) as stream,
    ):
        return build_in_memory(stream, resources, adjacency=adjacency, files=files)


def generate_store(
    kind: str,
    path: str | Path,
    *,
    seed: int,
    num_labels: int = 0,
    resources: Resources | None = None,
    observer: Observer | None = None,
    **params: int | float,
) -> GraphStats:
    """Generate a random graph of any size as a store, which appears under `path` complete or not at all.

    See `generate_graph`; `observer` receives the progress.

    Raises
    ------
    InputError
        As `generate_graph`, or the path exists or cannot be written to.
    RunError
        As `generate_graph`.
    """
    with (
        given_or_default(resources) as resources,
        _open(kind, seed, num_labels, params, resources) as stream,
    ):
        return build_store(stream, path, resources, observer)


@contextmanager
def _open(
    kind: str, seed: int, num_labels: int, params: dict[str, int | float], resources: Resources
) -> Iterator[EdgeStream]:
    """Check the parameters and begin to draw."""
    values = _checked(kind, seed, num_labels, params)
    generator = GENERATORS[kind]
    source = f"generator {kind}"
    with ExitStack() as held:
        drawing = held.enter_context(EdgeStream(source, generator.draw(seed, resources, **values)))
        # The first block now: what is held while edges are drawn has to be reserved before the build takes most of
        # what is free.
        stream = EdgeStream(source, chain([next(drawing.blocks)], drawing.blocks), notes=Unsaid())
        if num_labels:
            size = generator.vertices(values)
            held.enter_context(resources.host.reserve(size, "the vertices to be labelled"))
            drawn = np.zeros(size, np.bool_)
            stream.blocks = _marked(stream.blocks, drawn)
            stream.vertex_labels = _RandomLabels(seed, num_labels, drawn)
        yield stream


def _marked(blocks: Iterator[EdgeBlock], drawn: npt.NDArray[np.bool_]) -> Iterator[EdgeBlock]:
    """Hand blocks on and mark the vertices in them."""
    for block in blocks:
        drawn[block.src] = True
        drawn[block.dst] = True
        yield block


class _RandomLabels(LabelSource):
    """A random label for each marked vertex, in ascending order."""

    source = "the generator's labels"

    def __init__(self, seed: int, num_labels: int, drawn: npt.NDArray[np.bool_]) -> None:
        self._seed, self._num_labels, self._drawn = seed, num_labels, drawn

    def blocks(self) -> Iterator[LabelBlock]:
        words = word_source(self._seed, LABELS, 0)
        for start in range(0, len(self._drawn), _LABELS_A_BLOCK):
            ids = np.flatnonzero(self._drawn[start : start + _LABELS_A_BLOCK]) + start
            values = words.random_raw(len(ids)) % np.uint64(self._num_labels)
            yield LabelBlock(ids, values.astype(np.int64), "entry {}".format)


def _checked(kind: str, seed: int, num_labels: int, params: dict[str, int | float]) -> dict[str, int | float]:
    """Return all parameters of a kind."""
    if not isinstance(kind, str) or kind not in GENERATORS:
        raise InputError(f"generator kind {brief(kind)} is unknown; choose one of {', '.join(GENERATORS)}")
    generator = GENERATORS[kind]
    unknown = sorted(set(params) - set(generator.parameters))
    if unknown:
        raise InputError(
            f"generator {kind}: parameter {unknown[0]!r} is unknown; it takes {', '.join(generator.parameters)}"
        )
    values = generator.defaults | params
    for name, wanted in generator.parameters.items():
        if name not in values:
            raise InputError(f"generator {kind}: parameter {name!r} is missing; give a value")
        if not _is_number(values[name], wanted):
            raise InputError(
                f"generator {kind}: parameter {name!r} must be {_NOUNS[wanted]}, not {brief(values[name])}"
            )
    if not (_is_number(seed, int) and 0 <= seed < 2**64):
        raise InputError(f"generator {kind}: parameter 'seed' must be an integer from 0 to 2^64 - 1, not {brief(seed)}")
    if not (_is_number(num_labels, int) and 0 <= num_labels < 2**31):
        raise InputError(
            f"generator {kind}: parameter 'num_labels' must be an integer from 0 to 2^31 - 1, not {brief(num_labels)}"
        )
    return values


def _is_number(value: object, wanted: type) -> bool:
    return isinstance(value, (int, wanted)) and not isinstance(value, bool)
