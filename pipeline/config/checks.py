"""What no section can see alone: keys that contradict each other, or that a workload has no use for."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, get_args

from longwall.pipeline.config.sections import (
    MAX_COUNTED_VERTICES,
    MAX_MOTIF_VERTICES,
    MAX_ORBIT_VERTICES,
    WORKLOADS,
    Output,
)
from longwall.pipeline.config.values import dotted, listed, section_of, shown, suggestion
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import MAX_VERTICES
from longwall.storage.errors import InputError

_FREQUENT_KEYS = ("support", "min_support", "max_edges", "max_vertices", "exact")


def conflicts(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (dotted key, sentence) for every combination that cannot be meant; sections may be malformed."""
    graph, workload = section_of(data, "graph"), section_of(data, "workload")
    if "graph" in data and ("path" in graph) == ("generator" in graph):
        yield "graph", "give exactly one of path (a file or a store) and generator (a table)"
    if "generator" in graph and "labels" in graph:
        yield "graph.labels", "a generated graph has no label file; give the generator num_labels instead"
    if "generator" in graph and "transactions" in graph:
        yield "graph.transactions", "a generated graph has no transactions; remove it, or give a graph file"
    if "generator" in graph and "columns" in graph:
        yield "graph.columns", "a generated graph has no columns; remove it, or give a graph file"
    if isinstance(graph.get("generator"), dict):
        yield from _generator_faults(graph["generator"])
    if workload.get("kind") in tuple(WORKLOADS):  # whatever stands there
        yield from _workload_faults(workload)
    yield from _device_faults(section_of(data, "engine"), section_of(data, "scheduler"))
    yield from _scheduler_faults(section_of(data, "scheduler"))
    output, export = workload.get("output", "count"), section_of(data, "export")
    if section_of(data, "scheduler").get("order") == "levels" and output != "embeddings":
        yield "scheduler.order", 'counts have no levels: remove it, or set workload.output = "embeddings"'
    if type(export.get("embeddings")) is bool and export["embeddings"] != (output == "embeddings"):
        yield "export.embeddings", f'contradicts workload.output = "{output}": remove one of them'
    elif output != "embeddings":
        for key in sorted({"limit", "columns"} & export.keys()):
            yield f"export.{key}", 'only embeddings are exported: remove it, or set output = "embeddings"'
    elif workload.get("kind") in ("frequent", "transactions"):
        for key in sorted({"limit", "columns"} & export.keys()):
            yield f"export.{key}", "all embeddings of frequent patterns are written: remove it"
    elif isinstance(export.get("columns"), list):
        yield from _column_faults(export["columns"], _pattern_size(workload))


def _column_faults(columns: list[Any], pattern_size: int | None) -> Iterator[tuple[str, str]]:
    names = [f"v{vertex}" for vertex in range(pattern_size or 0)]
    for column in columns:
        if names and isinstance(column, str) and column not in names:
            yield "export.columns", f"the pattern has no column {shown(column)}, only {listed(names)}"


def _pattern_size(workload: Mapping[str, Any]) -> int | None:
    """Return the number of the pattern's vertices; None where there is no such pattern, which is told elsewhere."""
    kind, k, pattern = workload.get("kind"), workload.get("k"), workload.get("pattern")
    if kind == "triangles":
        return 3
    if kind == "cliques" and type(k) is int:
        return k if 3 <= k <= MAX_VERTICES else None
    if kind == "match" and isinstance(pattern, str):
        with suppress(InputError):
            return parse_pattern(pattern).num_vertices
    return None


def _device_faults(engine: Mapping[str, Any], scheduler: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "devices" not in engine:
        return
    if engine.get("kind") == "cpu":
        yield "engine.devices", 'engine.kind = "cpu" uses no device: remove one of them'
    elif "address" in scheduler:
        yield "engine.devices", "the workers of the cluster at scheduler.address use what they see: remove it"


def _scheduler_faults(scheduler: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    cluster_keys = ("address", "workers", "threads_per_worker", "security", "retries")
    if scheduler.get("kind", "local") == "local":
        for key in cluster_keys:
            if key in scheduler:
                yield f"scheduler.{key}", 'only a cluster has it: remove it, or set scheduler.kind = "dask"'
        return
    address = scheduler.get("address")
    if address is not None:
        if not re.fullmatch(r"(tcp|tls)://[^\s/]+:\d+", str(address)):
            yield "scheduler.address", f'expected an address such as "tcp://10.0.0.1:8786", not {shown(address)}'
        for key in ("workers", "threads_per_worker"):
            if key in scheduler:
                yield f"scheduler.{key}", "the cluster at scheduler.address has its own workers: remove one of them"
    if "security" in scheduler and not str(address).startswith("tls://"):
        yield "scheduler.security", 'certificates are for an address that begins with "tls://": give it, or remove this'


def _workload_faults(workload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kind = workload["kind"]
    keys = WORKLOADS[kind]
    for key in sorted(keys.required - workload.keys()):
        yield f"workload.{key}", f"missing; {kind} needs it"
    for key in ("pattern", "pattern_labels", "k", "induced", "method", *_FREQUENT_KEYS):
        # `induced = false` says nothing, so it may stand anywhere.
        given = key in workload and not (key == "induced" and workload[key] is False)
        if given and key not in keys.required | keys.optional:
            users = [name for name, of in WORKLOADS.items() if key in of.required | of.optional]
            yield f"workload.{key}", f"{kind} has no use for it (only {listed(users)}); remove it"
    if kind == "motifs":
        yield from _motif_faults(workload)
    pattern, labels = workload.get("pattern"), workload.get("pattern_labels")
    if isinstance(pattern, str) and "pattern" in keys.required:
        try:
            parse_pattern(pattern, labels if _are_labels(labels) else None)
        except InputError as error:
            yield "workload.pattern", str(error)
    output, count = workload.get("output", "count"), workload.get("count", "embeddings")
    if output in get_args(Output) and output not in keys.outputs:
        yield "workload.output", f'{kind} cannot give "{output}"; choose one of {listed(keys.outputs)}'
    if count == "mappings" and not keys.counts_mappings:
        yield "workload.count", f'{kind} counts distinct subgraphs; use kind = "match" for mappings'
    elif count == "mappings" and output == "embeddings":
        yield "workload.count", 'embeddings are written once each; use output = "count" to count mappings'


def _motif_faults(workload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    k, method, per_vertex = workload.get("k"), workload.get("method"), workload.get("output") == "vertices"
    if type(k) is not int:
        return
    if per_vertex and k > MAX_ORBIT_VERTICES:
        yield "workload.k", f"counts per vertex are given for at most {MAX_ORBIT_VERTICES} vertices, not {k}"
    elif k > MAX_MOTIF_VERTICES:
        yield "workload.k", f"motifs have at most {MAX_MOTIF_VERTICES} vertices, not {k}"
    if per_vertex and method == "counting":
        yield "workload.method", 'counts per vertex are always taken by enumeration; use "auto", or remove it'
    elif method == "counting" and k > MAX_COUNTED_VERTICES:
        yield "workload.method", f'"counting" is for at most {MAX_COUNTED_VERTICES} vertices; use "enumeration"'


def _are_labels(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(type(label) is int and label >= 0 for label in value)


def _generator_faults(generator: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from longwall.storage.generators.kinds import GENERATORS  # brings in the array libraries

    kind = generator.get("kind")
    if not isinstance(kind, str) or kind not in GENERATORS:
        text = "missing" if kind is None else f"there is no generator {shown(kind)}"
        yield "graph.generator.kind", text + suggestion(kind, GENERATORS)
        return
    of_kind = GENERATORS[kind]
    types = {**of_kind.parameters, "seed": int, "num_labels": int}
    for key in sorted(of_kind.parameters.keys() - of_kind.defaults.keys() - generator.keys()):
        yield f"graph.generator.{key}", f"missing; {kind} needs it"
    for key, value in generator.items():
        if key == "kind":
            continue
        if key not in types:
            yield dotted(("graph", "generator", key)), f"{kind} has no such parameter" + suggestion(key, types)
        elif isinstance(value, bool) or not isinstance(value, types[key] | int):
            noun = "a whole number" if types[key] is int else "a number"
            yield f"graph.generator.{key}", f"expected {noun}, not {shown(value)}"
