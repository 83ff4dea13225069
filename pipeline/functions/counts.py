"""Functions that count: any pattern, triangles, cliques, motifs, the orbits of each vertex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from longwall.pipeline.functions.one_run import Options, Question, number
from longwall.pipeline.patterns.pattern_of import pattern as pattern_of
from longwall.pipeline.patterns.pattern_of import source_text
from longwall.pipeline.result_tables import number_array, number_type
from longwall.pipeline.table import Table
from longwall.storage.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from longwall.pipeline.patterns.pattern import Pattern

    Queries = list[str] | list[Path] | list[Pattern] | list[Any]


Counted = Literal["embeddings", "subgraphs", "mappings"]


@overload
def count(
    graph: Any,
    pattern: Queries,
    *,
    induced: bool = False,
    limit: int | None = None,
    count: Counted = "embeddings",
    **options: Unpack[Options],
) -> list[int]: ...
@overload
def count(
    graph: Any,
    pattern: Any,
    *,
    labels: Sequence[int | str] | None = None,
    induced: bool = False,
    limit: int | None = None,
    count: Counted = "embeddings",
    per: None = None,
    **options: Unpack[Options],
) -> int: ...
@overload
def count(
    graph: Any,
    pattern: Any,
    *,
    labels: Sequence[int | str] | None = None,
    induced: bool = False,
    limit: int | None = None,
    count: Counted = "embeddings",
    per: Literal["edge"],
    **options: Unpack[Options],
) -> Table: ...
def count(
    graph: Any,
    pattern: Any,
    *,
    labels: Sequence[int | str] | None = None,
    induced: bool = False,
    limit: int | None = None,
    count: Counted = "embeddings",
    per: Literal["edge"] | None = None,
    **options: Unpack[Options],
) -> int | list[int] | Table:
    """Count the embeddings of a pattern, or those of several patterns.

    An embedding is a mapping of the pattern into the graph, up to the automorphisms of the pattern with all its labels.
    A vertex or an edge without a label is a class of its own: an edge both of whose ends have the label 0 is two
    embeddings of ``"(a:0)-(b)"``, one for each end that can be `a`. If all vertices and edges of a pattern have labels,
    or none has, embeddings are distinct subgraphs.

    Parameters
    ----------
    graph
        A `longwall.Graph`, the path of a graph file or a graph store, or anything that `longwall.graph` takes: a graph
        of networkx or igraph, a sparse matrix, a table, an array of edges.
    pattern
        As `longwall.pattern` takes it: a name, an edge list, a text such as ``"(a:1)-(b:2)"``, or a graph. A list of
        these (which no list of pairs is) stands for several patterns, whose counts are returned as a list.
    labels
        One label for each vertex of the pattern, where `pattern` itself has none.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    limit
        Stop at this number of embeddings of a pattern: a count equal to `limit` says that more may exist.
    count
        The unit of the count and of `limit`: ``"embeddings"``; ``"subgraphs"``, distinct sets of vertices and edges,
        each counted once; or ``"mappings"``, one for each embedding and each automorphism of the pattern.
    per
        None for one number; ``"edge"`` for the number of embeddings that contain each edge, if the pattern is
        ``"triangle"``, ``"clique-4"`` or ``"cycle-4"``.
    options
        `engine`, `threads`, `memory`, `device_memory`, `disk`, `spill`, `progress`; see `longwall.Options`.

    Returns
    -------
    int, list of int or Table
        The table has the columns ``source`` and ``target``, the ends of each edge, and ``triangles``, ``cliques`` or
        ``cycles``, in the order of `longwall.Graph.to_arrow`.

    Raises
    ------
    InputError, RunError, KeyboardInterrupt
        As `longwall.run`; nothing is left behind.

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = longwall.graph(networkx.karate_club_graph())
    >>> longwall.count(karate, "diamond")
    151
    >>> longwall.count(karate, "(a)-(b)-(c)-(d)-(a)", induced=True)
    36
    >>> longwall.count(karate, ["triangle", "cycle-5"], limit=100)
    [45, 100]
    >>> clubs = longwall.graph(networkx.karate_club_graph(), "club")
    >>> longwall.count(clubs, "(a:Officer)-(b)"), longwall.count(clubs, "(a:Officer)-(b)", count="subgraphs")
    (75, 43)
    >>> longwall.count(karate, "cycle-4", per="edge").slice(0, 1).to_pylist()
    [{'source': 32, 'target': 33, 'cycles': 12}]
    """
    _require_per(per, "edge")
    workload: dict[str, Any] = {"kind": "match", "induced": induced, "limit": limit, "count": count}
    if _are_several(pattern):
        if labels is not None:
            raise InputError("labels: several patterns have labels of their own, leave it out")
        if per is not None:
            raise InputError("per: several patterns are counted in all, leave it out")
        sources = [source_text(pattern_of(one)) for one in pattern]
        with Question.of(graph, workload | {"pattern": sources}, options).answered() as result:
            return [number(one.count) for one in result.patterns]
    workload["pattern"] = source_text(pattern_of(pattern, labels))
    if per == "edge":
        return _per_edge(graph, workload, options)
    with Question.of(graph, workload, options).answered() as result:
        return number(result.count)


@overload
def triangles(graph: Any, per: None = None, **options: Unpack[Options]) -> int: ...
@overload
def triangles(graph: Any, per: Literal["vertex", "edge"], **options: Unpack[Options]) -> Table: ...
def triangles(graph: Any, per: Literal["vertex", "edge"] | None = None, **options: Unpack[Options]) -> int | Table:
    """Count the triangles, in all, of each vertex or of each edge.

    Parameters
    ----------
    graph, options
        As of `longwall.count`.
    per
        None for their number, or ``"vertex"``, or ``"edge"``.

    Returns
    -------
    int or Table
        The table of vertices has the columns ``vertex``, ascending, and ``triangles``; that of edges ``source``,
        ``target`` and ``triangles``, in the order of `longwall.Graph.to_arrow`.

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = networkx.karate_club_graph()
    >>> longwall.triangles(karate)
    45
    >>> longwall.triangles(karate, per="vertex").slice(0, 3).to_pylist()
    [{'vertex': 0, 'triangles': 18}, {'vertex': 1, 'triangles': 12}, {'vertex': 2, 'triangles': 11}]
    """
    _require_per(per, "vertex", "edge")
    if per == "edge":
        return _per_edge(graph, {"kind": "triangles"}, options)
    if per is None:
        with Question.of(graph, {"kind": "triangles"}, options).answered() as result:
            return number(result.count)
    return _per_vertex(graph, {"kind": "triangles", "output": "vertices"}, options)


@overload
def cliques(graph: Any, k: int, per: None = None, **options: Unpack[Options]) -> int: ...
@overload
def cliques(graph: Any, k: Literal["all"], per: None = None, **options: Unpack[Options]) -> Table: ...
@overload
def cliques(
    graph: Any, k: int | Literal["all"], per: Literal["vertex", "edge"], **options: Unpack[Options]
) -> Table: ...
def cliques(
    graph: Any,
    k: int | Literal["all"],
    per: Literal["vertex", "edge"] | None = None,
    **options: Unpack[Options],
) -> int | Table:
    """Count the cliques of k vertices, in all or of each vertex or edge.

    A clique is a set of vertices in which every two are joined by an edge.

    Parameters
    ----------
    graph, options
        As of `longwall.count`.
    k
        Number of vertices, 3 or more, or ``"all"``: every size from 3 on. ``longwall.match(graph, "clique-4")`` lists
        cliques.
    per
        None for their number, ``"vertex"`` or, for k = 3 or 4, ``"edge"``.

    Returns
    -------
    int or Table
        The number of cliques. With ``"all"``, a table with the columns ``size``, ascending, and ``count``. Per vertex,
        one with ``vertex``, ascending, and ``cliques``; with ``"all"`` it has a column ``size``, too, and a row for
        each size of the cliques that the vertex is in. Numbers of cliques are exact: columns whose numbers do not fit
        64-bit integers are ``decimal128(38, 0)`` or, where that does not do, texts. Per edge, a table with ``source``,
        ``target`` and ``cliques`` (``triangles`` for k = 3), in the order of `longwall.Graph.to_arrow`.

    Examples
    --------
    >>> import longwall, networkx
    >>> karate = networkx.karate_club_graph()
    >>> longwall.cliques(karate, 4)
    11
    >>> longwall.cliques(karate, "all").to_pydict()
    {'size': [3, 4, 5], 'count': [45, 11, 2]}
    >>> longwall.cliques(karate, 4, per="vertex").slice(0, 3).to_pylist()
    [{'vertex': 0, 'cliques': 7}, {'vertex': 1, 'cliques': 7}, {'vertex': 2, 'cliques': 7}]
    """
    _require_per(per, "vertex", "edge")
    workload = {"kind": "cliques", "k": k}
    if per == "edge":
        return _per_edge(graph, workload, options)
    if per is not None:
        order = ("vertex", "size") if k == "all" else ("vertex",)
        return _per_vertex(graph, workload | {"output": "vertices"}, options, order)
    with Question.of(graph, workload, options).answered() as result:
        return result.table("sizes") if k == "all" else number(result.count)


def motifs(graph: Any, k: int, **options: Unpack[Options]) -> Table:
    """Count the induced embeddings of every connected pattern of k vertices.

    Parameters
    ----------
    graph, options
        As of `longwall.count`.
    k
        Number of vertices, 3 to 8.

    Returns
    -------
    Table
        A row for each pattern, those that do not occur as well: its ``pattern`` as an edge list, its ``name`` where it
        has one, its number of ``edges``, and its ``count``.

    Examples
    --------
    >>> import longwall, networkx
    >>> longwall.motifs(networkx.karate_club_graph(), 3).to_pylist()[1]
    {'pattern': '0-1,0-2,1-2', 'name': 'triangle', 'edges': 3, 'count': 45}
    """
    import pyarrow as pa

    with Question.of(graph, {"kind": "motifs", "k": k}, options).answered() as result:
        texts, counts = [one.pattern for one in result.patterns], [one.count for one in result.patterns]
    columns = {
        "pattern": pa.array(texts, pa.string()),
        "name": pa.array(_names(texts), pa.string()),
        "edges": pa.array([text.count("-") for text in texts], pa.int32()),
        "count": number_array(counts, number_type(max(map(number, counts)))),
    }
    return Table(pa.table(columns))


def orbits(graph: Any, k: int, **options: Unpack[Options]) -> Table:
    """Count how often each vertex stands in each orbit of the connected induced subgraphs of up to k vertices.

    These are the graphlet degree vectors of the vertices: features of their neighbourhoods, for a model.

    Parameters
    ----------
    graph, options
        As of `longwall.count`.
    k
        3, 4 or 5: orbits 0 to 3, 0 to 14, or 0 to 72, with Przulj's numbers, which ORCA has, too.

    Returns
    -------
    Table
        A row for each vertex, ascending by ``vertex``; the columns ``orbit_0`` (the degree), ``orbit_1``, ...

    Examples
    --------
    >>> import longwall, networkx
    >>> features = longwall.orbits(networkx.karate_club_graph(), 3)
    >>> features.column_names
    ['vertex', 'orbit_0', 'orbit_1', 'orbit_2', 'orbit_3']
    >>> features.slice(0, 1).to_pylist()
    [{'vertex': 0, 'orbit_0': 16, 'orbit_1': 17, 'orbit_2': 102, 'orbit_3': 18}]
    >>> features.to_pandas().set_index("vertex").to_numpy().shape  # ready for scikit-learn
    (34, 4)
    """
    return _per_vertex(graph, {"kind": "motifs", "k": k, "output": "vertices"}, options)


def frequent(
    graph: Any,
    *,
    support: float,
    max_edges: int | None = None,
    max_vertices: int | None = None,
    measure: Literal["mni", "instances", "transactions"] = "mni",
    exact: bool = True,
    **options: Unpack[Options],
) -> Table:
    """Find the patterns that are frequent in a graph, with its labels.

    Parameters
    ----------
    graph, options
        As of `longwall.count`.
    support
        Least support of the patterns: a number, or a share such as 0.1.
    max_edges, max_vertices
        Size of the largest patterns; by default they have any size. A graph with few labels or none has more frequent
        patterns than can be searched for: begin with ``max_edges=3``.
    measure
        What support is: ``"mni"``, the minimum image; ``"instances"``, distinct subgraphs; or ``"transactions"``.
    exact
        Whether the support is counted to the end; False only finds out what is frequent by ``"mni"``.

    Returns
    -------
    Table
        A row for each pattern: ``pattern`` (edge list), ``labels``, ``edge_labels``, ``dfs_code``, ``vertices``,
        ``edges``, ``support`` and ``count``.

    Examples
    --------
    >>> import longwall, networkx
    >>> found = longwall.frequent(networkx.karate_club_graph(), support=20, max_edges=2)
    >>> found.select(["pattern", "support", "count"]).to_pylist()[0]
    {'pattern': '0-1', 'support': 34, 'count': 78}
    """
    workload: dict[str, Any] = {"kind": "frequent", "min_support": support, "support": measure, "exact": exact}
    workload |= {"max_edges": max_edges, "max_vertices": max_vertices}
    hint = "" if max_edges or max_vertices else "max_edges=3, for instance, or a higher support ends it earlier"
    with Question.of(graph, workload, options, hint=hint).answered() as result:
        return result.table("patterns")


def _are_several(pattern: Any) -> bool:
    """Whether a list is one of patterns, and not of the edges of one."""
    return (
        isinstance(pattern, list | tuple)
        and bool(pattern)
        and not any(isinstance(one, list | tuple) for one in pattern)
    )


def _per_vertex(graph: Any, workload: dict[str, Any], options: Options, order: Sequence[str] = ("vertex",)) -> Table:
    """Return the table of vertices of a run, by their ids."""
    with Question.of(graph, workload, options).answered() as result:
        return Table(result.table("vertices").to_arrow().sort_by([(name, "ascending") for name in order]))


def _per_edge(graph: Any, workload: dict[str, Any], options: Options) -> Table:
    """Return the table of edges of a run, in the order of the graph's edges."""
    with Question.of(graph, {**workload, "output": "edges"}, options).answered() as result:
        return result.table("edges")


def _require_per(per: object, *known: str) -> None:
    if per is not None and per not in known:
        names = " or ".join(f'"{one}"' for one in known)
        raise InputError(f"per: expected None, for the number of all, or {names}")


def _names(texts: Sequence[str]) -> list[str | None]:
    """Return the name of each pattern of one size that is given by its edges; None where it has none."""
    from longwall.pipeline.patterns.parse import parse_pattern
    from longwall.pipeline.patterns.pattern_names import name_of

    return [name_of(parse_pattern(text).edges) for text in texts]
