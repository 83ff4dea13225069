"""The way in for what is in memory: arrays, tables and other libraries' graphs become a `Graph`."""

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any

from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_in_memory
from longwall.storage.ingest.data_notes import DataNotes, counts_line, warn_of
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.objects import networks
from longwall.storage.ingest.objects.arrays import as_array, edge_blocks, label_arrays, matrix_blocks, pair_arrays
from longwall.storage.ingest.objects.listed_values import ListedLabels, edges_between
from longwall.storage.ingest.objects.tables import TableLabels, computed_in_parts, is_table, table_blocks
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream
from longwall.storage.ingest.tables.columns import EDGES, ColumnRequest, require_pair
from longwall.storage.ingest.vertex_labels import LabelSource
from longwall.storage.memory.resources import given_or_default
from longwall.storage.observer import NullObserver, Observer
from longwall.storage.system.arguments import brief, require_type, type_name, wrong_type

_EXPECTED = (
    "a graph of networkx or igraph, a sparse matrix, a table (pandas, polars, Arrow, ...), an array of shape "
    "(edges, 2), a list of pairs, or a tuple of two arrays"
)
_LABELS = "a mapping from vertices to labels, a tuple of two arrays, or a table with the columns vertex and label"


def graph(
    source: Any,
    labels: Any = None,
    *,
    edge_labels: Any = None,
    columns: tuple[str, str] | None = None,
    vertex_name: str | None = None,
    observer: Observer | None = None,
) -> Graph:
    """Make a graph of an object in memory.

    Directions, loops, repeated edges and vertices without an edge are dropped and counted, as in files: one
    `longwall.DataNote` warns of them, and `Graph.notes` keeps the numbers. Tables and arrays are read block by block.

    Parameters
    ----------
    source
        A graph of networkx, whose nodes are integers or texts, or of igraph, whose vertices may have names; a SciPy or
        CuPy sparse matrix, whose entries other than 0 are edges; any object with an Arrow stream, such as a table of
        pandas, polars, Arrow or DuckDB; an (edges, 2) array of integers of NumPy or CuPy, or a list of pairs, of
        integers or texts; or a tuple of two arrays.
    labels
        Of the vertices: a mapping, a tuple of two arrays (vertices and labels), or a table with the columns vertex and
        label; for a graph of networkx or igraph also the name of an attribute. Labels are texts, or integers from 0 to
        2^31 - 1.
    edge_labels
        Of the edges: the name of an attribute or a column, or, with arrays of edges, an array of the same length.
    columns
        The names of the two columns of a table that hold the edges, if the names do not show it.
    vertex_name
        The attribute of a graph of networkx or igraph with the names of its vertices. By default these are the nodes
        of networkx, and the attribute ``name`` of igraph, or the numbers of its vertices.
    observer
        Receives the progress.

    Returns
    -------
    Graph
        Undirected and simple.

    Raises
    ------
    InputError
        If `source` is none of these objects, or has a part of a type that is not supported.

    Examples
    --------
    >>> import longwall
    >>> triangle = longwall.graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> triangle.num_vertices, triangle.num_edges
    (4, 4)
    """
    observer = observer or NullObserver()
    source, labels = computed_in_parts(source), computed_in_parts(labels)
    declared, notes = Declared(may_be_empty=True), DataNotes(observer.note)
    named = (str, NoneType)
    library = networks.library_of(source)
    if not (library or is_table(source) or _is_arrays(source)):
        _refuse_plan("source", source)
        raise wrong_type("source", source, _EXPECTED, "longwall.open_graph reads files")
    if columns is not None and not is_table(source):
        raise InputError("columns: only a table has columns; leave them out")
    if columns is not None:
        require_pair(columns)
    require_type("vertex_name", vertex_name, named, "the name of an attribute")
    label_names = LabelNames("the labels of the edges")
    if library or is_table(source):
        what = "attribute" if library else "column"
        require_type("edge_labels", edge_labels, named, f"the name of the {what} that holds them")
    if library:
        read = networks.networkx_blocks if library == "networkx" else networks.igraph_blocks
        blocks = read(source, edge_labels, label_names, declared, vertex_name)
        if vertex_name is None:
            networks.note_unread_names(library, source, notes, labels if isinstance(labels, str) else None)
    elif vertex_name is not None:
        raise InputError("vertex_name: only graphs of networkx and igraph have attributes; leave it out")
    elif is_table(source):
        request = ColumnRequest(EDGES, columns, edge_labels, notes=notes)
        blocks = table_blocks(source, request, label_names)
    else:
        blocks = _array_blocks(source, edge_labels, declared)
    vertex_labels = _labels(source, library, labels, notes, vertex_name)
    stream = EdgeStream("the graph", blocks, vertex_labels, declared, edge_label_names=label_names, notes=notes)
    with given_or_default(None) as resources, stream:
        made = build_in_memory(stream, resources, observer)
    if line := counts_line(stream.source, made.notes):
        observer.note(line)
    warn_of(stream.source, made.notes)
    return made


def _is_arrays(source: Any) -> bool:
    """Say whether a source may be a matrix, an array, a list of pairs or a tuple of arrays."""
    return hasattr(source, "tocsr") or hasattr(source, "dtype") or isinstance(source, list | tuple)


def _array_blocks(source: Any, edge_labels: Any, declared: Declared) -> Iterator[EdgeBlock]:
    """Return the edges of arrays or a matrix."""
    if hasattr(source, "tocsr"):
        if edge_labels is not None:
            raise InputError("edge_labels: a matrix has none; give a table or arrays of edges, with their labels")
        return matrix_blocks(source, declared)
    named = _named_pairs(source)
    src, dst = pair_arrays(source) if named is None else (named[0::2], named[1::2])
    labels = None
    if edge_labels is not None:
        labels = as_array("edge_labels", edge_labels)
        if labels.shape != (len(src),):
            raise InputError(f"edge_labels: {len(src):,} are needed, one for each edge, not {labels.shape}")
    return edge_blocks("the edges", src, dst, labels) if named is None else edges_between("the edges", named, labels)


def _refuse_plan(name: str, source: Any) -> None:
    """Refuse a table that is not computed yet, such as one of Dask: its computation may exceed the memory."""
    for method in ("collect", "compute"):
        if callable(getattr(source, method, None)):
            raise InputError(f"{name}: {type_name(source)} is no table yet; pass its result, .{method}()")


def _named_pairs(source: Any) -> list[Any] | None:
    """Return both ends of each edge, one behind the other, of a list of pairs of texts; None for other sources."""
    if not (isinstance(source, list | tuple) and source and isinstance(source[0], list | tuple)):
        return None
    if not any(isinstance(end, str) for end in source[0]):
        return None
    for number, pair in enumerate(source):
        if not (isinstance(pair, list | tuple) and len(pair) == 2):
            given = f"{len(pair)} values" if isinstance(pair, list | tuple) else brief(pair)
            advice = "give pairs of vertices, or a table with the columns source and target"
            raise InputError(f"source: entry {number} has {given}: {advice}")
    return [end for pair in source for end in pair]


def _labels(source: Any, library: str, labels: Any, notes: DataNotes, vertex_name: str | None) -> LabelSource | None:
    if labels is None:
        return None
    if library and isinstance(labels, str):
        return (networks.networkx_labels if library == "networkx" else networks.igraph_labels)(
            source, labels, vertex_name
        )
    if is_table(labels):
        return TableLabels(labels, notes)
    if isinstance(labels, Mapping):
        return ListedLabels("the labelled vertices", list(labels), "the labels", list(labels.values()))
    if isinstance(labels, tuple) and len(labels) == 2:
        return label_arrays(labels)
    _refuse_plan("labels", labels)
    attribute = ", or the name of an attribute" if library else ""
    raise wrong_type("labels", labels, _LABELS + attribute)
